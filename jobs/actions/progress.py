"""What the machinery found out or decided about jobs, written down: decisions, status, refusals.

Called by `jobs/reconcile.py` with values computed elsewhere. Every write is conditional on the state it was computed
from, so that a person's cancel at the same moment is never undone, and a terminal state stays final (RW-058).
"""

from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import F

from jobs.actions.timeline import add_event, announce_job, ring_admission
from jobs.admission import Cause, Decisions
from jobs.models import Job, PoolQueue
from jobs.state import HOLDING, TERMINAL, TRANSITIONS, JobState
from jobs.status import Status
from portal.live import announce
from portal.queue import ring


def record_decisions(pool_id: int, decisions: Decisions, *, token: UUID, now: datetime) -> bool:
    """Admit what the pass admitted and store for every waiting job its cause and place.

    False, and nothing written, when the queue's claim `token` is no longer held: the decisions are stale.
    """
    waiting_rows = {
        job.pk: job
        for job in Job.objects.filter(pk__in=decisions.waiting).only(
            "waiting_code", "waiting_detail", "queue_position", "team_id"
        )
    }
    with transaction.atomic():
        # Touching the claim first holds its row until the end, so that no other pass can write in between.
        if not PoolQueue.objects.filter(pk=pool_id, claim_token=token).update(claim_token=token):
            return False
        admitted = sum(_admit(each.job_id, each.nodes, now) for each in decisions.admitted)
        changed = 0
        for job_id, cause in decisions.waiting.items():
            row = waiting_rows.get(job_id)
            if row is not None:
                changed += _store_cause(row, cause, decisions.positions[job_id], now)
        if admitted or changed:
            announce(f"queue:{pool_id}")
    return True


def _admit(job_id: int, nodes: tuple[str, ...], now: datetime) -> bool:
    done = Job.objects.filter(pk=job_id, state=JobState.QUEUED, cancel_requested_at=None).update(
        state=JobState.ADMITTED,
        reason="Admitted",
        message="",
        attempt=F("attempt") + 1,
        planned_nodes=list(nodes),
        admitted_at=now,
        waiting_code="",
        waiting_detail={},
        waiting_since=None,
        queue_position=None,
        generation=F("generation") + 1,
    )
    if not done:
        return False
    job = Job.objects.get(pk=job_id)
    where = ", ".join(sorted(set(nodes)))
    add_event(job, at=now, reason="Admitted", state=JobState.ADMITTED, message=f"Planned on {where}.")
    announce_job(job)
    ring("jobs.tasks.reconcile_job", job_id)
    return True


def _store_cause(row: Job, cause: Cause, position: int, now: datetime) -> bool:
    """Write the cause where it differs; `waiting_since` moves only when the code changes."""
    changes: dict[str, object] = {}
    if row.waiting_code != cause.code:
        changes |= {"waiting_code": cause.code, "waiting_since": now}
    detail = dict(cause.detail)
    if row.waiting_detail != detail:
        changes["waiting_detail"] = detail
    if row.queue_position != position:
        changes["queue_position"] = position
    if not changes or not Job.objects.filter(pk=row.pk, state=JobState.QUEUED).update(**changes):
        return False
    if "waiting_code" in changes:
        add_event(row, at=now, reason=cause.code, message=cause.sentence())
    announce(f"job:{row.pk}", team_id=row.team_id)
    return True


def record_status(job: Job, status: Status, *, kube_uid: str, now: datetime) -> bool:
    """Move the job to the state that was observed, if it may go there. True when something changed."""
    target = status.state
    if job.cancel_requested_at is not None and target not in TERMINAL:
        target = JobState.STOPPING
    changes: dict[str, object] = {}
    if kube_uid and job.kube_uid != kube_uid:
        changes["kube_uid"] = kube_uid
    if status.started_at and job.started_at is None:
        changes["started_at"] = status.started_at
    moved = target != job.state and target in TRANSITIONS[JobState(job.state)]
    if moved:
        changes["state"] = target
    if (moved or target == job.state) and (job.reason, job.message) != (status.reason, status.message):
        changes |= {"reason": status.reason, "message": status.message}
    if moved and target in TERMINAL:
        changes["finished_at"] = status.finished_at or now
    if not changes:
        return False
    with transaction.atomic():
        done = Job.objects.filter(pk=job.pk, state=job.state, attempt=job.attempt).update(**changes)
        if not done:
            return False
        if moved:
            add_event(job, at=now, reason=status.reason or target, state=target, message=status.message)
        elif "message" in changes and status.message:
            add_event(job, at=now, reason=status.reason, message=status.message)
        announce_job(job)
        if moved and target in TERMINAL:
            ring_admission(job.pool_id)
    return True


def finish(job: Job, *, state: JobState, reason: str, message: str, now: datetime) -> bool:
    """End a job whose pods are gone, as after a cancel; nothing happens when it ended meanwhile."""
    with transaction.atomic():
        done = Job.objects.filter(pk=job.pk, state__in=HOLDING).update(
            state=state, reason=reason, message=message, finished_at=now, waiting_code=""
        )
        if not done:
            return False
        add_event(job, at=now, reason=reason, state=state, message=message)
        announce_job(job)
        ring_admission(job.pool_id)
    return True


def requeue(job: Job, *, reason: str, message: str, now: datetime) -> bool:
    """Put an admitted job back at its old place, for example when its object vanished from the cluster."""
    with transaction.atomic():
        done = Job.objects.filter(pk=job.pk, state__in=HOLDING, attempt=job.attempt).update(
            state=JobState.QUEUED,
            reason=reason,
            message=message,
            kube_uid="",
            planned_nodes=[],
            admitted_at=None,
            waiting_since=now,
        )
        if not done:
            return False
        add_event(job, at=now, reason=reason, state=JobState.QUEUED, message=message)
        announce_job(job)
        ring_admission(job.pool_id)
    return True


def record_refusal(job: Job, cause: Cause, *, now: datetime) -> None:
    """Show on an admitted job that the cluster refuses its objects, in the server's own words."""
    if job.waiting_code == cause.code and job.waiting_detail == dict(cause.detail):
        return
    with transaction.atomic():
        done = Job.objects.filter(pk=job.pk, state__in=HOLDING).update(
            waiting_code=cause.code, waiting_detail=dict(cause.detail), waiting_since=now
        )
        if done:
            add_event(job, at=now, reason=cause.code, message=cause.sentence())
            announce_job(job)


def clear_refusal(job: Job) -> None:
    """The cluster took the objects after all."""
    if job.waiting_code and job.state in HOLDING:
        Job.objects.filter(pk=job.pk, state__in=HOLDING).update(
            waiting_code="", waiting_detail={}, waiting_since=None
        )
        announce_job(job)
