"""What a team, a tier and a pool are in the cluster."""

from typing import Any

import pytest

from portal.kube import names
from tenants.access import TeamRole
from tenants.manifests import ROLE_NAMES, node_patch, team_manifests, tier_manifest
from tenants.state import TeamState, TierState

pytestmark = pytest.mark.unit

LABEL = names.POOL_LABEL


def state(**changes: Any) -> TeamState:
    plain: dict[str, Any] = {
        "uid": "u1",
        "slug": "a",
        "name": "Vision",
        "namespace": "team-a",
        "groups": (("ml-vision", "developer"),),
        "cpu_milli": 64_000,
        "memory_bytes": 256 * 1024**3,
        "pods": 100,
        "storage_bytes": 1024**4,
        "gpus": {"nvidia.com/gpu": 12},
        "groups_prefix": "oidc:",
    }
    return TeamState(**(plain | changes))


def found(kind: str, **changes: Any) -> list[dict[str, Any]]:
    return [each for each in team_manifests(state(**changes)) if each["kind"] == kind]


def test_every_object_is_in_the_teams_namespace_and_known_as_its_own() -> None:
    namespace, *others = team_manifests(state())
    assert (namespace["kind"], namespace["metadata"]["name"]) == ("Namespace", "team-a")
    for each in others:
        assert each["metadata"]["namespace"] == "team-a"
    for each in (namespace, *others):
        assert each["metadata"]["labels"][names.TEAM_LABEL] == "u1"
    keys = [(each["kind"], each["metadata"]["name"]) for each in others]
    assert len(set(keys)) == len(keys)


def test_a_group_is_bound_under_the_name_the_api_server_knows_it_by() -> None:
    (binding,) = found("RoleBinding")
    assert binding["roleRef"]["name"] == "ml-developer"
    assert [each["name"] for each in binding["subjects"]] == ["oidc:ml-vision"]


def test_groups_that_make_the_same_slug_get_bindings_of_their_own() -> None:
    groups = (("/ML Vision", "developer"), ("ml-vision", "developer"), ("ML.vision" * 30, "developer"))
    bindings = found("RoleBinding", groups=groups)
    assert len({each["metadata"]["name"] for each in bindings}) == len(groups)
    assert all(len(each["metadata"]["name"]) <= 63 for each in bindings)


def test_nobody_may_change_rules_and_viewers_may_change_nothing() -> None:
    roles = {each["metadata"]["name"]: each["rules"] for each in found("Role")}
    assert set(roles) == set(ROLE_NAMES.values())
    writes = {"create", "update", "patch", "delete", "deletecollection", "bind", "escalate", "*"}
    guarded = {"roles", "rolebindings", "resourcequotas", "limitranges", "namespaces", "networkpolicies", "*"}
    for rule in (rule for rules in roles.values() for rule in rules):
        if guarded & set(rule["resources"]):
            assert not writes & set(rule["verbs"])
        assert "serviceaccounts" not in rule["resources"]
    for rule in roles[ROLE_NAMES[TeamRole.VIEWER]]:
        assert not writes & set(rule["verbs"])
        assert "secrets" not in rule["resources"]


def test_the_quota_holds_what_the_team_may_have() -> None:
    (quota,) = found("ResourceQuota", tiers=())
    hard = quota["spec"]["hard"]
    assert (hard["requests.cpu"], hard["limits.memory"], hard["pods"]) == ("64", "256Gi", "100")
    assert hard["requests.nvidia.com/gpu"] == "12"


def test_pods_may_have_the_granted_tiers_and_no_others() -> None:
    _limits, others = found("ResourceQuota", tiers=("low", "research"))
    assert others["spec"]["hard"] == {"pods": "0"}
    (scope,) = others["spec"]["scopeSelector"]["matchExpressions"]
    assert scope == {"scopeName": "PriorityClass", "operator": "NotIn", "values": ["low", "research"]}


@pytest.mark.parametrize(("may_preempt", "policy"), [(True, "PreemptLowerPriority"), (False, "Never")])
def test_a_tier_is_a_priority_class(*, may_preempt: bool, policy: str) -> None:
    tier = tier_manifest(TierState("high", 900, may_preempt=may_preempt, is_default=False, description="d"))
    assert (tier["kind"], tier["value"], tier["preemptionPolicy"]) == ("PriorityClass", 900, policy)
    assert tier["globalDefault"] is False


def a_node(label: str | None = None, *taints: dict[str, str]) -> dict[str, Any]:
    labels = {} if label is None else {LABEL: label}
    return {
        "metadata": {"name": "n", "resourceVersion": "5", "labels": labels},
        "spec": {"taints": list(taints)},
    }


def taint(value: str) -> dict[str, str]:
    return {"key": LABEL, "value": value, "effect": "NoSchedule"}


FOREIGN = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}


@pytest.mark.parametrize(
    ("node", "pool", "label", "taints"),
    [
        pytest.param(a_node(), "h100", "h100", [taint("h100")], id="new"),
        pytest.param(a_node("l4", taint("l4")), "h100", "h100", [taint("h100")], id="moved"),
        pytest.param(a_node("h100", taint("h100")), None, None, [], id="left"),
        pytest.param(a_node("h100"), "h100", "h100", [taint("h100")], id="taint removed by hand"),
        pytest.param(a_node(None, FOREIGN), "h100", "h100", [FOREIGN, taint("h100")], id="others' kept"),
        pytest.param(a_node("h100", taint("h100"), taint("l4")), "h100", "h100", [taint("h100")], id="two of ours"),
    ],
)  # fmt: skip
def test_a_node_gets_its_pools_label_and_taint(
    node: dict[str, Any], pool: str | None, label: str | None, taints: list[dict[str, str]]
) -> None:
    patch = node_patch(node, pool)
    assert patch is not None
    assert patch["metadata"] == {"resourceVersion": "5", "labels": {LABEL: label}}
    assert patch["spec"]["taints"] == taints


@pytest.mark.parametrize(
    ("node", "pool"), [(a_node("h100", taint("h100"), FOREIGN), "h100"), (a_node(None, FOREIGN), None)]
)
def test_a_node_that_is_right_is_left_alone(node: dict[str, Any], pool: str | None) -> None:
    assert node_patch(node, pool) is None
