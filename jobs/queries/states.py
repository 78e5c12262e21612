"""Whole states for reconcile and admission: unscoped, read in a few queries, handed on as frozen values."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.db.models import Q

from jobs.admission import Entitlement, Holder, NodeRoom, QueuedJob, Snapshot
from jobs.models import Job, LogStream, Node, Pod
from jobs.queries.cluster import ENDED, is_usable
from jobs.state import HOLDING, CommandMode, ContainerState, JobSpec, JobState, PodState, Resources
from portal.health import cluster_unreachable_since
from tenants.models import Pool, PriorityTier, Quota, Team, TierGrant


def job_spec(job: Job) -> JobSpec:
    """What is wanted of the cluster for this job's current attempt."""
    return JobSpec(
        job_id=job.pk,
        attempt=job.attempt,
        name=job.name,
        team_id=job.team_id,
        team_uid=str(job.team.uid),
        namespace=job.team.namespace,
        owner=job.owner.username,
        image=job.image,
        command_mode=CommandMode(job.command_mode),
        argv=tuple(job.argv),
        script=job.script,
        env=tuple(job.env.items()),
        workers=job.workers,
        resources=Resources(job.cpu_milli, job.memory_bytes, job.gpus),
        gpu_resource=job.pool.gpu_resource,
        pool_slug=job.pool.slug,
        priority_class=job.tier.slug,
        retries=job.retries,
        wall_seconds=job.wall_seconds,
        grace_seconds=job.grace_seconds,
        planned_nodes=tuple(job.planned_nodes),
        labels=job.labels,
        annotations=job.annotations,
    )


def pod_states(job: Job) -> list[PodState]:
    """The pods of the job's current attempt, oldest first; pods that are gone tell how they ended."""
    return [
        PodState(
            uid=pod.uid,
            name=pod.name,
            phase=pod.phase if pod.gone_at is None or pod.phase in ENDED else "Gone",
            node_name=pod.node_name,
            is_ready=pod.is_ready,
            is_deleting=pod.deleting_at is not None,
            containers=tuple(_container(fields) for fields in pod.containers),
            reason=pod.reason,
            message=pod.message,
            disruption=pod.disruption,
            unschedulable=pod.unschedulable,
            started_at=pod.started_at,
            finished_at=pod.finished_at,
        )
        for pod in Pod.objects.filter(job=job, attempt=job.attempt).order_by("created_at", "id")
    ]


def _container(columns: Mapping[str, Any]) -> ContainerState:
    times = {
        name: datetime.fromisoformat(columns[name]) if columns.get(name) else None
        for name in ("started_at", "finished_at")
    }
    return ContainerState(**{**columns, **times})


def streams_are_complete(job: Job) -> bool:
    """Whether every log of the job was read to its end."""
    return not LogStream.objects.filter(pod__job=job, is_complete=False).exists()


def queue_snapshot(pool: Pool) -> Snapshot:
    """The pool as admission looks at it."""
    nodes = list(Node.objects.filter(pool=pool, gone_at=None))
    pods = _pods_in(pool)
    holding = list(Job.objects.filter(pool=pool, state__in=HOLDING))
    return Snapshot(
        pool_id=pool.pk,
        pool_name=pool.name,
        nodes=tuple(_room(node, [p for p in pods if p.node_name == node.name], pool) for node in nodes),
        entitlements=_entitlements(pool, pods, holding),
        queue=_queue(pool),
        holders=tuple(_holders(holding, pods)),
        is_on_hold=pool.is_on_hold,
        is_fifo=pool.order_policy == "fifo",
        counts_gpus=bool(pool.gpu_resource),
        max_wall_seconds=pool.max_wall_seconds,
        unreachable_since=cluster_unreachable_since(),
    )


def entitlements_of(pool: Pool) -> Mapping[int, Entitlement]:
    """Per team, what it may hold in the pool and what it holds."""
    return _entitlements(pool, _pods_in(pool), Job.objects.filter(pool=pool, state__in=HOLDING))


def _pods_in(pool: Pool) -> list[Pod]:
    """Living pods on the pool's nodes, and those of its jobs that are not bound yet."""
    names = Node.objects.filter(pool=pool, gone_at=None).values("name")
    return list(
        Pod.objects.filter(gone_at=None)
        .exclude(phase__in=ENDED)
        .filter(Q(node_name__in=names) | Q(job__pool=pool))
        .select_related("job")
    )


def _queue(pool: Pool) -> tuple[QueuedJob, ...]:
    rows = Job.objects.filter(pool=pool, state=JobState.QUEUED, cancel_requested_at=None)
    return tuple(
        QueuedJob(
            job_id=job.pk,
            team_id=job.team_id,
            owner_id=job.owner_id,
            tier_id=job.tier_id,
            tier_value=job.tier.value,
            tier_name=job.tier.name,
            workers=job.workers,
            gpus=job.gpus,
            cpu_milli=job.cpu_milli,
            memory_bytes=job.memory_bytes,
            queued_at=job.queued_at,
            wall_seconds=job.wall_seconds,
        )
        for job in rows.select_related("tier")
    )


def _room(node: Node, pods: Iterable[Pod], pool: Pool) -> NodeRoom:
    pods = list(pods)
    works = node.gpus.get(pool.gpu_resource, {}).get("allocatable", 0)
    used = sum(pod.gpus.get(pool.gpu_resource, 0) for pod in pods)
    return NodeRoom(
        name=node.name,
        gpus_allocatable=works,
        cpu_allocatable=node.cpu_milli,
        memory_allocatable=node.memory_bytes,
        gpus_free=max(0, works - used),
        cpu_free=max(0, node.cpu_milli - sum(pod.cpu_milli for pod in pods)),
        memory_free=max(0, node.memory_bytes - sum(pod.memory_bytes for pod in pods)),
        pods_free=max(0, node.pods - len(pods)),
        is_usable=is_usable(node, pool.slug),
    )


def _holders(holding: Iterable[Job], pods: Iterable[Pod]) -> Iterable[Holder]:
    """Admitted jobs with workers that no node shows yet."""
    bound = Counter(
        pod.job_id
        for pod in pods
        if pod.job_id and pod.node_name and pod.job and pod.attempt == pod.job.attempt
    )
    for job in holding:
        # A job that is stopping only holds what its remaining pods hold; no more workers come.
        missing = 0 if job.state == JobState.STOPPING else job.workers - bound[job.pk] - _done(job, pods)
        if missing > 0:
            yield Holder(
                job_id=job.pk,
                unbound_workers=missing,
                gpus=job.gpus,
                cpu_milli=job.cpu_milli,
                memory_bytes=job.memory_bytes,
                planned_nodes=tuple(job.planned_nodes[bound[job.pk] :]),
            )


def _done(job: Job, pods: Iterable[Pod]) -> int:
    """Workers of a job that have succeeded already and need no room any more."""
    if job.workers == 1:
        return 0
    return Pod.objects.filter(job=job, attempt=job.attempt, phase="Succeeded").count()


def _entitlements(pool: Pool, pods: Iterable[Pod], holding: Iterable[Job]) -> Mapping[int, Entitlement]:
    """Per team: its quota, and what it holds by admitted jobs and by foreign pods on the pool's nodes."""
    counts_gpus = bool(pool.gpu_resource)
    usage: Counter[int] = Counter()
    by_owner: dict[int, Counter[int]] = defaultdict(Counter)
    by_tier: dict[int, Counter[int]] = defaultdict(Counter)
    for job in holding:
        size = job.workers * (job.gpus if counts_gpus else 1)
        usage[job.team_id] += size
        by_owner[job.team_id][job.owner_id] += size
        by_tier[job.team_id][job.tier_id] += size
    for pod in pods:
        # Foreign pods, and pods of jobs that ended but whose pods have not yet, hold what they hold.
        if pod.job is None or pod.job.state not in HOLDING:
            usage[pod.team_id] += pod.gpus.get(pool.gpu_resource, 0) if counts_gpus else 1
    quotas = {quota.team_id: quota for quota in Quota.objects.filter(pool=pool)}
    tiers = _tiers_by_team()
    default_tiers = dict.fromkeys(PriorityTier.objects.filter(is_default=True).values_list("id", flat=True))
    found = {}
    for team in Team.objects.filter(deleted_at=None):
        quota = quotas.get(team.pk)
        found[team.pk] = Entitlement(
            team_id=team.pk,
            team_name=team.name,
            guarantee=quota.guarantee if quota else 0,
            borrow_cap=quota.borrow_cap if quota else 0,
            lend_cap=quota.lend_cap if quota else 0,
            hard_max=quota.hard_max if quota else None,
            per_user_cap=quota.per_user_cap if quota else None,
            max_wall_seconds=quota.max_wall_seconds if quota else None,
            is_suspended=team.is_suspended,
            usage=usage[team.pk],
            usage_by_owner=by_owner[team.pk],
            usage_by_tier=by_tier[team.pk],
            tiers=default_tiers | tiers[team.pk],
        )
    return found


def _tiers_by_team() -> Mapping[int, dict[int, int | None]]:
    tiers: dict[int, dict[int, int | None]] = defaultdict(dict)
    for grant in TierGrant.objects.all():
        tiers[grant.team_id][grant.tier_id] = grant.max_gpus
    return tiers
