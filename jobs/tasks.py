"""Doorbells of this app: what `ring("jobs.tasks…")` starts. Arguments are ids; everything may run twice."""

from django.utils import timezone

from jobs import reconcile
from jobs.actions.timeline import ring_admission
from jobs.models import Job, PoolQueue
from jobs.state import ACTIVE, JobState
from portal.queue import ring

SWEEP_LIMIT = 500


def admit_pool(pool_id: int) -> None:
    """Look at a pool's queue."""
    reconcile.admit_pool(pool_id)


def reconcile_job(job_id: int) -> None:
    """Look at a job."""
    reconcile.reconcile_job(job_id)


def sweep() -> None:
    """Ring again whatever is due: retries whose time has come, and what a lost bell missed."""
    now = timezone.now()
    for job_id in Job.due(now, SWEEP_LIMIT):
        ring("jobs.tasks.reconcile_job", job_id)
    for pool_id in PoolQueue.due(now, SWEEP_LIMIT):
        ring("jobs.tasks.admit_pool", pool_id)


def cluster_came_back() -> None:
    """Retry at once what failed while the cluster was away, and look at every queue with waiting jobs."""
    now = timezone.now()
    failed = list(
        Job.objects.filter(state__in=ACTIVE, failures__gt=0).values_list("id", flat=True)[:SWEEP_LIMIT]
    )
    Job.objects.filter(pk__in=failed).update(reconcile_after=now)
    for job_id in failed:
        ring("jobs.tasks.reconcile_job", job_id)
    waiting = (
        Job.objects.filter(state=JobState.QUEUED).order_by().values_list("pool_id", flat=True).distinct()
    )
    ring_admission(*waiting)
