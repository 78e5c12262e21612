"""The first page: what runs, what waits and why, quota left, free GPUs by model."""

from collections import Counter
from dataclasses import dataclass

from django.db.models import Count, F, Sum

from jobs.admission import Cause
from jobs.admission.rules import ceiling
from jobs.models import Job
from jobs.queries.cluster import ClusterView, cluster_view
from jobs.queries.lists import jobs_for, waiting_cause
from jobs.queries.states import entitlements_of
from jobs.state import HOLDING, TERMINAL, JobState
from tenants.access import Viewer
from tenants.models import Team
from tenants.queries import pools_for, teams_for

SHOWN = 8


@dataclass(frozen=True)
class QuotaLine:
    """One team's standing in one pool, in GPUs (or worker pods)."""

    team: Team
    pool_name: str
    pool_slug: str
    used: int
    guarantee: int
    limit: int
    unit: str

    @property
    def borrowable(self) -> int:
        """How much above the guarantee the team may take while others are idle."""
        return max(0, self.limit - self.guarantee)

    @property
    def left(self) -> int:
        """What the team may still take; never negative."""
        return max(0, self.limit - self.used)

    @property
    def over(self) -> int:
        """How far use stands above the limit, as after the limit was lowered."""
        return max(0, self.used - self.limit)


@dataclass(frozen=True)
class HomeView:
    """Everything the first page shows."""

    counts: dict[str, int]
    running: list[Job]
    waiting: list[tuple[Job, Cause | None]]
    finished: list[Job]
    quotas: list[QuotaLine]
    cluster: ClusterView
    gpus_held: int

    @property
    def starting_words(self) -> str:
        """What is on its way, for the hint below the number of running jobs."""
        return f"{self.counts['starting']} starting" if self.counts["starting"] else ""


def home_view(viewer: Viewer) -> HomeView:
    """The first page for one viewer."""
    jobs = jobs_for(viewer)
    by_state = Counter(
        dict(jobs.order_by().values_list("state").annotate(count=Count("id")).values_list("state", "count"))
    )
    held = jobs.filter(state__in=HOLDING).order_by().aggregate(gpus=Sum(F("workers") * F("gpus")))["gpus"]
    waiting = jobs.filter(state=JobState.QUEUED).order_by("created_at", "id")[:SHOWN]
    return HomeView(
        counts={
            "running": by_state[JobState.RUNNING],
            "starting": by_state[JobState.ADMITTED] + by_state[JobState.STARTING],
            "waiting": by_state[JobState.QUEUED],
            "finished": sum(by_state[state] for state in TERMINAL),
            "total": sum(by_state.values()),
        },
        running=list(jobs.filter(state__in=HOLDING)[:SHOWN]),
        waiting=[(job, waiting_cause(job)) for job in waiting],
        finished=list(jobs.filter(state__in=TERMINAL).order_by("-finished_at", "-id")[:5]),
        quotas=quota_lines(viewer),
        cluster=cluster_view(viewer),
        gpus_held=held or 0,
    )


def quota_lines(viewer: Viewer) -> list[QuotaLine]:
    """Use and limit of the viewer's own teams in every pool where they have either."""
    lines = []
    teams = [team for team in teams_for(viewer) if team.pk in viewer.teams]
    for pool in pools_for(viewer):
        entitlements = entitlements_of(pool)
        for team in teams:
            entitlement = entitlements.get(team.pk)
            if entitlement is not None and (ceiling(entitlement) or entitlement.usage):
                lines.append(
                    QuotaLine(
                        team=team,
                        pool_name=pool.name,
                        pool_slug=pool.slug,
                        used=entitlement.usage,
                        guarantee=entitlement.guarantee,
                        limit=ceiling(entitlement),
                        unit="GPUs" if pool.gpu_resource else "workers",
                    )
                )
    return lines
