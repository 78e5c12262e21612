"""In which order waiting jobs are looked at (pure).

Tier first; inside a tier the team with the smallest share of its guarantee (dominant share with one resource;
Ghodsi et al., NSDI 2011, reduced to GPUs); inside a team its own order; then age; then id, so that the order is total.
A first-come pool leaves out the share.
"""

from jobs.admission.snapshot import QueuedJob

Key = tuple[int, float, int, float, int]


def share(usage: int, guarantee: int) -> float:
    """What a team holds against what it is guaranteed; without a guarantee every unit counts as a whole one.

    >>> share(2, 8), share(3, 0)
    (0.25, 3.0)
    """
    return usage / max(guarantee, 1)


def order_key(job: QueuedJob, *, usage: int, guarantee: int, is_fifo: bool) -> Key:
    """Sort key of `job` while its team holds `usage`; smaller runs first."""
    return (
        -job.tier_value,
        0.0 if is_fifo else share(usage, guarantee),
        job.team_rank if not is_fifo else 0,
        job.queued_at.timestamp(),
        job.job_id,
    )
