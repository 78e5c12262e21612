"""The admission pass: who starts now, in what order, and why each of the others waits (pure)."""

import heapq
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from jobs.admission.causes import Cause
from jobs.admission.order import Key, order_key
from jobs.admission.rules import Books, first_objection, no_room
from jobs.admission.snapshot import QueuedJob, Snapshot


@dataclass(frozen=True)
class Admission:
    """A job that starts now, and the node planned for each worker (by rank)."""

    job_id: int
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class Decisions:
    """What one pass decided: admitted jobs in order, and for every other job its cause and its place in line."""

    admitted: tuple[Admission, ...]
    waiting: Mapping[int, Cause]
    positions: Mapping[int, int]  # job id → 1 for the first of the waiting


def decide(snapshot: Snapshot) -> Decisions:
    """Run one pass over a pool. Same snapshot, same decisions; every queued job is in exactly one answer."""
    books = Books(snapshot)
    admitted: list[Admission] = []
    waiting: dict[int, Cause] = {}
    refused: dict[_Shape, Cause] = {}
    for job in _InOrder(snapshot, books):
        # Usage only grows and room only shrinks within a pass: one refusal speaks for all jobs of that shape.
        shape = _shape(job)
        cause = refused.get(shape) or first_objection(job, books)
        nodes = None if cause else books.room.place(job)
        if nodes is not None:
            books.book(job)
            admitted.append(Admission(job.job_id, nodes))
            continue
        waiting[job.job_id] = refused[shape] = cause or no_room(job, books)
    positions = {job_id: place for place, job_id in enumerate(waiting, start=1)}
    return Decisions(tuple(admitted), waiting, positions)


_Shape = tuple[int, int, int, int, int, int, int, int | None]


def _shape(job: QueuedJob) -> _Shape:
    return (
        job.team_id,
        job.owner_id,
        job.tier_id,
        job.workers,
        job.gpus,
        job.cpu_milli,
        job.memory_bytes,
        job.wall_seconds,
    )


class _InOrder:
    """Iterates over the queue in order; a team's share counts what the pass has admitted for it so far.

    Only the head of each team stands in the heap, so an admission moves one team and not the whole queue.
    """

    def __init__(self, snapshot: Snapshot, books: Books) -> None:
        self._snapshot, self._books = snapshot, books
        self._lines: dict[int, list[QueuedJob]] = defaultdict(list)
        for job in snapshot.queue:
            self._lines[job.team_id].append(job)
        for line in self._lines.values():
            line.sort(key=self._key, reverse=True)  # the head is popped from the end
        self._heap = [(self._key(line[-1]), team) for team, line in self._lines.items()]
        heapq.heapify(self._heap)

    def __iter__(self) -> "_InOrder":
        return self

    def __next__(self) -> QueuedJob:
        while self._heap:
            key, team = heapq.heappop(self._heap)
            line = self._lines[team]
            now = self._key(line[-1])
            if now != key:  # the team took something since: it stands elsewhere now
                heapq.heappush(self._heap, (now, team))
                continue
            job = line.pop()
            if line:
                heapq.heappush(self._heap, (self._key(line[-1]), team))
            return job
        raise StopIteration

    def _key(self, job: QueuedJob) -> Key:
        return order_key(
            job,
            usage=self._books.usage(job.team_id),
            guarantee=self._books.entitlement(job.team_id).guarantee,
            is_fifo=self._snapshot.is_fifo,
        )
