"""Waits until the demo's tenancy is in the cluster and the cluster is known to the portal."""

from deploy.demo.client import wait_for
from jobs.models import Node
from tenants.models import Pool, PriorityTier, Team
from tenants.reconcile import READY


def wait_ready() -> None:
    """Every team, pool and tier Ready, nodes observed. Raises TimeoutError."""
    for kind in (PriorityTier, Pool, Team):
        rows = kind._default_manager.exclude(condition=READY)
        wait_for(f"every {kind.__name__} to be ready", lambda rows=rows: not rows.exists())  # type: ignore[misc]
    wait_for("observed nodes", lambda: Node.objects.filter(is_ready=True).exists())
