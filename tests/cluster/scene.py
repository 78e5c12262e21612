"""Teams, pools, nodes and jobs in the real cluster, as its tests want them."""

import json
from typing import Any

from django.utils import timezone

from deploy.devcluster import DevCluster
from jobs import actions as job_actions
from jobs import observe, reconcile
from jobs.models import Job
from jobs.state import JobState
from portal import health
from portal.kube import objects
from tenants import reconcile as tenancy
from tenants.access import TeamRole
from tenants.actions import SYSTEM
from tenants.models import Team, User
from tests.integration.jobs.test_submission import submission


def observe_nodes() -> None:
    """What the observe process does with a fresh list of nodes."""
    listing = tenancy.connected().list("v1", "Node", type=objects.Node)
    observe.replace_nodes(listing.items, now=timezone.now())
    health.beat(health.CLUSTER, now=timezone.now())


def found(cluster: DevCluster, *args: str) -> Any:
    """What kubectl finds, decoded."""
    return json.loads(cluster.kubectl("get", *args, "-o", "json").stdout)


def submitted(**changes: Any) -> Job:
    """A job of team a that admission has admitted."""
    user, _ = User.objects.get_or_create(username="alice", issuer="https://idp.test", subject="alice")
    from_system = SYSTEM.__class__(
        user.pk, "alice", teams={Team.objects.get(slug="a").pk: TeamRole.DEVELOPER}
    )
    job, _ = job_actions.submit_job(actor=from_system, submission=submission(**changes))
    reconcile.admit_pool(job.pool_id)
    job.refresh_from_db()
    assert job.state == JobState.ADMITTED, job.waiting_code
    return job
