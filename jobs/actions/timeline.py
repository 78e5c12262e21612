"""A job's timeline, the news of its changes and the bells; used by the other actions inside their transactions."""

from datetime import datetime

from jobs.models import Job, JobEvent, PoolQueue
from portal.live import announce
from portal.queue import ring


def add_event(
    job: Job, *, at: datetime, reason: str, state: str = "", message: str = "", actor: str = ""
) -> None:
    """Write one step into the job's timeline; `state` only when it was entered with this step."""
    JobEvent.objects.create(job=job, at=at, reason=reason, state=state, message=message, actor=actor)


def announce_job(job: Job) -> None:
    """Tell open pages that this job, and lists with it, changed."""
    announce(f"job:{job.pk}", team_id=job.team_id)
    announce("jobs", team_id=job.team_id)


def ring_admission(*pool_ids: int) -> None:
    """Have the queues of these pools looked at: something came, went, or made room."""
    PoolQueue.touch(*pool_ids)
    for pool_id in sorted(pool_ids):
        ring("jobs.tasks.admit_pool", pool_id)
