"""What one admission pass looks at: a pool at a moment, as frozen values.

Built by `jobs/queries/states.py:queue_snapshot`; quantities are GPUs of the pool's resource, or worker pods in a pool
without GPUs (then `unit_gpus` is false and every worker counts as one).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True)
class NodeRoom:
    """What one node has left after every pod bound to it. Never negative: over-use counts as nothing left."""

    name: str
    gpus_allocatable: int
    cpu_allocatable: int  # millicores
    memory_allocatable: int  # bytes
    gpus_free: int
    cpu_free: int
    memory_free: int
    pods_free: int
    is_usable: bool = True  # ready, not cordoned, no foreign taint


@dataclass(frozen=True)
class Entitlement:
    """What one team may hold in the pool; see `tenants.models.Quota`. `usage` counts foreign pods too."""

    team_id: int
    team_name: str
    guarantee: int = 0
    borrow_cap: int = 0
    lend_cap: int = 0
    hard_max: int | None = None
    per_user_cap: int | None = None
    max_wall_seconds: int | None = None
    is_suspended: bool = False
    usage: int = 0
    usage_by_owner: Mapping[int, int] = field(default_factory=dict)
    usage_by_tier: Mapping[int, int] = field(default_factory=dict)
    tiers: Mapping[int, int | None] = field(default_factory=dict)  # tier id -> cap in GPUs, None for no cap


@dataclass(frozen=True)
class Holder:
    """An admitted job whose workers are not all bound to nodes yet: it holds room that no pod shows."""

    job_id: int
    unbound_workers: int
    gpus: int
    cpu_milli: int
    memory_bytes: int
    planned_nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class QueuedJob:
    """One waiting job, with what each worker asks for."""

    job_id: int
    team_id: int
    owner_id: int
    tier_id: int
    tier_value: int
    tier_name: str
    workers: int
    gpus: int
    cpu_milli: int
    memory_bytes: int
    queued_at: datetime
    wall_seconds: int | None = None
    team_rank: int = 0  # the team's own order; smaller first


@dataclass(frozen=True)
class Snapshot:
    """One pool at one moment."""

    pool_id: int
    pool_name: str
    nodes: tuple[NodeRoom, ...]
    entitlements: Mapping[int, Entitlement]
    queue: tuple[QueuedJob, ...]
    holders: tuple[Holder, ...] = ()
    is_on_hold: bool = False
    is_fifo: bool = False
    counts_gpus: bool = True
    max_wall_seconds: int | None = None
    # Why nothing can be started at all, e.g. the cluster does not answer; empty when it does.
    unreachable_since: datetime | None = None

    def size_of(self, job: QueuedJob) -> int:
        """What `job` counts against quotas, in the pool's unit."""
        return job.workers * (job.gpus if self.counts_gpus else 1)
