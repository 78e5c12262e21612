"""Snapshots for admission tests, valid by default."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from jobs.admission import Entitlement, NodeRoom, QueuedJob, Snapshot

START = datetime(2026, 1, 1, 8, tzinfo=UTC)
GIB = 1024**3
DEFAULT_TIER = 1


def node(name: str, gpus: int = 8, **changes: Any) -> NodeRoom:
    """An empty node of a pool."""
    room = NodeRoom(
        name=name,
        gpus_allocatable=gpus,
        cpu_allocatable=96_000,
        memory_allocatable=1024 * GIB,
        gpus_free=gpus,
        cpu_free=96_000,
        memory_free=1024 * GIB,
        pods_free=110,
    )
    return replace(room, **changes)


def team(team_id: int, **changes: Any) -> Entitlement:
    """A team that may use the default tier."""
    entitlement = Entitlement(team_id=team_id, team_name=f"Team {team_id}", tiers={DEFAULT_TIER: None})
    return replace(entitlement, **changes)


def job(job_id: int, team_id: int = 1, gpus: int = 1, **changes: Any) -> QueuedJob:
    """A one-worker job; a larger id was submitted later."""
    queued = QueuedJob(
        job_id=job_id,
        team_id=team_id,
        owner_id=team_id * 10,
        tier_id=DEFAULT_TIER,
        tier_value=100_000,
        tier_name="low-priority-dev",
        workers=1,
        gpus=gpus,
        cpu_milli=1000,
        memory_bytes=GIB,
        queued_at=START + timedelta(seconds=job_id),
    )
    return replace(queued, **changes)


def snapshot(
    *,
    nodes: tuple[NodeRoom, ...],
    teams: tuple[Entitlement, ...],
    queue: tuple[QueuedJob, ...],
    **changes: Any,
) -> Snapshot:
    """A pool at a moment."""
    whole = Snapshot(
        pool_id=1,
        pool_name="H100",
        nodes=nodes,
        entitlements={each.team_id: each for each in teams},
        queue=queue,
    )
    return replace(whole, **changes)
