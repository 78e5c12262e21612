"""Pods and nodes as the watches report them, written down; rings what has to look at the change.

Called by the observe process only, with batches of values already reduced to what is stored, one transaction each.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction

from jobs.actions.timeline import ring_admission
from jobs.logs.streams import ensure_streams
from jobs.models import Job, Node, Pod
from jobs.state import HOLDING
from portal.live import announce
from portal.queue import ring
from tenants.models import Pool, Team
from tenants.state import pool_of

ENDED = ("Succeeded", "Failed")


def observe_pods(
    seen: Sequence[Mapping[str, Any]], *, gone: Collection[str], now: datetime, is_complete: bool = False
) -> None:
    """Store pods (columns of `jobs.models.Pod` plus `job_label`), and that others are gone.

    `gone` holds uids that were reported deleted. With `is_complete` the batch is the whole cluster: whatever is
    stored as present and not in it has vanished without a report.
    """
    teams = dict(Team.objects.values_list("namespace", "id"))
    rows = [row for row in seen if row["namespace"] in teams]
    with transaction.atomic():
        known = {pod.uid: pod for pod in Pod.objects.filter(uid__in=[row["uid"] for row in rows])}
        jobs = _jobs_of(rows)
        changed = [pod for row in rows if (pod := _store(row, teams, jobs, known, now))]
        changed += _mark_gone(gone, {row["uid"] for row in rows} if is_complete else None, now)
        if changed:
            ensure_streams(changed, now=now)
            _ring_for(changed)


def _jobs_of(rows: Iterable[Mapping[str, Any]]) -> dict[str, Job]:
    ids = _job_ids(str(row["job_label"]) for row in rows)
    return {str(job.pk): job for job in Job.objects.filter(pk__in=ids).only("id", "team_id", "pool_id")}


def _job_ids(labels: Iterable[str]) -> set[int]:
    """Ids that such labels can mean; anybody may write a label with kubectl."""
    return {int(label) for label in labels if label.isascii() and label.isdecimal() and len(label) < 18}


def _store(
    row: Mapping[str, Any],
    teams: Mapping[str, int],
    jobs: Mapping[str, Job],
    known: dict[str, Pod],
    now: datetime,
) -> Pod | None:
    """Insert or update one pod; None when the row says nothing new."""
    columns = {key: value for key, value in row.items() if key != "job_label"}
    team_id = teams[row["namespace"]]
    job = jobs.get(str(row["job_label"]))
    if job is not None and job.team_id != team_id:
        job = None  # a label pasted by hand in another team's namespace means nothing
    pod = known.get(row["uid"])
    if pod is None:
        pod = Pod.objects.create(team_id=team_id, job=job, **columns)
        known[pod.uid] = pod
        return pod
    if _is_older(row["resource_version"], pod.resource_version) or pod.gone_at is not None:
        return None
    differing = [key for key, value in columns.items() if getattr(pod, key) != value]
    if pod.phase in ENDED and row["phase"] not in ENDED:
        return None  # an ended pod does not come back to life under the same uid (RW-058)
    if not differing:
        return None
    for key in differing:
        setattr(pod, key, columns[key])
    pod.save(update_fields=differing)
    return pod if differing != ["resource_version"] else None


def _is_older(version: str, stored: str) -> bool:
    """Whether an object version was replayed from before the stored one."""
    return version.isdecimal() and stored.isdecimal() and int(version) < int(stored)


def _mark_gone(gone: Collection[str], present: Collection[str] | None, now: datetime) -> list[Pod]:
    missing = Pod.objects.filter(gone_at=None)
    vanished = list(missing.filter(uid__in=gone)) if gone else []
    if present is not None:
        vanished += [pod for pod in missing.all() if pod.uid not in present and pod not in vanished]
    for pod in vanished:
        pod.gone_at = now
    Pod.objects.filter(pk__in=[pod.pk for pod in vanished]).update(gone_at=now)
    return vanished


def _ring_for(pods: Sequence[Pod]) -> None:
    """Whoever has to look at these pods: their jobs, the queues whose room changed, the open pages."""
    job_ids = sorted({pod.job_id for pod in pods if pod.job_id})
    if job_ids:
        Job.touch(*job_ids)
        for job_id in job_ids:
            ring("jobs.tasks.reconcile_job", job_id)
    freed = [pod for pod in pods if pod.gone_at or pod.phase in ENDED]
    if freed:
        pool_ids = set(
            Job.objects.filter(pk__in=[pod.job_id for pod in freed]).values_list("pool_id", flat=True)
        )
        if any(pod.job_id is None for pod in freed):
            pool_ids |= set(Pool.objects.values_list("id", flat=True))
        ring_admission(*pool_ids)
    announce("cluster")
    for job_id, team_id in {(pod.job_id, pod.team_id) for pod in pods if pod.job_id}:
        announce(f"job:{job_id}", team_id=team_id)


def observe_jobs(labels: Collection[str], *, present: Collection[str] | None = None) -> None:
    """Have the jobs with these `berth/job` labels looked at, as far as they are still open.

    With `present`, the uids of all Jobs of the cluster: also whatever holds room without its Job being there.
    """
    ids = _job_ids(labels)
    with transaction.atomic():
        holding = Job.objects.filter(state__in=HOLDING)
        job_ids = set(holding.filter(pk__in=ids).values_list("id", flat=True))
        if present is not None:
            uids = holding.exclude(kube_uid="").values_list("id", "kube_uid")
            job_ids |= {job_id for job_id, uid in uids if uid not in present}
        if job_ids:
            Job.touch(*sorted(job_ids))
        for job_id in sorted(job_ids):
            ring("jobs.tasks.reconcile_job", job_id)


def observe_nodes(
    seen: Sequence[Mapping[str, Any]], *, gone: Collection[str], now: datetime, is_complete: bool = False
) -> None:
    """Store nodes (columns of `jobs.models.Node`), find each its pool, and ring pools whose nodes changed."""
    pools = list(Pool.objects.all())
    with transaction.atomic():
        known = {node.name: node for node in Node.objects.all()}
        touched: set[int | None] = set()
        for row in seen:
            touched |= _store_node(row, pools, known, now)
        names = set(gone)
        if is_complete:
            names |= set(known) - {row["name"] for row in seen}
        for name in names:
            node = known.get(name)
            if node is not None and node.gone_at is None:
                Node.objects.filter(pk=node.pk).update(gone_at=now, is_ready=False)
                touched.add(node.pool_id)
        if touched:
            announce("cluster")
            pool_ids = {pool_id for pool_id in touched if pool_id is not None}
            ring_admission(*pool_ids)
            ring_pools(pool_ids)


def _store_node(
    row: Mapping[str, Any], pools: Sequence[Pool], known: dict[str, Node], now: datetime
) -> set[int | None]:
    """Insert or update one node; the ids of the pools this concerns."""
    pool = pool_of(row["labels"], pools)
    columns = dict(row) | {"pool_id": pool.pk if pool else None, "gone_at": None}
    node = known.get(row["name"])
    if node is None:
        known[row["name"]] = Node.objects.create(seen_at=now, **columns)
        return {columns["pool_id"]}
    watched = [key for key in columns if key != "resource_version"]
    differing = [key for key in watched if getattr(node, key) != columns[key]]
    if not differing:
        return set()
    before = node.pool_id
    for key, value in columns.items():
        setattr(node, key, value)
    node.seen_at = now
    node.save()
    return {before, node.pool_id}


def ring_pools(pool_ids: Collection[int]) -> None:
    """Have the labels and taints of these pools' nodes looked at."""
    Pool.touch(*sorted(pool_ids))
    for pool_id in sorted(pool_ids):
        ring("tenants.tasks.reconcile_pool", pool_id)
