"""Tenancy as a viewer may see it, and whole states for reconcile. Every page's rows come from here, scoped."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from django.conf import settings
from django.db.models import Q, QuerySet

from tenants.access import Mapped, Verb, Viewer, can, roles_from_groups
from tenants.models import (
    AuditEvent,
    ClaimState,
    GroupMapping,
    Pool,
    PriorityTier,
    Quota,
    Team,
    TierGrant,
    User,
)
from tenants.state import TeamState, TierState


class NotVisible(Exception):  # noqa: N818 (says what is the case)
    """There is no such thing for this viewer; answered as 404 without telling which."""


def viewer_for(user: User) -> Viewer:
    """Who asks, from the user's last verified claims and today's group mappings."""
    groups = user.groups_claim if user.claim_state == ClaimState.OK else []
    rows = GroupMapping.objects.filter(group__in=groups).filter(Q(team=None) | Q(team__deleted_at=None))
    mappings = [Mapped(row.group, row.role, row.team_id) for row in rows]
    platform, teams = roles_from_groups(groups, mappings)
    return Viewer(
        user_id=user.pk,
        username=user.username,
        display_name=user.display_name,
        platform=platform,
        teams=teams,
    )


def teams_for(viewer: Viewer) -> QuerySet[Team]:
    """The viewer's own teams; all of them for platform roles."""
    teams = Team.objects.filter(deleted_at=None)
    return teams if viewer.sees_every_team else teams.filter(pk__in=viewer.team_ids)


def get_team(viewer: Viewer, slug: str) -> Team:
    """One team; NotVisible when there is none or the viewer may not see it."""
    team = teams_for(viewer).filter(slug=slug).first()
    if team is None:
        raise NotVisible(f"There is no team “{slug}”, or it is not yours to see.")
    return team


def pools_for(viewer: Viewer) -> QuerySet[Pool]:
    """Pools are no secret among members: whoever may see the cluster sees them all."""
    return Pool.objects.all() if can(viewer, Verb.SEE_CLUSTER) else Pool.objects.none()


@dataclass(frozen=True)
class PoolLine:
    """A pool with what its nodes hold and what is promised of it, in GPUs."""

    pool: Pool
    nodes: int
    ready: int
    capacity: int
    promised: int

    @property
    def over(self) -> int:
        """How far the guarantees stand above what the nodes hold, as after a node left."""
        return max(0, self.promised - self.capacity) if self.pool.gpu_resource and self.nodes else 0


def pool_lines(viewer: Viewer) -> list[PoolLine]:
    """Pools with their sums, for the lists of the administration."""
    lines = []
    for pool in pools_for(viewer).prefetch_related("nodes", "quotas"):
        nodes = [node for node in pool.nodes.all() if node.gone_at is None]
        lines.append(
            PoolLine(
                pool=pool,
                nodes=len(nodes),
                ready=sum(node.is_ready and not node.is_cordoned for node in nodes),
                capacity=sum(node.gpus.get(pool.gpu_resource, {}).get("capacity", 0) for node in nodes),
                promised=sum(quota.guarantee for quota in pool.quotas.all()),
            )
        )
    return lines


def get_pool(viewer: Viewer, slug: str) -> Pool:
    """One pool; NotVisible when there is none."""
    pool = pools_for(viewer).filter(slug=slug).first()
    if pool is None:
        raise NotVisible(f"There is no pool “{slug}”.")
    return pool


def tiers_for(viewer: Viewer) -> QuerySet[PriorityTier]:
    """Tiers the viewer may ask for: the default one and those granted to a team of theirs; all for platform roles."""
    tiers = PriorityTier.objects.all()
    if viewer.sees_every_team:
        return tiers
    granted = TierGrant.objects.filter(team_id__in=viewer.team_ids).values("tier_id")
    return tiers.filter(Q(is_default=True) | Q(pk__in=granted)) if viewer.teams else tiers.none()


def quotas_for(viewer: Viewer) -> QuerySet[Quota]:
    """Quotas of the teams the viewer sees."""
    return Quota.objects.filter(team__in=teams_for(viewer)).select_related("team", "pool")


def mappings_for(viewer: Viewer) -> QuerySet[GroupMapping]:
    """Group mappings: of the own teams, or all with administrative sight."""
    mappings = GroupMapping.objects.select_related("team")
    if can(viewer, Verb.SEE_ADMINISTRATION):
        return mappings
    return mappings.filter(team_id__in=viewer.team_ids)


def groups_seen(viewer: Viewer, *, people: int = 500) -> list[str]:
    """Groups that the provider sent for those who signed in last, as suggestions when a group is mapped."""
    if not can(viewer, Verb.ADMINISTER):
        return []
    latest = User.objects.filter(claim_state=ClaimState.OK).order_by("-claims_verified_at")
    return sorted(
        {group for groups in latest.values_list("groups_claim", flat=True)[:people] for group in groups}
    )


def get_mapping(viewer: Viewer, pk: int) -> GroupMapping:
    """One group mapping; NotVisible when there is none."""
    mapping = mappings_for(viewer).filter(pk=pk).first()
    if mapping is None:
        raise NotVisible("There is no such group mapping.")
    return mapping


def audit_for(viewer: Viewer) -> QuerySet[AuditEvent]:
    """The audit trail, for those who may read it."""
    events = AuditEvent.objects.select_related("team")
    return events if can(viewer, Verb.SEE_AUDIT) else events.none()


def can_follow(viewer: Viewer, topic: str) -> bool:
    """Whether a page of this viewer may listen to the topic; news themselves are filtered by team as well."""
    kind, _, _number = topic.partition(":")
    return kind in ("jobs", "job", "cluster", "queue", "teams", "pools") and bool(
        viewer.teams or viewer.platform
    )


def team_state(team: Team) -> TeamState:
    """A team as its namespace should be (unscoped: for reconcile only)."""
    return TeamState(
        uid=str(team.uid),
        slug=team.slug,
        name=team.name,
        namespace=team.namespace,
        groups=tuple(team.mappings.order_by("group", "role").values_list("group", "role")),
        cpu_milli=team.cpu_milli,
        memory_bytes=team.memory_bytes,
        pods=team.pods,
        storage_bytes=team.storage_bytes,
        gpus=_gpu_limits(team),
        groups_prefix=settings.BERTH_GROUPS_PREFIX,
        tiers=_tiers_of(team),
    )


def _tiers_of(team: Team) -> tuple[str, ...]:
    """The default tier and those granted; empty while there is no default: pods need one they may have."""
    usable = PriorityTier.objects.filter(Q(is_default=True) | Q(grants__team=team)).distinct()
    rows = usable.order_by("slug").values_list("slug", "is_default")
    return tuple(slug for slug, _ in rows) if any(is_default for _, is_default in rows) else ()


def _gpu_limits(team: Team) -> Mapping[str, int]:
    """Per GPU resource what the team may hold in all pools together; nothing where it has no quota."""
    resources = Pool.objects.exclude(gpu_resource="").values_list("gpu_resource", flat=True)
    limits: Counter[str] = Counter(dict.fromkeys(resources, 0))
    quotas = team.quotas.exclude(pool__gpu_resource="").values_list(
        "pool__gpu_resource", "guarantee", "borrow_cap", "hard_max"
    )
    for resource, guarantee, borrow_cap, hard_max in quotas:
        ceiling = guarantee + borrow_cap
        limits[resource] += ceiling if hard_max is None else min(ceiling, hard_max)
    return dict(limits)


def tier_state(tier: PriorityTier) -> TierState:
    """A tier as its PriorityClass should be."""
    return TierState(tier.slug, tier.value, tier.may_preempt, tier.is_default, tier.description)
