"""Make the cluster so, for one job or one queue; the only code of this app that reads rows and touches the cluster.

Level-triggered: each run reads everything and repeats harmlessly. Called by `jobs/tasks.py`; a run that dies leaves a
claim that expires.
"""

import contextlib
import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.utils import timezone

from jobs import actions
from jobs.admission import Cause, CauseCode, decide
from jobs.manifests import job_manifests, object_name, owner_labels
from jobs.models import Job, PoolQueue
from jobs.queries.states import job_spec, pod_states, queue_snapshot, streams_are_complete
from jobs.state import HOLDING, TERMINAL, JobSpec, JobState
from jobs.status import Condition, ObservedJob, derive_status
from portal.kube import names, objects
from portal.kube.client import Cluster
from portal.kube.errors import ClusterError, ClusterUnreachable, Invalid, NotFound
from portal.kube.plan import is_owned, key_of, make_plan
from portal.queue import ring
from tenants.reconcile import connected

log = logging.getLogger(__name__)

RECHECK = timedelta(seconds=60)  # a job that holds room is looked at again even when no bell rang
WHILE_STOPPING = timedelta(seconds=3)
WHILE_LOGS_ARE_READ = timedelta(seconds=10)
LOGS_PATIENCE = timedelta(hours=1)  # objects go after this even when a log could not be read to its end
KINDS = (("batch/v1", "Job"), ("v1", "Service"))


def admit_pool(pool_id: int) -> None:
    """Run one admission pass over a pool, alone: the queue's claim keeps a second pass out."""
    PoolQueue.objects.get_or_create(pool_id=pool_id)
    now = timezone.now()
    token = PoolQueue.claim(pool_id, now=now)
    if token is None:
        return  # the holder sees that the generation moved, and rings again
    queue = PoolQueue.objects.select_related("pool").get(pk=pool_id)
    generation = queue.generation
    try:
        if queue.is_due(now):
            decisions = decide(queue_snapshot(queue.pool))
            if not actions.record_decisions(pool_id, decisions, token=token, now=timezone.now()):
                return  # the claim expired meanwhile: another pass has taken over
    except Exception as error:
        PoolQueue.fail(pool_id, token, error=repr(error), now=timezone.now())
        raise
    if not PoolQueue.settle(pool_id, token, observed_generation=generation):
        ring("jobs.tasks.admit_pool", pool_id)


def reconcile_job(job_id: int) -> None:
    """Bring one job's objects and state together; errors of the cluster are stored on the row and retried."""
    token = Job.claim(job_id, now=timezone.now())
    if token is None:
        return
    job = Job.objects.select_related("team", "pool", "tier", "owner").get(pk=job_id)
    generation = job.generation
    try:
        again = _reconcile(job, connected())
    except ClusterError as error:
        _show_trouble(job, error)
        Job.fail(job_id, token, error=str(error), now=timezone.now())
        return
    except Exception as error:
        Job.fail(job_id, token, error=repr(error), now=timezone.now())
        raise
    after = timezone.now() + again if again is not None else None
    if not Job.settle(job_id, token, observed_generation=generation, after=after):
        ring("jobs.tasks.reconcile_job", job_id)


def _reconcile(job: Job, cluster: Cluster) -> timedelta | None:
    """One look at the job; returns when to look again, None for not before something happens."""
    state = JobState(job.state)
    if state in TERMINAL:
        return _clean_up(job, cluster)
    if state is JobState.QUEUED:
        return _remove_leftovers(job, cluster) if job.attempt else None
    if job.cancel_requested_at is not None:
        return _stop(job, cluster)
    return _run(job, cluster)


def _run(job: Job, cluster: Cluster) -> timedelta | None:
    """The job holds room: its objects must be there, and its state follows what is observed."""
    spec = job_spec(job)
    observed = _observe(job, cluster)
    mine = _find_job(observed, spec)
    if mine is None and job.kube_uid:
        return _deleted_in_cluster(job, cluster)
    if mine is None:
        created = _create(job, cluster, job_manifests(spec), observed)
        if created is None:
            return RECHECK
        mine = created
    actions.clear_refusal(job)
    seen = _as_observed(mine)
    status = derive_status(seen, pod_states(job), workers=job.workers, retries=job.retries)
    actions.record_status(job, status, kube_uid=seen.uid, now=timezone.now())
    if status.state in TERMINAL:
        return timedelta(seconds=settings.BERTH_KEEP_FINISHED_SECONDS)
    return RECHECK


def _create(
    job: Job, cluster: Cluster, desired: Sequence[dict[str, Any]], observed: Sequence[dict[str, Any]]
) -> dict[str, Any] | None:
    """Apply the attempt's objects. The Job itself is never applied twice: its template cannot change anyway.

    What would be refused again and again ends the job, so that it holds no room: a name that is taken, a field that
    the API server does not take.
    """
    plan = make_plan(desired, observed, owner=_owner(job))
    if plan.refused:
        key = plan.refused[0].key
        _refuse(job, f"{key.kind} {key.name} exists already in {key.namespace} and is not this job's.")
        return None
    outcome = cluster.execute(plan)
    for _key, error in outcome.errors:
        if isinstance(error, Invalid):
            _refuse(job, _invalid_words(error))
            return None
        raise error
    return next((applied for applied in outcome.applied if applied["kind"] == "Job"), None)


def _refuse(job: Job, message: str) -> None:
    actions.finish(job, state=JobState.FAILED, reason="Refused", message=message, now=timezone.now())


def _invalid_words(error: Invalid) -> str:
    """Which fields, without their values: platform roles read causes, but no tenant's labels."""
    return f"The cluster refused the job: it does not take {', '.join(error.fields) or 'a field'}."


def _deleted_in_cluster(job: Job, cluster: Cluster) -> timedelta | None:
    """Somebody deleted the Job with kubectl. That is a wish to stop it, so it is not made again."""
    if _living_pods(job, cluster):
        return WHILE_STOPPING
    actions.finish(
        job,
        state=JobState.CANCELLED,
        reason="DeletedInCluster",
        message="Its Job was deleted in the cluster, not through Berth.",
        now=timezone.now(),
    )
    return timedelta(seconds=settings.BERTH_KEEP_FINISHED_SECONDS)


def _stop(job: Job, cluster: Cluster) -> timedelta | None:
    """Cancel: delete the objects, and call it cancelled once no pod is left that holds anything."""
    observed = _observe(job, cluster)
    mine = _find_job(observed, job_spec(job))
    if mine is not None:
        seen = _as_observed(mine)
        status = derive_status(seen, pod_states(job), workers=job.workers, retries=job.retries)
        actions.record_status(job, status, kube_uid=seen.uid, now=timezone.now())
        if status.state in TERMINAL:  # it ended by itself before the cancel reached it
            return timedelta(seconds=settings.BERTH_KEEP_FINISHED_SECONDS)
    _delete(job, cluster, observed)
    if _living_pods(job, cluster):
        return WHILE_STOPPING
    actions.finish(
        job,
        state=JobState.CANCELLED,
        reason="Cancelled",
        message=f"Cancelled by {job.cancel_requested_by}.",
        now=timezone.now(),
    )
    return timedelta(seconds=settings.BERTH_KEEP_FINISHED_SECONDS)


def _remove_leftovers(job: Job, cluster: Cluster) -> timedelta | None:
    """Queued again: what the last attempt left in the cluster goes."""
    return WHILE_STOPPING if _delete(job, cluster, _observe(job, cluster)) else None


def _clean_up(job: Job, cluster: Cluster) -> timedelta | None:
    """After its keeping time a finished job's objects go; the record, its timeline and its logs stay."""
    if job.cleaned_at is not None or not job.attempt:
        return None
    now = timezone.now()
    finished = job.finished_at or now
    rest = finished + timedelta(seconds=settings.BERTH_KEEP_FINISHED_SECONDS) - now
    if rest > timedelta(0):
        return rest
    if not streams_are_complete(job) and now < finished + LOGS_PATIENCE:
        return WHILE_LOGS_ARE_READ
    if _delete(job, cluster, _observe(job, cluster)):
        return WHILE_STOPPING
    Job.objects.filter(pk=job.pk).update(cleaned_at=now)
    return None


def _observe(job: Job, cluster: Cluster) -> list[dict[str, Any]]:
    """Every object in the cluster that carries this job's labels, of any attempt, and what stands under its names.

    The Job we made is known by its uid even where somebody took the labels off; they are put back. Anything else that
    stands under our names comes as it is, and plans refuse it.
    """
    selector = names.selector(job=str(job.pk))
    found: list[dict[str, Any]] = []
    for api_version, kind in KINDS if job.workers > 1 else KINDS[:1]:
        listing = cluster.list(
            api_version, kind, namespace=job.team.namespace, label_selector=selector, type=dict
        )
        found += [item | {"apiVersion": api_version, "kind": kind} for item in listing.items]
    known = {key_of(item) for item in found}
    for key in {key_of(each) for each in job_manifests(job_spec(job))} - known:
        with contextlib.suppress(NotFound):
            item = cluster.get(key)
            if item["metadata"]["uid"] == job.kube_uid:
                item = cluster.merge(key, {"metadata": {"labels": _owner(job)}})
            found.append(item)
    return found


def _owner(job: Job) -> dict[str, str]:
    return owner_labels(team_uid=str(job.team.uid), job_id=job.pk)


def _delete(job: Job, cluster: Cluster, observed: Sequence[dict[str, Any]]) -> bool:
    """Delete what is this job's; whether there was anything, which may take a while to go."""
    plan = make_plan([], observed, owner=_owner(job))
    for _key, error in cluster.execute(plan).errors:
        raise error
    return any(is_owned(item, _owner(job)) for item in observed)


def _living_pods(job: Job, cluster: Cluster) -> bool:
    """Whether any pod of the job still runs; asked of the cluster itself, since rows may lag."""
    selector = names.selector(job=str(job.pk))
    listing = cluster.list(
        "v1", "Pod", namespace=job.team.namespace, label_selector=selector, type=objects.Pod
    )
    return any(pod.status.phase not in ("Succeeded", "Failed") for pod in listing.items)


def _find_job(observed: Sequence[dict[str, Any]], spec: JobSpec) -> dict[str, Any] | None:
    owner, name = owner_labels(team_uid=spec.team_uid, job_id=spec.job_id), object_name(spec)
    return next(
        (
            item
            for item in observed
            if item["kind"] == "Job"
            and item["metadata"]["name"] == name
            and is_owned(item, owner)
            and "deletionTimestamp" not in item["metadata"]
        ),
        None,
    )


def _as_observed(manifest: dict[str, Any]) -> ObservedJob:
    job = objects.convert(manifest, objects.Job)
    return ObservedJob(
        uid=job.metadata.uid,
        conditions=tuple(
            Condition(c.type, c.status == "True", c.reason, c.message, c.last_transition_time)
            for c in job.status.conditions
        ),
        started_at=job.status.start_time,
        completed_at=job.status.completion_time,
    )


def _show_trouble(job: Job, error: ClusterError) -> None:
    """Tell on the job's page what the cluster answered, or that it does not answer."""
    now = timezone.now()
    if isinstance(error, ClusterUnreachable):
        cause = Cause(
            CauseCode.CLUSTER_UNREACHABLE, {"since": _since(job, now).isoformat(timespec="seconds")}
        )
    else:
        message = _invalid_words(error) if isinstance(error, Invalid) else str(error)
        cause = Cause(CauseCode.CLUSTER_REFUSED, {"message": message})
    if job.state in HOLDING:
        actions.record_refusal(job, cause, now=now)


def _since(job: Job, now: datetime) -> datetime:
    known = job.waiting_code == CauseCode.CLUSTER_UNREACHABLE and job.waiting_since
    return known or now
