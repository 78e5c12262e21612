"""Frozen values of what is wanted of the cluster for teams, tiers and pools (pure). Manifests are built from them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar


@dataclass(frozen=True)
class TeamState:
    """A team as its namespace should be. `gpus` maps a GPU resource to what the team may hold of it in all pools."""

    uid: str
    slug: str
    name: str
    namespace: str
    groups: tuple[tuple[str, str], ...]  # (group, role)
    cpu_milli: int
    memory_bytes: int
    pods: int
    storage_bytes: int
    gpus: Mapping[str, int]
    groups_prefix: str = ""
    tiers: tuple[str, ...] = ()  # PriorityClasses its pods may have


@dataclass(frozen=True)
class TierState:
    """A tier as its PriorityClass should be."""

    slug: str
    value: int
    may_preempt: bool
    is_default: bool
    description: str


class Selecting(Protocol):
    """Anything that takes nodes by their labels: `tenants.models.Pool`."""

    slug: str
    node_selector: dict[str, str]


P = TypeVar("P", bound=Selecting)


def pool_of(labels: Mapping[str, str], pools: Iterable[P]) -> P | None:
    """The first pool (by slug) whose node selector the labels satisfy; an empty selector takes no node."""
    for pool in sorted(pools, key=lambda each: each.slug):
        if pool.node_selector and all(labels.get(key) == value for key, value in pool.node_selector.items()):
            return pool
    return None
