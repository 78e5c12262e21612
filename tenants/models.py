"""Rows about who may use what. Written by `tenants/actions.py`, read through `tenants/queries.py`.

A row that must exist in the cluster too is `Reconciled`: `tenants/reconcile.py` makes it so.
"""

import uuid
from typing import ClassVar

from django.contrib.auth.models import AbstractUser
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models import F, Q

from portal.reconciled import Reconciled
from tenants.access import PlatformRole, TeamRole

SLUG = RegexValidator(
    r"^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$",
    "Use 1 to 40 lower-case letters, digits and dashes; begin and end with a letter or digit.",
)


class ClaimState(models.TextChoices):
    """What the provider said about groups at the last verified sign-in; anything but OK grants nothing."""

    OK = "ok", "groups received"
    MISSING = "missing", "no group claim in the token"
    OVERAGE = "overage", "too many groups for the token (overage)"
    UNSUPPORTED = "unsupported", "group claim of an unsupported shape"


class User(AbstractUser):
    """A person as the identity provider knows them: keyed by issuer and subject, never by e-mail."""

    issuer = models.CharField(max_length=255, blank=True)
    subject = models.CharField(max_length=255, blank=True)
    display_name = models.CharField(max_length=255, blank=True)
    groups_claim: models.JSONField[list[str], list[str]] = models.JSONField(default=list, blank=True)
    claim_state = models.CharField(max_length=16, choices=ClaimState, default=ClaimState.MISSING)
    claims_verified_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["issuer", "subject"], condition=~Q(subject=""), name="user_unique_issuer_subject"
            )
        ]

    def __str__(self) -> str:
        return self.display_name or self.username


class Team(Reconciled):
    """A tenant: one namespace, its groups, its limits."""

    slug = models.CharField(max_length=40, unique=True, validators=[SLUG])
    name = models.CharField(max_length=80)
    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    namespace = models.CharField(max_length=63, unique=True)
    description = models.TextField(blank=True, max_length=500)
    is_suspended = models.BooleanField(default=False)
    # Limits of the namespace as a whole (ResourceQuota); GPUs come from the team's Quota rows.
    cpu_milli = models.PositiveBigIntegerField(default=256_000)
    memory_bytes = models.PositiveBigIntegerField(default=2 * 1024**4)
    pods = models.PositiveIntegerField(default=500)
    storage_bytes = models.PositiveBigIntegerField(default=10 * 1024**4)
    # What the reconciler last saw, for people.
    condition = models.CharField(max_length=40, default="Pending")
    condition_message = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    deleted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["slug"]

    def __str__(self) -> str:
        return self.name


class GroupMapping(models.Model):
    """An identity-provider group means a role in a team, or a platform role when `team` is empty."""

    group = models.CharField(max_length=255)
    team = models.ForeignKey(Team, null=True, blank=True, on_delete=models.CASCADE, related_name="mappings")
    role = models.CharField(max_length=16)

    class Meta:
        ordering: ClassVar = ["group", "id"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["group", "team"], condition=Q(team__isnull=False), name="mapping_once_per_team"
            ),
            models.UniqueConstraint(
                fields=["group", "role"],
                condition=Q(team__isnull=True),
                name="mapping_once_per_platform_role",
            ),
            models.CheckConstraint(
                condition=Q(team__isnull=False, role__in=[*TeamRole])
                | Q(team__isnull=True, role__in=[*PlatformRole]),
                name="mapping_role_fits_scope",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.group} → {self.role}"


class OrderPolicy(models.TextChoices):
    """How a pool orders waiting jobs of one tier."""

    FAIR = "fair", "fair share"
    FIFO = "fifo", "first come, first served"


class Pool(Reconciled):
    """A set of nodes with one kind of accelerator and one queue."""

    slug = models.CharField(max_length=40, unique=True, validators=[SLUG])
    name = models.CharField(max_length=80)
    gpu_model = models.CharField(max_length=60, blank=True)
    gpu_resource = models.CharField(max_length=120, default="nvidia.com/gpu", blank=True)
    # Nodes carrying all of these labels belong to the pool; Berth then sets berth/pool and its taint on them.
    node_selector: models.JSONField[dict[str, str], dict[str, str]] = models.JSONField(default=dict)
    min_nodes = models.PositiveIntegerField(default=0)
    max_nodes = models.PositiveIntegerField(default=0, help_text="0 means no upper bound")
    order_policy = models.CharField(max_length=8, choices=OrderPolicy, default=OrderPolicy.FAIR)
    is_on_hold = models.BooleanField(default=False)
    min_run_seconds = models.PositiveIntegerField(default=300)
    max_wall_seconds = models.PositiveIntegerField(null=True, blank=True)
    condition = models.CharField(max_length=40, default="Pending")
    condition_message = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["slug"]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(max_nodes=0) | Q(max_nodes__gte=F("min_nodes")), name="pool_min_within_max"
            )
        ]

    def __str__(self) -> str:
        return self.name


class Quota(models.Model):
    """What one team may hold in one pool, in GPUs (in a pool without GPUs: in worker pods).

    guarantee: always there for the team. borrow_cap: how much above it the team may take while others are
    idle. lend_cap: how much of an idle guarantee others may take. hard_max: never more, empty for none.
    """

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="quotas")
    pool = models.ForeignKey(Pool, on_delete=models.CASCADE, related_name="quotas")
    guarantee = models.PositiveIntegerField(default=0)
    borrow_cap = models.PositiveIntegerField(default=0)
    lend_cap = models.PositiveIntegerField(default=0)
    hard_max = models.PositiveIntegerField(null=True, blank=True)
    per_user_cap = models.PositiveIntegerField(null=True, blank=True)
    max_wall_seconds = models.PositiveIntegerField(null=True, blank=True)
    version = models.PositiveIntegerField(default=1)

    class Meta:
        ordering: ClassVar = ["pool__slug", "team__slug"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["team", "pool"], name="quota_once_per_team_and_pool"),
            models.CheckConstraint(
                condition=Q(hard_max__isnull=True) | Q(hard_max__gte=F("guarantee")),
                name="quota_guarantee_within_hard_max",
            ),
            models.CheckConstraint(condition=Q(lend_cap__lte=F("guarantee")), name="quota_lends_what_it_has"),
        ]

    def __str__(self) -> str:
        return f"{self.team} in {self.pool}: {self.guarantee}"

    def clean(self) -> None:
        """The constraints above in words, at both fields that contradict each other."""
        errors: dict[str, list[str]] = {}
        if self.hard_max is not None and self.guarantee is not None and self.hard_max < self.guarantee:
            text = f"The guarantee ({self.guarantee}) is above the hard maximum ({self.hard_max})."
            errors |= {"guarantee": [text], "hard_max": [text]}
        if self.lend_cap is not None and self.guarantee is not None and self.lend_cap > self.guarantee:
            text = f"More would be lent ({self.lend_cap}) than is guaranteed ({self.guarantee})."
            errors.setdefault("guarantee", []).append(text)
            errors["lend_cap"] = [text]
        if errors:
            raise ValidationError(errors)


class PriorityTier(Reconciled):
    """A priority that jobs may ask for; one PriorityClass in the cluster."""

    # Kubernetes keeps values above 1e9 and names beginning with system- for itself (RW-015).
    slug = models.CharField(max_length=40, unique=True, validators=[SLUG])
    name = models.CharField(max_length=80)
    value = models.IntegerField(validators=[MinValueValidator(0), MaxValueValidator(1_000_000_000)])
    may_preempt = models.BooleanField(default=True)
    is_default = models.BooleanField(default=False)
    description = models.CharField(max_length=200, blank=True)
    condition = models.CharField(max_length=40, default="Pending")
    condition_message = models.TextField(blank=True)

    class Meta:
        ordering: ClassVar = ["-value", "slug"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["is_default"], condition=Q(is_default=True), name="tier_one_default_at_most"
            ),
            models.CheckConstraint(
                condition=Q(value__gte=0, value__lte=1_000_000_000), name="tier_value_range"
            ),
            models.CheckConstraint(condition=~Q(slug__startswith="system-"), name="tier_name_not_system"),
        ]

    def __str__(self) -> str:
        return self.name


class TierGrant(models.Model):
    """A team may use a tier, up to `max_gpus` at a time (empty: no cap). A default tier needs no grant."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="tier_grants")
    tier = models.ForeignKey(PriorityTier, on_delete=models.CASCADE, related_name="grants")
    max_gpus = models.PositiveIntegerField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["team", "tier"], name="grant_once_per_team_and_tier")
        ]

    def __str__(self) -> str:
        return f"{self.team}: {self.tier}"


class Outcome(models.TextChoices):
    """How an audited attempt ended."""

    DONE = "done", "done"
    DENIED = "denied", "denied"
    FAILED = "failed", "failed"


class AuditEvent(models.Model):
    """Who did or tried what. Append-only; written in the transaction of the change it records."""

    at = models.DateTimeField(db_index=True)
    actor = models.CharField(max_length=255)
    actor_id = models.BigIntegerField(null=True, blank=True)
    action = models.CharField(max_length=60)
    team = models.ForeignKey(Team, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    subject = models.CharField(max_length=120, blank=True)
    outcome = models.CharField(max_length=8, choices=Outcome, default=Outcome.DONE)
    detail: models.JSONField[dict[str, object], dict[str, object]] = models.JSONField(default=dict)

    class Meta:
        ordering: ClassVar = ["-at", "-id"]

    def __str__(self) -> str:
        return f"{self.actor} {self.action} {self.subject}: {self.outcome}"
