"""GPUs in use: one count for admission, pages and metrics."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.usage import NodeDevices, PodDevices, allocate

pytestmark = pytest.mark.unit

GPU = "nvidia.com/gpu"


def node(name: str, capacity: int = 8, allocatable: int | None = None, **changes: Any) -> NodeDevices:
    working = capacity if allocatable is None else allocatable
    plain: dict[str, Any] = {"pool_id": 1, "is_usable": True}
    return NodeDevices(name, gpus={GPU: (capacity, working)}, **(plain | changes))


def pod(on: str, gpus: int, team: int = 1, job: int | None = 7) -> PodDevices:
    return PodDevices(on, team, owner_id=1, job_id=job, gpus={GPU: gpus})


@pytest.mark.parametrize(
    ("of", "held", "total", "unhealthy", "used", "free", "is_overused"),
    [
        pytest.param(node("n"), 0, 8, 0, 0, 8, False, id="empty"),
        pytest.param(node("n"), 3, 8, 0, 3, 5, False, id="some"),
        pytest.param(node("n", 8, 6), 3, 8, 2, 3, 3, False, id="RW-048: unhealthy is neither free nor hidden"),
        pytest.param(node("n", 8, 2), 4, 8, 6, 4, 0, True, id="more held than works"),
        pytest.param(node("n", 0, 8), 0, 0, 0, 0, 0, False, id="allocatable without capacity counts for nothing"),
        pytest.param(node("n", is_usable=False), 3, 8, 0, 3, 0, False, id="cordoned"),
    ],
)  # fmt: skip
def test_one_node(
    of: NodeDevices, held: int, total: int, unhealthy: int, used: int, free: int, *, is_overused: bool
) -> None:
    (found,) = allocate([of], [pod("n", held)]).nodes
    assert (found.total, found.unhealthy, found.used) == (total, unhealthy, used)
    assert (found.free, found.is_overused) == (free, is_overused)


def test_pods_made_by_hand_count_like_jobs() -> None:
    found = allocate([node("n")], [pod("n", 2, job=7), pod("n", 1, job=None), pod("n", 4, team=2, job=9)])
    assert found.nodes[0].by_team == {1: 3, 2: 4}
    assert found.nodes[0].by_job == {7: 2, 9: 4}
    assert found.nodes[0].by_holder == {(1, 7): 2, (1, None): 1, (2, 9): 4}
    assert found.free == 1


def test_a_pod_without_a_node_holds_for_its_team_only() -> None:
    found = allocate([node("n")], [pod("", 2), pod("gone", 1)])
    assert found.used_by_team == {1: 3}
    assert found.nodes[0].used == 0
    assert found.used_by_pool == {1: 0}


@given(
    nodes=st.lists(st.tuples(st.integers(0, 16), st.integers(0, 16), st.sampled_from([1, 2, None])), max_size=6),
    pods=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 8), st.integers(1, 3)), max_size=20),
)  # fmt: skip
def test_nothing_is_lost_and_nothing_counted_twice(
    nodes: list[tuple[int, int, int | None]], pods: list[tuple[int, int, int]]
) -> None:
    found = allocate(
        [node(f"n{i}", total, works, pool_id=pool) for i, (total, works, pool) in enumerate(nodes)],
        [pod(f"n{on}", gpus, team) for on, gpus, team in pods],
    )
    on_nodes = sum(gpus for on, gpus, _ in pods if on < len(nodes))
    assert sum(each.used for each in found.nodes) == on_nodes
    assert sum(found.used_by_team.values()) == sum(gpus for _, gpus, _ in pods)
    assert sum(found.used_by_pool.values()) == sum(
        each.used for each in found.nodes if each.pool_id is not None
    )
    for each in found.nodes:
        assert each.free >= 0
        assert each.is_overused or each.free + each.used + each.unhealthy == each.total
        assert sum(each.by_team.values()) == each.used
