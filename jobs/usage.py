"""Pods and nodes turned into GPUs in use (pure): the one function that admission, pages, API and metrics share.

A device that left `allocatable` but not `capacity` is unhealthy: neither free nor hidden (RW-048). A pod holds its
devices from the moment it is bound to a node until it has ended, whoever made it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class NodeDevices:
    """A node as far as its accelerators go; `gpus` maps a resource name to (capacity, allocatable)."""

    name: str
    pool_id: int | None
    is_usable: bool
    gpus: Mapping[str, tuple[int, int]]


@dataclass(frozen=True)
class PodDevices:
    """A pod as far as its accelerators go. Ended pods hold nothing and are left out by the caller."""

    node_name: str
    team_id: int
    owner_id: int | None
    job_id: int | None
    gpus: Mapping[str, int]


@dataclass(frozen=True)
class NodeAllocation:
    """GPUs of one node: `total` = free + used + unhealthy, unless more is used than works (`is_overused`)."""

    name: str
    pool_id: int | None
    is_usable: bool
    total: int
    unhealthy: int
    used: int
    by_team: Mapping[int, int] = field(default_factory=dict)
    by_job: Mapping[int, int] = field(default_factory=dict)
    by_holder: Mapping[tuple[int, int | None], int] = field(default_factory=dict)  # (team, job or foreign)

    @property
    def free(self) -> int:
        """Never negative; nothing is free on a node that takes no pods."""
        return max(0, self.total - self.unhealthy - self.used) if self.is_usable else 0

    @property
    def is_overused(self) -> bool:
        """Pods hold more devices than work, as while a device plugin restarts."""
        return self.used > self.total - self.unhealthy


@dataclass(frozen=True)
class Allocation:
    """GPUs of the whole cluster, by node, pool and team."""

    nodes: tuple[NodeAllocation, ...]
    used_by_team: Mapping[int, int]
    used_by_pool: Mapping[int, int]

    def pool(self, pool_id: int) -> tuple[NodeAllocation, ...]:
        return tuple(node for node in self.nodes if node.pool_id == pool_id)

    @property
    def free(self) -> int:
        return sum(node.free for node in self.nodes)


def allocate(nodes: Iterable[NodeDevices], pods: Iterable[PodDevices]) -> Allocation:
    """Who holds which GPUs. Pods not bound to a known node count for their team but on no node."""
    by_node: dict[str, list[PodDevices]] = defaultdict(list)
    used_by_team: Counter[int] = Counter()
    for pod in pods:
        count = sum(pod.gpus.values())
        used_by_team[pod.team_id] += count
        if pod.node_name and count:
            by_node[pod.node_name].append(pod)
    allocated = tuple(_node(node, by_node.get(node.name, [])) for node in sorted(nodes, key=lambda n: n.name))
    used_by_pool: Counter[int] = Counter()
    for node in allocated:
        if node.pool_id is not None:
            used_by_pool[node.pool_id] += node.used
    return Allocation(allocated, used_by_team, used_by_pool)


def _node(node: NodeDevices, pods: list[PodDevices]) -> NodeAllocation:
    total = sum(capacity for capacity, _ in node.gpus.values())
    working = sum(min(capacity, allocatable) for capacity, allocatable in node.gpus.values())
    by_team: Counter[int] = Counter()
    by_job: Counter[int] = Counter()
    by_holder: Counter[tuple[int, int | None]] = Counter()
    for pod in pods:
        count = sum(pod.gpus.values())
        by_team[pod.team_id] += count
        by_holder[pod.team_id, pod.job_id] += count
        if pod.job_id is not None:
            by_job[pod.job_id] += count
    return NodeAllocation(
        name=node.name,
        pool_id=node.pool_id,
        is_usable=node.is_usable,
        total=total,
        unhealthy=total - working,
        used=sum(by_team.values()),
        by_team=by_team,
        by_job=by_job,
        by_holder=by_holder,
    )
