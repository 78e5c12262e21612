"""Doorbells of this app; arguments are ids, everything may run twice."""

from django.utils import timezone

from portal.queue import ring
from tenants import reconcile
from tenants.models import Pool, PriorityTier, Team

SWEEP_LIMIT = 500


def reconcile_team(pk: int) -> None:
    """Look at a team."""
    reconcile.reconcile_team(pk)


def reconcile_tier(pk: int) -> None:
    """Look at a tier."""
    reconcile.reconcile_tier(pk)


def reconcile_pool(pk: int) -> None:
    """Look at a pool's nodes."""
    reconcile.reconcile_pool(pk)


def sweep() -> None:
    """Ring again whatever is due."""
    now = timezone.now()
    for kind, task in ((PriorityTier, "tier"), (Team, "team"), (Pool, "pool")):
        for pk in kind.due(now, SWEEP_LIMIT):
            ring(f"tenants.tasks.reconcile_{task}", pk)


def cluster_came_back() -> None:
    """Retry at once what failed while the cluster was away."""
    now = timezone.now()
    for kind in (PriorityTier, Team, Pool):
        kind._default_manager.filter(failures__gt=0).update(reconcile_after=now)
    sweep()
