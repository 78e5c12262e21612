"""Jobs as a viewer may see them. Every function takes the viewer; foreign jobs do not exist for it."""

from django.db.models import QuerySet

from jobs.admission import Cause, CauseCode
from jobs.models import Job
from tenants.access import Viewer
from tenants.queries import NotVisible


def jobs_for(viewer: Viewer) -> QuerySet[Job]:
    """Jobs of the viewer's teams; all of them for platform roles (names, sizes, states and causes only)."""
    jobs = Job.objects.select_related("team", "owner", "pool", "tier")
    return jobs if viewer.sees_every_team else jobs.filter(team_id__in=viewer.team_ids)


def get_job(viewer: Viewer, pk: int) -> Job:
    """One job; NotVisible (404) when there is none or it is another team's, without telling which."""
    job = jobs_for(viewer).filter(pk=pk).first()
    if job is None:
        raise NotVisible(f"There is no job {pk}, or it is not yours to see.")
    return job


def waiting_cause(job: Job) -> Cause | None:
    """Why the job waits, from its row; None when it does not."""
    if not job.waiting_code:
        return None
    return Cause(CauseCode(job.waiting_code), job.waiting_detail)
