"""Frozen values of a job: its life cycle and what is wanted of the cluster for it (pure).

Models take their choices from here; manifests, status and admission take the values.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class JobState(StrEnum):
    """Where a job stands. Terminal states are final (RW-058)."""

    QUEUED = "Queued"  # waiting for admission; nothing in the cluster
    ADMITTED = "Admitted"  # room is reserved; its objects are being created
    STARTING = "Starting"  # the cluster has the job, not all workers run yet
    RUNNING = "Running"
    STOPPING = "Stopping"  # told to stop; its pods still hold their GPUs
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    CANCELLED = "Cancelled"
    TIMED_OUT = "TimedOut"


TERMINAL = frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED, JobState.TIMED_OUT})
# States in which the job holds room in its pool, observed or not.
HOLDING = frozenset({JobState.ADMITTED, JobState.STARTING, JobState.RUNNING, JobState.STOPPING})
ACTIVE = HOLDING | {JobState.QUEUED}

TRANSITIONS: Mapping[JobState, frozenset[JobState]] = {
    JobState.QUEUED: frozenset({JobState.ADMITTED, JobState.CANCELLED}),
    JobState.ADMITTED: HOLDING - {JobState.ADMITTED} | TERMINAL | {JobState.QUEUED},
    JobState.STARTING: frozenset({JobState.RUNNING, JobState.STOPPING, JobState.QUEUED}) | TERMINAL,
    JobState.RUNNING: frozenset({JobState.STARTING, JobState.STOPPING, JobState.QUEUED}) | TERMINAL,
    JobState.STOPPING: TERMINAL | {JobState.QUEUED},
    JobState.SUCCEEDED: frozenset(),
    JobState.FAILED: frozenset(),
    JobState.CANCELLED: frozenset(),
    JobState.TIMED_OUT: frozenset(),
}


class CommandMode(StrEnum):
    """How the command was given: an argument list kept as it is, or a script for /bin/sh."""

    ARGV = "argv"
    SCRIPT = "script"


@dataclass(frozen=True)
class Resources:
    """What one worker asks for."""

    cpu_milli: int
    memory_bytes: int
    gpus: int = 0


@dataclass(frozen=True)
class JobSpec:
    """Everything needed to build a job's Kubernetes objects; loaded by `queries.job_spec`."""

    job_id: int
    attempt: int  # counts admissions; each gets an object of its own
    name: str
    team_id: int
    team_uid: str
    namespace: str
    owner: str
    image: str
    command_mode: CommandMode
    argv: tuple[str, ...]
    script: str
    env: tuple[tuple[str, str], ...]
    workers: int
    resources: Resources
    gpu_resource: str
    pool_slug: str
    priority_class: str
    retries: int
    wall_seconds: int | None
    grace_seconds: int
    planned_nodes: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ContainerState:
    """One container as observed; times are aware, `exit_code` only when terminated."""

    name: str
    kind: str  # "main", "init" or "sidecar"
    state: str  # "waiting", "running" or "terminated"
    restarts: int = 0
    reason: str = ""
    message: str = ""
    exit_code: int | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None


@dataclass(frozen=True)
class PodState:
    """One pod as observed, reduced to what status and allocation need."""

    uid: str
    name: str
    phase: str
    node_name: str
    is_ready: bool
    is_deleting: bool
    containers: tuple[ContainerState, ...]
    reason: str = ""
    message: str = ""
    disruption: str = ""  # reason of a true DisruptionTarget condition, e.g. PreemptionByScheduler
    unschedulable: str = ""  # message of PodScheduled=False
    started_at: datetime | None = None
    finished_at: datetime | None = None
