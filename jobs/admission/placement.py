"""Whether a whole job fits the nodes as they are (pure).

All workers or none. Best fit by GPUs keeps large holes whole for large jobs; ties go by name, so that the same
snapshot gives the same plan. The cluster's scheduler is told the planned nodes as a preference.
"""

from collections.abc import Iterable
from dataclasses import replace

from jobs.admission.snapshot import Holder, NodeRoom, QueuedJob


class Room:
    """The free room of a pool's usable nodes during one pass; shrinks as jobs are placed."""

    def __init__(self, nodes: Iterable[NodeRoom]) -> None:
        self._nodes = {node.name: node for node in sorted(nodes, key=lambda n: n.name) if node.is_usable}

    @property
    def gpus_free(self) -> int:
        """Free GPUs on all usable nodes."""
        return sum(node.gpus_free for node in self._nodes.values())

    def workers_that_fit(self, *, gpus: int, cpu_milli: int, memory_bytes: int, limit: int) -> int:
        """How many workers of this size would fit side by side now, counted up to `limit`."""
        total = 0
        for node in self._nodes.values():
            total += _fits(node, gpus, cpu_milli, memory_bytes)
            if total >= limit:
                return limit
        return total

    def place(self, job: QueuedJob) -> tuple[str, ...] | None:
        """Node names, one per worker, taken from the room; None (and nothing taken) when not all fit."""
        names = self._find(job.workers, job.gpus, job.cpu_milli, job.memory_bytes)
        if names is not None:
            for name in names:
                self._take(name, job.gpus, job.cpu_milli, job.memory_bytes)
        return names

    def hold(self, holder: Holder) -> None:
        """Take the room of an admitted job's workers that are not bound to nodes yet.

        Where the planned node is full meanwhile, any node with most room stands in: the workers will land
        somewhere, and counting them nowhere would promise their room twice.
        """
        planned = [name for name in holder.planned_nodes if name in self._nodes]
        for index in range(holder.unbound_workers):
            name = planned[index] if index < len(planned) else None
            if name is None or not _fits(
                self._nodes[name], holder.gpus, holder.cpu_milli, holder.memory_bytes
            ):
                name = self._roomiest(holder)
            if name is not None:
                self._take(name, holder.gpus, holder.cpu_milli, holder.memory_bytes)

    def _find(self, workers: int, gpus: int, cpu_milli: int, memory_bytes: int) -> tuple[str, ...] | None:
        names: list[str] = []
        order = sorted(self._nodes.values(), key=lambda n: (n.gpus_free, n.cpu_free, n.name))
        for node in order:
            count = min(_fits(node, gpus, cpu_milli, memory_bytes), workers - len(names))
            names.extend([node.name] * count)
            if len(names) == workers:
                return tuple(names)
        return None

    def _roomiest(self, holder: Holder) -> str | None:
        fitting = [
            n for n in self._nodes.values() if _fits(n, holder.gpus, holder.cpu_milli, holder.memory_bytes)
        ]
        candidates = fitting or list(self._nodes.values())
        if not candidates:
            return None
        return max(candidates, key=lambda n: (n.gpus_free, n.cpu_free, n.name)).name

    def _take(self, name: str, gpus: int, cpu_milli: int, memory_bytes: int) -> None:
        node = self._nodes[name]
        self._nodes[name] = replace(
            node,
            gpus_free=max(0, node.gpus_free - gpus),
            cpu_free=max(0, node.cpu_free - cpu_milli),
            memory_free=max(0, node.memory_free - memory_bytes),
            pods_free=max(0, node.pods_free - 1),
        )


def _fits(node: NodeRoom, gpus: int, cpu_milli: int, memory_bytes: int) -> int:
    """How many workers of this size the node has room for."""
    counts = [node.pods_free]
    if gpus:
        counts.append(node.gpus_free // gpus)
    if cpu_milli:
        counts.append(node.cpu_free // cpu_milli)
    if memory_bytes:
        counts.append(node.memory_free // memory_bytes)
    return min(counts)


def empty_node(node: NodeRoom) -> NodeRoom:
    """The node as it would be with nothing on it: what “will never fit” is judged by."""
    return replace(
        node,
        gpus_free=node.gpus_allocatable,
        cpu_free=node.cpu_allocatable,
        memory_free=node.memory_allocatable,
        pods_free=110,
    )
