"""Submit and cancel: what people ask for, each in one transaction with its audit row and its bell.

Called by views and the API. Nothing here touches the cluster.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from jobs.actions.timeline import add_event, announce_job, ring_admission
from jobs.admission import CauseCode
from jobs.argv import MAX_SCRIPT_BYTES
from jobs.fields import is_storable
from jobs.manifests import RESERVED_ENV_PREFIX
from jobs.models import Job
from jobs.state import TERMINAL, CommandMode, JobState
from portal.kube import names
from portal.queue import ring
from tenants.access import Verb, Viewer, can
from tenants.actions import Denied, Rejected, record
from tenants.models import Pool, PriorityTier, Team

MAX_WORKERS = 512
MAX_GPUS_PER_WORKER = 64
MAX_ANNOTATION_BYTES = 192 * 1024  # Kubernetes takes 256 KiB; ours come on top
_TORCHRUN_ENV = frozenset({"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"})
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

Wrong = Callable[[str, str], None]


@dataclass(frozen=True)
class Submission:
    """A job as asked for, parsed and typed but not yet checked against rules; quantities are per worker."""

    team: Team
    pool: Pool
    tier: PriorityTier
    name: str
    image: str
    command_mode: CommandMode
    argv: tuple[str, ...] = ()
    script: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    workers: int = 1
    cpu_milli: int = 1000
    memory_bytes: int = 1024**3
    gpus: int = 0
    wall_seconds: int | None = None
    retries: int = 0
    grace_seconds: int = 30
    key: str | None = None  # idempotency key, or the form's own

    def fingerprint(self) -> str:
        """Equal for equal content: tells a repeated submission from another one under the same key."""
        content = {name: getattr(value, "pk", value) for name, value in self.columns().items()}
        return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()

    def columns(self) -> dict[str, Any]:
        """What goes into the job's row, by column."""
        columns = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "key"}
        columns["argv"] = list(self.argv)
        for mapping in ("env", "labels", "annotations"):
            columns[mapping] = dict(columns[mapping])
        return columns


class KeyReused(Exception):  # noqa: N818 (says what happened, not that it is an error)
    """The same key came with other content; nothing was submitted."""


def submit_job(*, actor: Viewer, submission: Submission) -> tuple[Job, bool]:
    """Queue a job; the job and whether it is new: a repeated key gives the job it made the first time (RW-039).

    Raises Denied when `actor` may not submit for the team, Rejected with field errors, KeyReused when the key stands
    for another submission.
    """
    if not can(actor, Verb.SUBMIT_JOB, submission.team.pk):
        record(
            actor=actor, action="submit job", team=submission.team, subject=submission.name, outcome="denied"
        )
        raise Denied(f"You may not submit jobs for {submission.team.name}.")
    errors = submission_errors(submission)
    if errors:
        raise Rejected(errors)
    if submission.key and (earlier := _earlier(actor, submission)):
        return earlier, False
    try:
        return _insert(actor, submission), True
    except IntegrityError:
        # Another process inserted the same key between our look and our insert.
        if submission.key and (earlier := _earlier(actor, submission)):
            return earlier, False
        raise


def _earlier(actor: Viewer, submission: Submission) -> Job | None:
    job = Job.objects.filter(owner_id=actor.user_id, submission_key=submission.key).first()
    if job is not None and job.submission_hash != submission.fingerprint():
        raise KeyReused("This key was already used for a different job.")
    return job


def _insert(actor: Viewer, submission: Submission) -> Job:
    now = timezone.now()
    with transaction.atomic():
        job = Job.objects.create(
            owner_id=actor.user_id,
            created_at=now,
            queued_at=now,
            observed_generation=1,  # nothing to reconcile before it is admitted
            submission_key=submission.key,
            submission_hash=submission.fingerprint() if submission.key else "",
            waiting_code=CauseCode.CONSIDERING,
            waiting_since=now,
            **submission.columns(),
        )
        add_event(job, at=now, reason="Submitted", state=JobState.QUEUED, actor=actor.username)
        record(
            actor=actor,
            action="submit job",
            team=submission.team,
            subject=f"job {job.pk}",
            detail={"name": job.name, "pool": submission.pool.slug, "gpus": job.total_gpus},
        )
        announce_job(job)
        ring_admission(submission.pool.pk)
    return job


def cancel_job(*, actor: Viewer, job: Job) -> Job:
    """Stop a job: a queued one at once, a started one through the cluster. A finished job stays as it is."""
    if not can(actor, Verb.CANCEL_JOB, job.team_id):
        record(actor=actor, action="cancel job", team=job.team, subject=f"job {job.pk}", outcome="denied")
        raise Denied("You may not cancel this job.")
    now = timezone.now()
    with transaction.atomic():
        # Conditional on the state, so that an admission at the same moment wins or loses whole.
        done = Job.objects.filter(pk=job.pk, state=JobState.QUEUED).update(
            state=JobState.CANCELLED,
            reason="Cancelled",
            message=f"Cancelled by {actor.username} before it started.",
            finished_at=now,
            cancel_requested_at=now,
            cancel_requested_by=actor.username,
            waiting_code="",
            queue_position=None,
        )
        job.refresh_from_db()
        if done:
            add_event(job, at=now, reason="Cancelled", state=JobState.CANCELLED, actor=actor.username)
            ring_admission(job.pool_id)
        elif job.state not in TERMINAL and job.cancel_requested_at is None:
            Job.objects.filter(pk=job.pk).update(cancel_requested_at=now, cancel_requested_by=actor.username)
            add_event(job, at=now, reason="CancelRequested", actor=actor.username)
            Job.touch(job.pk)
            ring("jobs.tasks.reconcile_job", job.pk)
        else:
            return job
        record(actor=actor, action="cancel job", team=job.team, subject=f"job {job.pk}")
        announce_job(job)
    job.refresh_from_db()
    return job


def submission_errors(submission: Submission) -> dict[str, list[str]]:
    """Field → what is wrong with it, in words; empty when the submission can be queued."""
    errors: dict[str, list[str]] = {}

    def wrong(field_name: str, text: str) -> None:
        errors.setdefault(field_name, []).append(text)

    _check_texts(submission, wrong)
    if errors:
        return errors  # what cannot be stored cannot be measured either
    if not submission.name.strip() or len(submission.name) > 120:
        wrong("name", "Give a name of 1 to 120 characters.")
    if not submission.image.strip() or any(c.isspace() for c in submission.image.strip()):
        wrong("image", "Give an image reference without spaces.")
    if submission.command_mode is CommandMode.SCRIPT:
        if not submission.script.strip():
            wrong("script", "Write the script that should run, or choose a command.")
        if len(submission.script.encode()) > MAX_SCRIPT_BYTES:
            wrong("script", f"At most {MAX_SCRIPT_BYTES // 1024} KiB; put longer scripts into the image.")
    _check_env(submission.env, wrong)
    _check_metadata(submission, wrong)
    _check_numbers(submission, wrong)
    return errors


def _check_texts(submission: Submission, wrong: Wrong) -> None:
    """No text that a program, the database or a reply could not hold."""
    texts: dict[str, list[str]] = {
        "name": [submission.name],
        "image": [submission.image],
        "script": [submission.script],
        "argv": list(submission.argv),
    }
    for field_name in ("env", "labels", "annotations"):
        mapping: Mapping[str, str] = getattr(submission, field_name)
        texts[field_name] = [*mapping.keys(), *mapping.values()]
    for field_name, values in texts.items():
        if not all(map(is_storable, values)):
            wrong(
                field_name,
                "It holds a NUL character or half a surrogate pair, which no program can be given.",
            )


def _check_env(env: Mapping[str, str], wrong: Wrong) -> None:
    for name in env:
        if not _ENV_NAME.fullmatch(name):
            wrong("env", f"“{name}” is no valid variable name: use letters, digits and _, not a digit first.")
        elif name.startswith(RESERVED_ENV_PREFIX) or name in _TORCHRUN_ENV:
            wrong("env", f"“{name}” is set by Berth and cannot be overridden.")


def _check_metadata(submission: Submission, wrong: Wrong) -> None:
    size = sum(len(key.encode()) + len(value.encode()) for key, value in submission.annotations.items())
    if size > MAX_ANNOTATION_BYTES:
        wrong("annotations", f"At most {MAX_ANNOTATION_BYTES // 1024} KiB in all; these are {size // 1024}.")
    for field_name, mapping in (("labels", submission.labels), ("annotations", submission.annotations)):
        for key, value in mapping.items():
            if not names.is_valid_label_key(key):
                wrong(field_name, f"“{key}” is no valid key.")
            elif names.is_reserved_key(key):
                wrong(field_name, f"“{key}” belongs to Berth or Kubernetes and cannot be set.")
            if field_name == "labels" and not names.is_valid_label_value(value):
                wrong(field_name, f"“{value}” is no valid label value (at most 63 letters, digits, - _ .).")


def _check_numbers(submission: Submission, wrong: Wrong) -> None:
    bounds = (
        ("workers", submission.workers, 1, MAX_WORKERS),
        ("gpus", submission.gpus, 0, MAX_GPUS_PER_WORKER),
        ("cpu", submission.cpu_milli, 1, 1_000_000),
        ("memory", submission.memory_bytes, 1024**2, 64 * 1024**4),
        ("retries", submission.retries, 0, 20),
        ("grace_seconds", submission.grace_seconds, 0, 3600),
    )
    for field_name, value, low, high in bounds:
        if not low <= value <= high:
            wrong(field_name, f"Must be between {low} and {high}.")
    if submission.wall_seconds is not None and not 1 <= submission.wall_seconds <= 366 * 86400:
        wrong("wall_seconds", "Must be between 1 second and 366 days.")
    if submission.gpus and not submission.pool.gpu_resource:
        wrong("gpus", f"{submission.pool.name} has no GPUs.")
