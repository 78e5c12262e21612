"""GPUs in use as pages show them: nodes, pools and teams from observed rows."""

from collections.abc import Mapping
from dataclasses import dataclass

from jobs.models import Node, Pod
from jobs.usage import Allocation, NodeAllocation, NodeDevices, PodDevices, allocate
from tenants.access import Viewer
from tenants.models import Pool, Team
from tenants.queries import pools_for

ENDED = ("Succeeded", "Failed")
READY_TAINTS = ("node.kubernetes.io/",)


@dataclass(frozen=True)
class Cell:
    """One GPU square of the map. `state`: used, free, unhealthy or off (node takes no pods)."""

    state: str
    team: str = ""  # "others" for a team the viewer does not belong to
    team_index: int = 0  # stable colour index; 0 for none
    is_own: bool = False
    job_id: int | None = None


@dataclass(frozen=True)
class NodeView:
    """One node's line of the map."""

    allocation: NodeAllocation
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class PoolView:
    """One pool with its nodes and sums."""

    pool: Pool
    nodes: tuple[NodeView, ...]
    total: int
    used: int
    free: int
    unhealthy: int

    @property
    def segments(self) -> list[dict[str, object]]:
        """For a bar: in use and unhealthy; what remains is free."""
        return [{"value": self.used, "tone": "other"}, {"value": self.unhealthy, "tone": "unhealthy"}]


@dataclass(frozen=True)
class ModelView:
    """GPUs of one model, in all pools together."""

    model: str
    total: int
    used: int
    free: int
    unhealthy: int

    @property
    def segments(self) -> list[dict[str, object]]:
        """For a bar: in use and unhealthy; what remains is free."""
        return [{"value": self.used, "tone": "other"}, {"value": self.unhealthy, "tone": "unhealthy"}]


@dataclass(frozen=True)
class ClusterView:
    """The whole map for one viewer; `legend` maps a shown team name to (colour index, GPUs held)."""

    pools: tuple[PoolView, ...]
    legend: Mapping[str, tuple[int, int]]
    total: int
    used: int
    free: int
    unhealthy: int

    @property
    def models(self) -> list[ModelView]:
        """GPUs by model, in the order of the pools; pools without GPUs are left out."""
        found: dict[str, ModelView] = {}
        for each in self.pools:
            if not each.pool.gpu_resource:
                continue
            name = each.pool.gpu_model or each.pool.name
            so_far = found.get(name, ModelView(name, 0, 0, 0, 0))
            found[name] = ModelView(
                name,
                so_far.total + each.total,
                so_far.used + each.used,
                so_far.free + each.free,
                so_far.unhealthy + each.unhealthy,
            )
        return [*found.values()]


def allocation() -> Allocation:
    """Who holds which GPUs now, from all present nodes and pods (unscoped: callers shorten what they show)."""
    nodes = [
        NodeDevices(
            name=node.name,
            pool_id=node.pool_id,
            is_usable=is_usable(node, None),
            gpus={name: (each["capacity"], each["allocatable"]) for name, each in node.gpus.items()},
        )
        for node in Node.objects.filter(gone_at=None)
    ]
    pods = [
        PodDevices(
            node_name=pod.node_name,
            team_id=pod.team_id,
            owner_id=pod.job.owner_id if pod.job else None,
            job_id=pod.job_id,
            gpus=pod.gpus,
        )
        for pod in Pod.objects.filter(gone_at=None).exclude(phase__in=ENDED).select_related("job")
    ]
    return allocate(nodes, pods)


def is_usable(node: Node, pool_slug: str | None) -> bool:
    """Ready, not cordoned, and without a taint that keeps the pool's pods away."""
    if not node.is_ready or node.is_cordoned:
        return False
    return all(
        taint.get("effect") == "PreferNoSchedule"
        or (taint.get("key") == "berth/pool" and (pool_slug is None or taint.get("value") == pool_slug))
        for taint in node.taints
    )


def cluster_view(viewer: Viewer) -> ClusterView:
    """The GPU map: the viewer's own teams by name, others as “others” unless a platform role sees all."""
    current = allocation()
    teams = {team.pk: team for team in Team.objects.order_by("slug")}
    colours = {pk: index % 8 + 1 for index, pk in enumerate(teams)}
    shown = {
        pk: team.name if viewer.sees_every_team or pk in viewer.teams else "others"
        for pk, team in teams.items()
    }
    pools = []
    for pool in pools_for(viewer):
        views = tuple(NodeView(node, _cells(node, shown, colours, viewer)) for node in current.pool(pool.pk))
        sums = [
            sum(getattr(view.allocation, name) for view in views)
            for name in ("total", "used", "free", "unhealthy")
        ]
        pools.append(PoolView(pool, views, *sums))
    legend: dict[str, tuple[int, int]] = {}
    # Of what the map shows: pods without a node hold nothing there yet.
    for view in (view for pool in pools for view in pool.nodes):
        for pk, used in sorted(view.allocation.by_team.items()):
            name = shown.get(pk, "others")
            index = 0 if name == "others" else colours.get(pk, 0)
            if used:
                legend[name] = (index, legend.get(name, (0, 0))[1] + used)
    total, used, free, unhealthy = (
        sum(getattr(pool, name) for pool in pools) for name in ("total", "used", "free", "unhealthy")
    )
    return ClusterView(tuple(pools), dict(sorted(legend.items())), total, used, free, unhealthy)


def _cells(
    node: NodeAllocation, shown: Mapping[int, str], colours: Mapping[int, int], viewer: Viewer
) -> tuple[Cell, ...]:
    cells = []
    holders = sorted(node.by_holder.items(), key=lambda held: (held[0][0], held[0][1] or 0))
    for (team_id, job_id), count in holders:
        name, own = shown.get(team_id, "others"), team_id in viewer.teams
        index = 0 if name == "others" else colours.get(team_id, 0)
        cells += [Cell("used", name, index, own, None if name == "others" else job_id)] * count
    cells = cells[: node.total]
    cells += [Cell("unhealthy")] * min(node.unhealthy, node.total - len(cells))
    cells += [Cell("free" if node.is_usable else "off")] * (node.total - len(cells))
    return tuple(cells)
