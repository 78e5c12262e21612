"""Make the cluster so for teams, tiers and pools; the only code of this app that reads rows and touches the cluster."""

import os
from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

from django.conf import settings
from django.utils import timezone

from portal.kube.client import Cluster
from portal.kube.errors import ClusterError, NotFound
from portal.kube.plan import Manifest, ObjectKey, Plan, make_plan
from portal.queue import ring
from tenants import actions, manifests
from tenants.models import Pool, PriorityTier, Team
from tenants.queries import team_state, tier_state
from tenants.state import pool_of

R = TypeVar("R", Team, Pool, PriorityTier)
RECHECK = timedelta(minutes=5)  # looks for changes nobody told us of; writes nothing when there are none
READY, BLOCKED, FAILED = "Ready", "Blocked", "Failed"
# What a team's namespace is compared in; jobs have objects of their own.
_TEAM_KINDS = (
    ("v1", "ServiceAccount"),
    ("rbac.authorization.k8s.io/v1", "Role"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"),
    ("v1", "ResourceQuota"),
    ("v1", "LimitRange"),
    ("networking.k8s.io/v1", "NetworkPolicy"),
)
_connection: dict[tuple[int, float], Cluster] = {}


def connected() -> Cluster:
    """This process's connection to the cluster, made anew after a fork and when the kubeconfig was written anew."""
    path = settings.BERTH_KUBECONFIG
    try:
        written = os.stat(path).st_mtime if path else 0.0
    except OSError:
        written = 0.0
    key = (os.getpid(), written)
    if key not in _connection:
        _connection.clear()
        _connection[key] = Cluster.connect(path)
    return _connection[key]


def reconcile_team(pk: int) -> None:
    """Namespace, roles, bindings, quota, limits of one team."""
    _reconcile(Team, pk, "tenants.tasks.reconcile_team", _team)


def reconcile_tier(pk: int) -> None:
    """PriorityClass of one tier."""
    _reconcile(PriorityTier, pk, "tenants.tasks.reconcile_tier", _tier)


def reconcile_pool(pk: int) -> None:
    """Label and taint of one pool's nodes."""
    _reconcile(Pool, pk, "tenants.tasks.reconcile_pool", _pool)


def _reconcile(kind: type[R], pk: int, task: str, work: Callable[[R, Cluster], str]) -> None:
    """Claim, work, settle; `work` returns what blocks it, in words, or nothing."""
    token = kind.claim(pk, now=timezone.now())
    if token is None:
        return
    row = kind._default_manager.get(pk=pk)
    generation = row.generation
    try:
        blocked = work(row, connected())
    except ClusterError as error:
        actions.record_condition(row, FAILED, str(error))
        kind.fail(pk, token, error=str(error), now=timezone.now())
        return
    except Exception as error:
        kind.fail(pk, token, error=repr(error), now=timezone.now())
        raise
    actions.record_condition(row, BLOCKED if blocked else READY, blocked)
    if not kind.settle(pk, token, observed_generation=generation, after=timezone.now() + RECHECK):
        ring(task, pk)


def _team(team: Team, cluster: Cluster) -> str:
    state = team_state(team)
    desired = manifests.team_manifests(state) if team.deleted_at is None else []
    owner = manifests.team_owner(state.uid)
    namespace_key = ObjectKey("v1", "Namespace", "", state.namespace)
    try:
        namespace = cluster.get(namespace_key)
    except NotFound:
        namespace = None
    # A namespace that is there already and not ours is refused, not taken, with all that would go into it (RW-079).
    plan = make_plan(desired[:1], [namespace] if namespace else [], owner=owner)
    if plan.refused:
        return f"The namespace {state.namespace} exists already and is not Berth's; it is left alone."
    _execute(cluster, plan)
    if not desired:
        return ""
    observed: list[Manifest] = []
    if namespace is not None:
        for api_version, kind in _TEAM_KINDS:
            listing = cluster.list(api_version, kind, namespace=state.namespace, type=dict)
            observed += [item | {"apiVersion": api_version, "kind": kind} for item in listing.items]
    plan = make_plan(desired[1:], observed, owner=owner)
    _execute(cluster, plan)
    return _refusals(plan)


def _tier(tier: PriorityTier, cluster: Cluster) -> str:
    key = ObjectKey("scheduling.k8s.io/v1", "PriorityClass", "", tier.slug)
    try:
        observed = [cluster.get(key)]
    except NotFound:
        observed = []
    desired = manifests.tier_manifest(tier_state(tier))
    plan = make_plan([desired], observed, owner=manifests.tier_owner(tier.slug))
    _execute(cluster, plan)
    return _refusals(plan)


def _pool(pool: Pool, cluster: Cluster) -> str:
    pools = [*Pool.objects.all()]
    slugs = {each.slug for each in pools}
    count = 0
    for node in cluster.list("v1", "Node", type=dict).items:
        labels = node["metadata"].get("labels") or {}
        wanted = pool_of(labels, pools)
        carried = labels.get("berth/pool")
        if wanted is not None and wanted.pk == pool.pk:
            count += 1
        elif carried != pool.slug and not (carried and carried not in slugs):
            continue  # another pool's business
        patch = manifests.node_patch(node, wanted.slug if wanted else None)
        if patch is not None:
            cluster.merge(ObjectKey("v1", "Node", "", node["metadata"]["name"]), patch)
    return "" if count else "No node carries the labels that this pool selects."


def _execute(cluster: Cluster, plan: Plan) -> None:
    """Carry a plan out; the first error is raised when everything else has been tried."""
    if not plan.is_empty:
        for _key, error in cluster.execute(plan).errors:
            raise error


def _refusals(plan: Plan) -> str:
    return "; ".join(f"{each.key} exists already and is not Berth's" for each in plan.refused)
