"""Everything that changes tenancy rows: one transaction each, with its audit row and its bells."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import F, Sum
from django.utils import timezone

from portal.kube import names
from portal.live import announce
from portal.queue import ring
from tenants.access import PlatformRole, TeamRole, Verb, Viewer, can
from tenants.models import (
    AuditEvent,
    GroupMapping,
    Outcome,
    Pool,
    PriorityTier,
    Quota,
    Team,
    TierGrant,
)

POOL_COLUMNS = (
    "name", "node_selector", "gpu_model", "gpu_resource", "order_policy", "is_on_hold"
)  # fmt: skip
QUOTA_COLUMNS = ("guarantee", "borrow_cap", "lend_cap", "hard_max", "per_user_cap", "max_wall_seconds")
TIER_COLUMNS = ("name", "value", "may_preempt", "is_default", "description")
RESERVED_SLUGS = frozenset({"new"})
R = TypeVar("R", Pool, Quota, PriorityTier)
SYSTEM = Viewer(user_id=0, username="berth", platform=frozenset({PlatformRole.ADMIN}))


class Denied(Exception):  # noqa: N818 (says what happened)
    """The actor may not do this; an audit row says that it was tried."""


class Rejected(Exception):  # noqa: N818 (says what happened)
    """The input is not acceptable: `errors` maps a field to texts."""

    def __init__(self, errors: Mapping[str, list[str]]) -> None:
        super().__init__("; ".join(f"{field}: {' '.join(texts)}" for field, texts in errors.items()))
        self.errors = errors


def record(
    *,
    actor: Viewer,
    action: str,
    team: Team | None = None,
    subject: str = "",
    outcome: str = Outcome.DONE,
    detail: Mapping[str, object] | None = None,
) -> None:
    """Write an audit row, in the transaction of what it records."""
    AuditEvent.objects.create(
        at=timezone.now(),
        actor=actor.username,
        actor_id=actor.user_id or None,
        action=action,
        team=team,
        subject=subject[:120],
        outcome=outcome,
        detail=dict(detail or {}),
    )


def _require_admin(actor: Viewer, action: str, subject: str) -> None:
    if not can(actor, Verb.ADMINISTER):
        record(actor=actor, action=action, subject=subject, outcome=Outcome.DENIED)
        raise Denied("Only platform admins may do this.")


def create_team(*, actor: Viewer, slug: str, name: str, description: str = "") -> Team:
    """A new tenant; its namespace follows. Raises Denied or Rejected."""
    _require_admin(actor, "create team", slug)
    namespace = names.namespace_name(slug, prefix=settings.BERTH_NAMESPACE_PREFIX)
    # A slug that is a system name by itself is refused too: prefixes change, and people read slugs (RW-079).
    for candidate in (slug, namespace):
        if problem := names.namespace_problem(candidate, reserved=settings.BERTH_RESERVED_NAMESPACES):
            raise Rejected({"slug": [problem]})
    team = Team(slug=slug, name=name, description=description, namespace=namespace)
    _validate(team)
    with transaction.atomic():
        _save(team)
        record(actor=actor, action="create team", team=team, subject=slug)
        _ring_team(team)
    return team


def map_group(*, actor: Viewer, group: str, role: str, team: Team | None = None) -> GroupMapping:
    """Let a group of the identity provider mean a role, in a team or for the platform."""
    _require_admin(actor, "map group", group)
    allowed: list[str] = [*(TeamRole if team else PlatformRole)]
    if role not in allowed:
        raise Rejected({"role": [f"Choose one of {', '.join(allowed)}."]})
    if not group.strip() or len(group) > 255:
        raise Rejected({"group": ["Give the group's name as the provider sends it."]})
    known = GroupMapping.objects.filter(group=group, team=team)
    if known.exists() if team else known.filter(role=role).exists():
        raise Rejected({"group": ["This group is mapped here already; remove that mapping first."]})
    with transaction.atomic():
        mapping = GroupMapping(group=group, role=role, team=team)
        _save(mapping)
        record(actor=actor, action="map group", team=team, subject=group, detail={"role": role})
        if team:
            _ring_team(team)
    return mapping


def unmap_group(*, actor: Viewer, mapping: GroupMapping) -> None:
    """Take a group's role away; its binding goes with it. The last way to administer stays. Raises Denied, Rejected."""
    _require_admin(actor, "unmap group", mapping.group)
    admins = GroupMapping.objects.filter(team=None, role=PlatformRole.ADMIN)
    if mapping.team_id is None and mapping.role == PlatformRole.ADMIN and admins.count() < 2:
        raise Rejected({"": ["This is the only group of administrators; map another one first."]})
    with transaction.atomic():
        team = mapping.team
        record(
            actor=actor, action="unmap group", team=team, subject=mapping.group, detail={"role": mapping.role}
        )
        mapping.delete()
        if team:
            _ring_team(team)


def save_pool(*, actor: Viewer, pool: Pool) -> Pool:
    """Create or change a pool; its nodes get label and taint. Raises Denied or Rejected."""
    _require_admin(actor, "save pool", pool.slug)
    for key, value in pool.node_selector.items():
        if not names.is_valid_label_key(key) or not names.is_valid_label_value(value):
            raise Rejected({"node_selector": [f"“{key}={value}” is no valid label."]})
    if names.POOL_LABEL in pool.node_selector:
        raise Rejected(
            {"node_selector": [f"“{names.POOL_LABEL}” is set by Berth; select by the node's own labels."]}
        )
    if pool.gpu_resource and not names.is_extended_resource(pool.gpu_resource):
        text = (
            "Give the device plugin's resource, such as nvidia.com/gpu, or nothing for a pool without GPUs."
        )
        raise Rejected({"gpu_resource": [text]})
    _validate(pool)
    with transaction.atomic():
        before = Pool.objects.filter(pk=pool.pk).first()
        _save(pool)
        action = "change pool" if before else "create pool"
        record(actor=actor, action=action, subject=pool.slug, detail=_changes(before, pool, POOL_COLUMNS))
        Pool.touch(pool.pk)
        ring("tenants.tasks.reconcile_pool", pool.pk)
        ring("jobs.tasks.admit_pool", pool.pk)
        announce("cluster")
        announce("pools")
    return pool


def save_quota(*, actor: Viewer, quota: Quota, version: int | None = None) -> Quota:
    """Set what a team may hold in a pool. Lowering it kills nothing; use above it shows as over.

    `version` is the one the actor saw: a change in between is refused, not overwritten. Raises Denied or Rejected.
    """
    _require_admin(actor, "save quota", f"{quota.team.slug} in {quota.pool.slug}")
    _validate(quota)
    _check_promises(quota)
    values = {name: getattr(quota, name) for name in QUOTA_COLUMNS}
    with transaction.atomic():
        before = Quota.objects.filter(pk=quota.pk).first()
        if quota._state.adding:
            _save(quota)
        else:
            seen = quota.version if version is None else version
            rows = Quota.objects.filter(pk=quota.pk, version=seen)
            if not rows.update(**values, version=F("version") + 1):
                raise Rejected({"version": ["Somebody changed this quota meanwhile; look again."]})
        subject = f"{quota.team.slug} in {quota.pool.slug}"
        detail = _changes(before, quota, QUOTA_COLUMNS)
        record(actor=actor, action="save quota", team=quota.team, subject=subject, detail=detail)
        _ring_team(quota.team)
        ring("jobs.tasks.admit_pool", quota.pool_id)
        announce("cluster")
    quota.refresh_from_db()
    return quota


def _check_promises(quota: Quota) -> None:
    """Guarantees of a pool may not exceed what its nodes hold, where that is known."""
    promised = quota.pool.quotas.exclude(pk=quota.pk).aggregate(sum=Sum("guarantee"))["sum"] or 0
    capacity = sum(
        node.gpus.get(quota.pool.gpu_resource, {}).get("capacity", 0)
        for node in quota.pool.nodes.filter(gone_at=None)
    )
    if capacity and promised + quota.guarantee > capacity:
        text = (
            f"Guarantees would add up to {promised + quota.guarantee}; {quota.pool.name} has {capacity} GPUs."
        )
        raise Rejected({"guarantee": [text]})


def save_tier(*, actor: Viewer, tier: PriorityTier) -> PriorityTier:
    """Create or change a tier; its PriorityClass follows. Raises Denied or Rejected."""
    _require_admin(actor, "save tier", tier.slug)
    _validate(tier)
    with transaction.atomic():
        before = PriorityTier.objects.filter(pk=tier.pk).first()
        _save(tier)
        detail = _changes(before, tier, TIER_COLUMNS)
        record(actor=actor, action="save tier", subject=tier.slug, detail=detail)
        PriorityTier.touch(tier.pk)
        ring("tenants.tasks.reconcile_tier", tier.pk)
        for team in Team.objects.filter(deleted_at=None):
            _ring_team(team)  # which classes its pods may have
    return tier


def grant_tier(*, actor: Viewer, team: Team, tier: PriorityTier, max_gpus: int | None = None) -> TierGrant:
    """Let a team use a tier, up to `max_gpus` at a time."""
    _require_admin(actor, "grant tier", f"{tier.slug} to {team.slug}")
    with transaction.atomic():
        grant, _created = TierGrant.objects.update_or_create(
            team=team, tier=tier, defaults={"max_gpus": max_gpus}
        )
        record(actor=actor, action="grant tier", team=team, subject=tier.slug, detail={"max_gpus": max_gpus})
        _ring_team(team)
        for pool_id in Pool.objects.values_list("id", flat=True):
            ring("jobs.tasks.admit_pool", pool_id)
    return grant


def set_hold(*, actor: Viewer, pool: Pool, is_on_hold: bool) -> None:
    """Hold a pool: running jobs go on, nothing new starts; or let it go."""
    _require_admin(actor, "hold pool", pool.slug)
    with transaction.atomic():
        Pool.objects.filter(pk=pool.pk).update(is_on_hold=is_on_hold)
        record(actor=actor, action="hold pool" if is_on_hold else "release pool", subject=pool.slug)
        ring("jobs.tasks.admit_pool", pool.pk)
        announce("pools")


def record_condition(row: Team | Pool | PriorityTier, condition: str, message: str) -> None:
    """What reconcile found out, for people; written only when it differs."""
    if (row.condition, row.condition_message) != (condition, message):
        type(row)._default_manager.filter(pk=row.pk).update(condition=condition, condition_message=message)
        announce("teams")


def _validate(row: Team | Pool | Quota | PriorityTier) -> None:
    if getattr(row, "slug", "") in RESERVED_SLUGS:
        raise Rejected({"slug": ["This word is part of an address here; take another one."]})
    try:
        row.full_clean()
    except ValidationError as error:
        fields: dict[str, Any] = error.message_dict
        raise Rejected({("" if key == "__all__" else key): texts for key, texts in fields.items()}) from error


def _changes(before: R | None, after: R, columns: Sequence[str]) -> dict[str, str]:
    """What an audit row says of a change: column → "old → new"; of a new row only what is set."""
    found = {}
    for name in columns:
        old, new = getattr(before, name, None), getattr(after, name)
        if before is None and new not in (None, "", {}):
            found[name] = _words(new)
        elif before is not None and old != new:
            found[name] = f"{_words(old)} → {_words(new)}"
    return found


def _words(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}={each}" for key, each in value.items()) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value in (None, "") else str(value)


def _save(row: Team | Pool | Quota | PriorityTier | GroupMapping) -> None:
    """Save inside the caller's transaction. Raises Rejected when somebody saved a row like it after our look."""
    try:
        row.save()
    except IntegrityError as error:
        raise Rejected({"": ["Somebody saved the same meanwhile; look again."]}) from error


def _ring_team(team: Team) -> None:
    Team.touch(team.pk)
    ring("tenants.tasks.reconcile_team", team.pk)
    announce("teams")
