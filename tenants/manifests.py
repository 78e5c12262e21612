"""States to Kubernetes objects (pure). Called by `tenants/reconcile.py`; built whole, tested whole."""

from collections.abc import Mapping, Sequence
from typing import Any

from portal.kube import names
from portal.kube.plan import Manifest
from portal.kube.quantity import format_cpu, format_memory
from tenants.access import TeamRole
from tenants.state import TeamState, TierState

RBAC = "rbac.authorization.k8s.io"
ROLE_NAMES: Mapping[TeamRole, str] = {
    TeamRole.VIEWER: "ml-viewer",
    TeamRole.DEVELOPER: "ml-developer",
    TeamRole.LEAD: "ml-lead",
}
_READ = ["get", "list", "watch"]
_WRITE = [*_READ, "create", "update", "patch", "delete"]
Rule = dict[str, list[str]]


def team_owner(uid: str) -> dict[str, str]:
    """The labels by which Berth knows a team's own objects again; jobs carry one more."""
    return {names.MANAGED_BY_LABEL: names.MANAGED_BY, names.TEAM_LABEL: uid}


def team_manifests(team: TeamState) -> list[Manifest]:
    """Everything a team has in the cluster besides its jobs."""
    namespaced = [
        _object(team, "v1", "ServiceAccount", names.JOB_SERVICE_ACCOUNT, automountServiceAccountToken=False),
        *(_object(team, f"{RBAC}/v1", "Role", ROLE_NAMES[role], rules=_rules(role)) for role in TeamRole),
        *_bindings(team),
        _object(team, "v1", "ResourceQuota", "berth", spec={"hard": _hard(team)}),
        *_other_tiers(team),
        _object(team, "v1", "LimitRange", "berth", spec={"limits": _limits(team)}),
        _network_policy(team),
    ]
    return [_namespace(team), *namespaced]


def _namespace(team: TeamState) -> Manifest:
    labels = team_owner(team.uid) | {"pod-security.kubernetes.io/enforce": "baseline"}
    annotations = {"berth/team-name": team.name}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": team.namespace, "labels": labels, "annotations": annotations},
    }


def _object(team: TeamState, api_version: str, kind: str, name: str, **body: Any) -> Manifest:
    metadata = {"name": name, "namespace": team.namespace, "labels": team_owner(team.uid)}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **body}


def _rules(role: TeamRole) -> list[Rule]:
    """Nobody gets roles, quotas or nodes; each role includes the ones before it."""
    workloads = _READ if role is TeamRole.VIEWER else _WRITE
    rules: list[Rule] = [
        {"apiGroups": [""], "resources": ["pods", "services", "configmaps"], "verbs": workloads},
        {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get", "list"]},
        {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": workloads},
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": workloads},
        {"apiGroups": [""], "resources": ["events", "resourcequotas", "limitranges"], "verbs": _READ},
    ]
    if role is not TeamRole.VIEWER:
        rules.append({"apiGroups": [""], "resources": ["secrets"], "verbs": _WRITE})
        rules.append({"apiGroups": [""], "resources": ["pods/exec", "pods/portforward"], "verbs": ["create"]})
    if role is TeamRole.LEAD:
        rules.append({"apiGroups": [RBAC], "resources": ["roles", "rolebindings"], "verbs": _READ})
    return rules


def _bindings(team: TeamState) -> list[Manifest]:
    """One binding per mapped group, named after role and group; it names the group as the API server sees it."""
    return [
        _object(
            team,
            f"{RBAC}/v1",
            "RoleBinding",
            f"{ROLE_NAMES[TeamRole(role)]}-{names.unique_slug(group, limit=45)}",
            roleRef={"apiGroup": RBAC, "kind": "Role", "name": ROLE_NAMES[TeamRole(role)]},
            subjects=[{"apiGroup": RBAC, "kind": "Group", "name": team.groups_prefix + group}],
        )
        for group, role in team.groups
    ]


def _hard(team: TeamState) -> dict[str, str]:
    cpu, memory = format_cpu(team.cpu_milli), format_memory(team.memory_bytes)
    hard = {
        "requests.cpu": cpu,
        "limits.cpu": cpu,
        "requests.memory": memory,
        "limits.memory": memory,
        "pods": str(team.pods),
        "requests.storage": format_memory(team.storage_bytes),
    }
    return hard | {f"requests.{resource}": str(count) for resource, count in sorted(team.gpus.items())}


def _other_tiers(team: TeamState) -> list[Manifest]:
    """No pod of a PriorityClass that the team was not granted: it would push out the jobs of others.

    Holds for people with kubectl too, and for the classes of the system (Kubernetes documentation, "Resource Quotas",
    quota scopes).
    """
    if not team.tiers:
        return []
    scope = {"scopeName": "PriorityClass", "operator": "NotIn", "values": list(team.tiers)}
    spec = {"hard": {"pods": "0"}, "scopeSelector": {"matchExpressions": [scope]}}
    return [_object(team, "v1", "ResourceQuota", "berth-tiers-not-granted", spec=spec)]


def _limits(team: TeamState) -> list[dict[str, Any]]:
    """Defaults, so that a pod without limits is neither refused by the quota nor boundless."""
    return [
        {
            "type": "Container",
            "default": {"cpu": "1", "memory": "1Gi"},
            "defaultRequest": {"cpu": "100m", "memory": "256Mi"},
            "max": {"cpu": format_cpu(team.cpu_milli), "memory": format_memory(team.memory_bytes)},
        }
    ]


def _network_policy(team: TeamState) -> Manifest:
    """Pods are reached from their own namespace only; they may go out, but not to node metadata services."""
    own: Manifest = {"podSelector": {}}
    outside = {"ipBlock": {"cidr": "0.0.0.0/0", "except": ["169.254.169.254/32"]}}
    spec = {
        "podSelector": {},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"from": [own]}],
        "egress": [{"to": [own]}, {"to": [outside]}],
    }
    return _object(team, "networking.k8s.io/v1", "NetworkPolicy", "berth", spec=spec)


def tier_owner(slug: str) -> dict[str, str]:
    """The labels by which Berth knows a tier's PriorityClass again."""
    return {names.MANAGED_BY_LABEL: names.MANAGED_BY, names.TIER_LABEL: slug}


def tier_manifest(tier: TierState) -> Manifest:
    """A tier's PriorityClass."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": tier.slug, "labels": tier_owner(tier.slug)},
        "value": tier.value,
        "globalDefault": tier.is_default,
        "preemptionPolicy": "PreemptLowerPriority" if tier.may_preempt else "Never",
        "description": tier.description,
    }


def node_patch(node: Mapping[str, Any], pool_slug: str | None) -> dict[str, Any] | None:
    """The merge patch that gives a node its pool's label and taint, or takes ours away; None when it has just those.

    Taints are one list without keys: it is replaced whole, under the version that was read, others' taints kept.
    """
    labels = node["metadata"].get("labels") or {}
    taints: Sequence[dict[str, str]] = (node.get("spec") or {}).get("taints") or []
    ours = (
        [] if pool_slug is None else [{"key": names.POOL_LABEL, "value": pool_slug, "effect": "NoSchedule"}]
    )
    found = [taint for taint in taints if taint.get("key") == names.POOL_LABEL]
    if labels.get(names.POOL_LABEL) == pool_slug and found == ours:
        return None
    others = [taint for taint in taints if taint.get("key") != names.POOL_LABEL]
    return {
        "metadata": {
            "resourceVersion": node["metadata"]["resourceVersion"],
            "labels": {names.POOL_LABEL: pool_slug},
        },
        "spec": {"taints": others + ours},
    }
