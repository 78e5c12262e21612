"""The limits, one predicate each, in order of dominance (pure).

Each takes the job, what the pass knows so far (`Books`) and answers None when the limit holds or the `Cause` when it
does not. Within one pass usage only grows and room only shrinks, so a “no” stays a “no”.
"""

from collections import Counter
from collections.abc import Callable, Mapping

from jobs.admission.causes import Cause, CauseCode
from jobs.admission.placement import Room, empty_node
from jobs.admission.snapshot import Entitlement, QueuedJob, Snapshot

NO_ENTITLEMENT = Entitlement(team_id=0, team_name="This team")


class Books:
    """What every team holds while the pass goes on, and the room that is left."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.unit = "GPUs" if snapshot.counts_gpus else "workers"
        self.room = Room(snapshot.nodes)
        for holder in snapshot.holders:
            self.room.hold(holder)
        self.empty_room = Room(empty_node(node) for node in snapshot.nodes)
        self._usage = {team: e.usage for team, e in snapshot.entitlements.items()}
        self._by_owner = {t: Counter(e.usage_by_owner) for t, e in snapshot.entitlements.items()}
        self._by_tier = {t: Counter(e.usage_by_tier) for t, e in snapshot.entitlements.items()}

    def entitlement(self, team_id: int) -> Entitlement:
        return self.snapshot.entitlements.get(team_id, NO_ENTITLEMENT)

    def usage(self, team_id: int) -> int:
        return self._usage.get(team_id, 0)

    def owner_usage(self, job: QueuedJob) -> int:
        return self._by_owner.get(job.team_id, Counter())[job.owner_id]

    def tier_usage(self, job: QueuedJob) -> int:
        return self._by_tier.get(job.team_id, Counter())[job.tier_id]

    def book(self, job: QueuedJob) -> None:
        """Count an admitted job (its place in the room is taken by `Room.place`)."""
        size = self.snapshot.size_of(job)
        self._usage[job.team_id] = self.usage(job.team_id) + size
        self._by_owner.setdefault(job.team_id, Counter())[job.owner_id] += size
        self._by_tier.setdefault(job.team_id, Counter())[job.tier_id] += size

    def kept_for_others(self, team_id: int) -> int:
        """Idle guarantees of other teams that they do not lend: guarantee − lend cap − what they hold."""
        return sum(
            max(0, e.guarantee - e.lend_cap - self.usage(other))
            for other, e in self.snapshot.entitlements.items()
            if other != team_id and not e.is_suspended
        )

    def holders(self) -> Mapping[str, int]:
        """Team name → units held, largest first; teams holding nothing are left out."""
        held = {e.team_name: self.usage(team) for team, e in self.snapshot.entitlements.items()}
        return {name: n for name, n in sorted(held.items(), key=lambda item: (-item[1], item[0])) if n}


Rule = Callable[[QueuedJob, Books], Cause | None]


def ceiling(entitlement: Entitlement) -> int:
    """The most a team may ever hold: guarantee plus borrow cap, and never above the hard maximum."""
    reach = entitlement.guarantee + entitlement.borrow_cap
    return reach if entitlement.hard_max is None else min(reach, entitlement.hard_max)


def cluster_answers(job: QueuedJob, books: Books) -> Cause | None:
    """Nothing is admitted into a cluster that does not answer: its free room is not known."""
    since = books.snapshot.unreachable_since
    return Cause(CauseCode.CLUSTER_UNREACHABLE, {"since": since.isoformat()}) if since else None


def team_is_active(job: QueuedJob, books: Books) -> Cause | None:
    """A suspended team starts nothing (design 6)."""
    entitlement = books.entitlement(job.team_id)
    return (
        Cause(CauseCode.TEAM_SUSPENDED, {"team": entitlement.team_name}) if entitlement.is_suspended else None
    )


def pool_is_open(job: QueuedJob, books: Books) -> Cause | None:
    """A pool on hold starts nothing."""
    return (
        Cause(CauseCode.POOL_ON_HOLD, {"pool": books.snapshot.pool_name})
        if books.snapshot.is_on_hold
        else None
    )


def tier_is_granted(job: QueuedJob, books: Books) -> Cause | None:
    """The team needs a grant for the tier; everyone has one for the default tier."""
    entitlement = books.entitlement(job.team_id)
    if job.tier_id in entitlement.tiers:
        return None
    return Cause(CauseCode.TIER_NOT_GRANTED, {"team": entitlement.team_name, "tier": job.tier_name})


def wall_time_is_allowed(job: QueuedJob, books: Books) -> Cause | None:
    """The shorter of the pool's and the team's wall time counts; a job without one is not limited here."""
    limits = [
        limit
        for limit in (books.snapshot.max_wall_seconds, books.entitlement(job.team_id).max_wall_seconds)
        if limit is not None
    ]
    if job.wall_seconds is None or not limits or job.wall_seconds <= min(limits):
        return None
    detail = {"asked": job.wall_seconds, "limit": min(limits), "pool": books.snapshot.pool_name}
    return Cause(CauseCode.WALL_TIME_TOO_LONG, detail)


def within_hard_maximum(job: QueuedJob, books: Books) -> Cause | None:
    """A job larger than the team may ever hold will never run as it stands."""
    entitlement = books.entitlement(job.team_id)
    needed, limit = books.snapshot.size_of(job), ceiling(entitlement)
    if needed <= limit:
        return None
    detail: dict[str, object] = {"team": entitlement.team_name, "pool": books.snapshot.pool_name}
    if limit == 0:
        return Cause(CauseCode.NO_QUOTA_IN_POOL, detail)
    return Cause(
        CauseCode.EXCEEDS_HARD_MAXIMUM, detail | {"needed": needed, "limit": limit, "unit": books.unit}
    )


def fits_empty_nodes(job: QueuedJob, books: Books) -> Cause | None:
    """A job that the pool could not hold even when empty will never run as it stands."""
    snapshot = books.snapshot
    usable = [node for node in snapshot.nodes if node.is_usable]
    if not usable:
        return Cause(CauseCode.NO_USABLE_NODES, {"pool": snapshot.pool_name, "known": len(snapshot.nodes)})
    fitting = books.empty_room.workers_that_fit(
        gpus=job.gpus, cpu_milli=job.cpu_milli, memory_bytes=job.memory_bytes, limit=job.workers
    )
    if fitting >= job.workers:
        return None
    largest = max(usable, key=lambda n: (n.gpus_allocatable, n.cpu_allocatable))
    detail = {
        "needed": f"{job.workers} × ({_size(job.gpus, job.cpu_milli, job.memory_bytes)})",
        "offered": f"{len(usable)} nodes of at most "
        f"({_size(largest.gpus_allocatable, largest.cpu_allocatable, largest.memory_allocatable)})",
        "pool": snapshot.pool_name,
    }
    return Cause(CauseCode.EXCEEDS_NODE, detail)


def within_tier_cap(job: QueuedJob, books: Books) -> Cause | None:
    """A tier grant may be capped."""
    entitlement = books.entitlement(job.team_id)
    cap, used, needed = entitlement.tiers.get(job.tier_id), books.tier_usage(job), books.snapshot.size_of(job)
    if cap is None or used + needed <= cap:
        return None
    return Cause(
        CauseCode.TIER_CAP_IN_USE,
        {"team": entitlement.team_name, "tier": job.tier_name, **_numbers(used, cap, needed, books)},
    )


def within_user_cap(job: QueuedJob, books: Books) -> Cause | None:
    """One person's share of the team may be capped."""
    cap = books.entitlement(job.team_id).per_user_cap
    used, needed = books.owner_usage(job), books.snapshot.size_of(job)
    if cap is None or used + needed <= cap:
        return None
    detail = {"pool": books.snapshot.pool_name, **_numbers(used, cap, needed, books)}
    return Cause(CauseCode.PER_USER_CAP, detail)


def within_team_quota(job: QueuedJob, books: Books) -> Cause | None:
    """What the team holds and asks for stays below its ceiling (guarantee + borrow cap, hard maximum)."""
    entitlement = books.entitlement(job.team_id)
    used, needed, limit = books.usage(job.team_id), books.snapshot.size_of(job), ceiling(entitlement)
    if used + needed <= limit:
        return None
    detail = {
        "team": entitlement.team_name,
        "pool": books.snapshot.pool_name,
        **_numbers(used, limit, needed, books),
    }
    return Cause(CauseCode.TEAM_QUOTA_IN_USE, detail)


def leaves_guarantees_of_others(job: QueuedJob, books: Books) -> Cause | None:
    """Above its own guarantee a team takes only what no other team is promised and keeps (design 6)."""
    if not books.snapshot.counts_gpus:
        return None
    entitlement = books.entitlement(job.team_id)
    needed, free = books.snapshot.size_of(job), books.room.gpus_free
    if books.usage(job.team_id) + needed <= entitlement.guarantee or needed > free:
        return None
    kept = books.kept_for_others(job.team_id)
    if free - needed >= kept:
        return None
    detail = {
        "team": entitlement.team_name,
        "pool": books.snapshot.pool_name,
        "free": free,
        "reserved": min(kept, free),
        "available": max(0, free - kept),
        "needed": needed,
        "unit": books.unit,
    }
    return Cause(CauseCode.GUARANTEED_TO_OTHERS, detail)


# In order of dominance: what can never run first, then the team's own limits, then the pool.
RULES: tuple[Rule, ...] = (
    team_is_active,
    pool_is_open,
    tier_is_granted,
    wall_time_is_allowed,
    within_hard_maximum,
    cluster_answers,
    fits_empty_nodes,
    within_tier_cap,
    within_user_cap,
    within_team_quota,
    leaves_guarantees_of_others,
)


def first_objection(job: QueuedJob, books: Books) -> Cause | None:
    """The dominant limit that `job` breaks now, or None."""
    for rule in RULES:
        if (cause := rule(job, books)) is not None:
            return cause
    return None


def no_room(job: QueuedJob, books: Books) -> Cause:
    """Why a job that breaks no limit still has no place: too little is free, or it is free in pieces."""
    snapshot, needed = books.snapshot, books.snapshot.size_of(job)
    total = sum(node.gpus_allocatable for node in snapshot.nodes if node.is_usable)
    free = books.room.gpus_free
    if snapshot.counts_gpus and free >= needed:
        placed = books.room.workers_that_fit(
            gpus=job.gpus, cpu_milli=job.cpu_milli, memory_bytes=job.memory_bytes, limit=job.workers
        )
        worker = _size(job.gpus, job.cpu_milli, job.memory_bytes)
        detail: dict[str, object] = {"worker": worker, "placed": placed, "workers": job.workers}
        return Cause(
            CauseCode.FRAGMENTED, detail | {"free": free, "pool": snapshot.pool_name, "unit": books.unit}
        )
    held = books.holders()
    detail = {"pool": snapshot.pool_name, "needed": needed, "unit": books.unit, "free": free, "total": total}
    told = ", ".join(f"{name} ({units})" for name, units in held.items()) or "nobody Berth knows of"
    return Cause(CauseCode.POOL_FULL, detail | {"holders": told})


def _numbers(used: int, limit: int, needed: int, books: Books) -> dict[str, object]:
    return {"used": used, "limit": limit, "needed": needed, "unit": books.unit}


def _size(gpus: int, cpu_milli: int, memory_bytes: int) -> str:
    parts = [f"{gpus} GPU{'s' if gpus != 1 else ''}"] if gpus else []
    parts += [f"{cpu_milli / 1000:g} CPU", f"{memory_bytes / 1024**3:.3g} GiB"]
    return ", ".join(parts)
