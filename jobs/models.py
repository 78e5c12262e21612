"""Rows about what runs. Written by `jobs/actions`, by observation and by the log collector.

Everything shown to people is read from these rows, never from the cluster.
"""

from datetime import datetime
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from jobs.state import CommandMode, JobState
from portal.reconciled import Reconciled
from tenants.models import Pool, PriorityTier, Team


class Job(Reconciled):
    """One run as submitted, its state, and why it waits."""

    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="jobs")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="jobs")
    pool = models.ForeignKey(Pool, on_delete=models.PROTECT, related_name="jobs")
    tier = models.ForeignKey(PriorityTier, on_delete=models.PROTECT, related_name="jobs")
    name = models.CharField(max_length=120)
    # What runs
    image = models.CharField(max_length=500)
    command_mode = models.CharField(max_length=8, choices=[(m, m) for m in CommandMode])
    argv: models.JSONField[list[str], list[str]] = models.JSONField(default=list, blank=True)
    script = models.TextField(blank=True)
    env: models.JSONField[dict[str, str], dict[str, str]] = models.JSONField(default=dict, blank=True)
    labels: models.JSONField[dict[str, str], dict[str, str]] = models.JSONField(default=dict, blank=True)
    annotations: models.JSONField[dict[str, str], dict[str, str]] = models.JSONField(default=dict, blank=True)
    # What it needs, per worker
    workers = models.PositiveIntegerField(default=1)
    cpu_milli = models.PositiveBigIntegerField(default=1000)
    memory_bytes = models.PositiveBigIntegerField(default=1024**3)
    gpus = models.PositiveIntegerField(default=0)
    wall_seconds = models.PositiveIntegerField(null=True, blank=True)
    retries = models.PositiveIntegerField(default=0)
    grace_seconds = models.PositiveIntegerField(default=30)
    # One submission makes one job, however often it is sent (RW-039).
    submission_key = models.CharField(max_length=120, null=True, blank=True)
    submission_hash = models.CharField(max_length=64, blank=True)
    # Where it stands
    state = models.CharField(max_length=12, choices=[(s, s) for s in JobState], default=JobState.QUEUED)
    reason = models.CharField(max_length=60, blank=True)
    message = models.TextField(blank=True)
    attempt = models.PositiveIntegerField(default=0)
    kube_uid = models.CharField(max_length=64, blank=True)
    planned_nodes: models.JSONField[list[str], list[str]] = models.JSONField(default=list, blank=True)
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    cancel_requested_by = models.CharField(max_length=255, blank=True)
    # Why it waits: a code of jobs/admission/causes.py with its numbers
    waiting_code = models.CharField(max_length=40, blank=True)
    waiting_detail: models.JSONField[dict[str, object], dict[str, object]] = models.JSONField(
        default=dict, blank=True
    )
    waiting_since = models.DateTimeField(null=True, blank=True)
    queue_position = models.PositiveIntegerField(null=True, blank=True)
    # When
    created_at = models.DateTimeField(db_index=True)
    queued_at = models.DateTimeField()
    admitted_at = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    cleaned_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["-created_at", "-id"]
        indexes: ClassVar = [
            models.Index(fields=["team", "-created_at", "-id"], name="job_team_newest"),
            models.Index(fields=["-created_at", "-id"], name="job_newest"),
            models.Index(fields=["pool", "state"], name="job_pool_state"),
            models.Index(fields=["team", "state"], name="job_team_state"),
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["owner", "submission_key"],
                condition=Q(submission_key__isnull=False),
                name="job_once_per_submission",
            ),
            models.CheckConstraint(condition=Q(workers__gte=1), name="job_has_a_worker"),
            models.CheckConstraint(condition=Q(state__in=[*JobState]), name="job_state_known"),
        ]

    def __str__(self) -> str:
        return f"{self.name} (#{self.pk})"

    @property
    def total_gpus(self) -> int:
        """GPUs of all workers together."""
        return self.workers * self.gpus

    @property
    def asks(self) -> str:
        """Its size in the unit of its pool: "8 GPUs", or "3 workers" where there are none."""
        number, unit = (self.total_gpus, "GPU") if self.total_gpus else (self.workers, "worker")
        return f"{number} {unit}" if number == 1 else f"{number} {unit}s"

    @property
    def size_words(self) -> str:
        """How the GPUs are spread: "2 workers × 8"; empty for a single worker."""
        if self.workers == 1:
            return ""
        return f"{self.workers} workers × {self.gpus}" if self.gpus else f"{self.workers} workers"


class PoolQueue(Reconciled):
    """A pool's queue as a thing to be looked at: claiming this row serialises admission in the pool."""

    pool = models.OneToOneField(Pool, primary_key=True, on_delete=models.CASCADE, related_name="queue")

    def __str__(self) -> str:
        return f"queue of {self.pool}"


class JobEvent(models.Model):
    """One step of a job's timeline."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="events")
    at = models.DateTimeField()
    state = models.CharField(max_length=12, blank=True)  # the state entered, empty when it did not change
    reason = models.CharField(max_length=60)
    message = models.TextField(blank=True)
    actor = models.CharField(max_length=255, blank=True)

    class Meta:
        ordering: ClassVar = ["at", "id"]

    def __str__(self) -> str:
        return f"{self.reason} at {self.at:%Y-%m-%d %H:%M:%S}"


class Node(models.Model):
    """A node as observed; kept, with `gone_at`, when it vanishes."""

    name = models.CharField(max_length=253, unique=True)
    uid = models.CharField(max_length=64)
    labels: models.JSONField[dict[str, str], dict[str, str]] = models.JSONField(default=dict)
    taints: models.JSONField[list[dict[str, str]], list[dict[str, str]]] = models.JSONField(default=list)
    is_ready = models.BooleanField(default=False)
    is_cordoned = models.BooleanField(default=False)
    cpu_milli = models.PositiveBigIntegerField(default=0)  # allocatable
    memory_bytes = models.PositiveBigIntegerField(default=0)  # allocatable
    pods = models.PositiveIntegerField(default=0)  # allocatable
    # GPU resources by name: {"nvidia.com/gpu": {"capacity": 8, "allocatable": 8}}
    gpus: models.JSONField[dict[str, dict[str, int]], dict[str, dict[str, int]]] = models.JSONField(
        default=dict
    )
    pool = models.ForeignKey(Pool, null=True, blank=True, on_delete=models.SET_NULL, related_name="nodes")
    resource_version = models.CharField(max_length=32, blank=True)
    seen_at = models.DateTimeField()
    gone_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["name"]

    def __str__(self) -> str:
        return self.name


class Pod(models.Model):
    """A pod as observed in a team's namespace: a worker of a job, or foreign (made with kubectl)."""

    uid = models.CharField(max_length=64, unique=True)
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="pods_observed")
    job = models.ForeignKey(Job, null=True, blank=True, on_delete=models.CASCADE, related_name="pods")
    attempt = models.PositiveIntegerField(default=0)
    rank = models.PositiveIntegerField(null=True, blank=True)
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    node_name = models.CharField(max_length=253, blank=True)
    phase = models.CharField(max_length=16)
    reason = models.CharField(max_length=120, blank=True)
    message = models.TextField(blank=True)
    disruption = models.CharField(max_length=60, blank=True)
    unschedulable = models.TextField(blank=True)
    is_ready = models.BooleanField(default=False)
    containers: models.JSONField[list[dict[str, object]], list[dict[str, object]]] = models.JSONField(
        default=list
    )
    cpu_milli = models.PositiveBigIntegerField(default=0)
    memory_bytes = models.PositiveBigIntegerField(default=0)
    gpus: models.JSONField[dict[str, int], dict[str, int]] = models.JSONField(default=dict)
    priority = models.IntegerField(default=0)
    resource_version = models.CharField(max_length=32, blank=True)
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    deleting_at = models.DateTimeField(null=True, blank=True)
    gone_at = models.DateTimeField(null=True, blank=True)  # no longer in the cluster

    class Meta:
        ordering: ClassVar = ["created_at", "id"]
        indexes: ClassVar = [
            models.Index(fields=["job", "attempt"], name="pod_job_attempt"),
            models.Index(fields=["team"], condition=Q(gone_at__isnull=True), name="pod_team_present"),
        ]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def ended_at(self) -> datetime | None:
        """When it ended, as far as is known; None while it lives."""
        return self.finished_at or self.gone_at


class LogStream(models.Model):
    """The output of one container in one of its restarts: where it was read up to, and by whom."""

    pod = models.ForeignKey(Pod, on_delete=models.CASCADE, related_name="streams")
    container = models.CharField(max_length=63)
    kind = models.CharField(max_length=8, default="main")  # main, init or sidecar
    restart = models.PositiveIntegerField(default=0)
    # How this run of the container stands as observed; written by jobs/logs/streams.py alone.
    run_state = models.CharField(max_length=8, default="waiting")  # waiting, running or ended
    exit_code = models.IntegerField(null=True, blank=True)
    reason = models.CharField(max_length=120, blank=True)
    # What is stored. The cursor is the server's own stamp of the last stored line (RW-062).
    last_stamp = models.CharField(max_length=40, blank=True)
    lines = models.PositiveBigIntegerField(default=0)
    stored_bytes = models.PositiveBigIntegerField(default=0)  # of output, uncompressed
    # Places where lines may be missing: [{"line": 120, "note": "…"}], before that line
    gaps: models.JSONField[list[dict[str, object]], list[dict[str, object]]] = models.JSONField(
        default=list, blank=True
    )
    # The answer that was followed last ended by itself, as it does when the container has ended: nothing is missing.
    is_followed_to_end = models.BooleanField(default=False)
    is_complete = models.BooleanField(default=False)
    # Why there is nothing, that the end is missing, or why reading fails now.
    note = models.TextField(blank=True)
    failures = models.PositiveIntegerField(default=0)
    retry_at = models.DateTimeField(null=True, blank=True)
    holder = models.CharField(max_length=120, blank=True)
    epoch = models.PositiveIntegerField(default=0)
    held_until = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField()

    class Meta:
        ordering: ClassVar = ["pod_id", "container", "restart"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["pod", "container", "restart"], name="stream_once_per_restart")
        ]
        indexes: ClassVar = [
            models.Index(fields=["id"], condition=Q(is_complete=False), name="stream_open"),
        ]

    def __str__(self) -> str:
        return f"{self.pod} {self.container} #{self.restart}"


class LogChunk(models.Model):
    """A run of consecutive lines of one stream, compressed; `first_line` counts from 0."""

    stream = models.ForeignKey(LogStream, on_delete=models.CASCADE, related_name="chunks")
    first_line = models.PositiveBigIntegerField()
    line_count = models.PositiveIntegerField()
    first_stamp = models.CharField(max_length=40)  # the smallest; neighbours may stand in the wrong order
    last_stamp = models.CharField(max_length=40)  # the greatest
    raw_bytes = models.PositiveIntegerField()  # of the records before compression
    data = models.BinaryField()
    created_at = models.DateTimeField()

    class Meta:
        ordering: ClassVar = ["stream_id", "first_line"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["stream", "first_line"], name="chunk_once_per_position"),
            models.CheckConstraint(
                condition=Q(line_count__gte=1) & Q(raw_bytes__gte=F("line_count")), name="chunk_has_lines"
            ),
        ]

    def __str__(self) -> str:
        return f"lines {self.first_line}+{self.line_count} of stream {self.stream_id}"
