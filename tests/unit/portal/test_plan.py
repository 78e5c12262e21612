"""Desired and observed to a plan."""

from typing import Any

from portal.kube.plan import differences, key_of, make_plan, with_digest

OWNER = {"app.kubernetes.io/managed-by": "berth", "berth/team": "u1"}
ROLE_REF = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "ml-viewer"}


def manifest(kind: str = "ConfigMap", name: str = "a", **body: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "n", "labels": OWNER},
        **body,
    }


def observed(desired: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The object as the server would hold it after our apply, with fields of its own."""
    stamped = with_digest(desired)
    meta = {**stamped["metadata"], "uid": "x", "resourceVersion": "5", "managedFields": []}
    return {**stamped, "metadata": meta, "status": {"of": "others"}, **changes}


def test_what_is_missing_is_applied() -> None:
    plan = make_plan([manifest(data={"k": "v"})], [], owner=OWNER)
    assert [key_of(each) for each in plan.apply] == [key_of(manifest())]
    assert not plan.delete


def test_a_steady_state_makes_no_writes() -> None:
    desired = manifest(data={"k": "v"})
    assert make_plan([desired], [observed(desired)], owner=OWNER).is_empty


def test_a_field_that_is_not_ours_makes_no_difference() -> None:
    desired = manifest(data={"k": "v"})
    there = observed(desired, data={"k": "v", "other": "x"})
    assert make_plan([desired], [there], owner=OWNER).is_empty


def test_a_foreign_change_of_our_field_is_drift_and_is_put_right() -> None:
    desired = manifest(data={"k": "v"})
    plan = make_plan([desired], [observed(desired, data={"k": "changed"})], owner=OWNER)
    assert [(each.path, each.desired, each.observed) for each in plan.drift] == [("data.k", "v", "changed")]
    assert len(plan.apply) == 1


def test_our_own_new_wish_is_no_drift() -> None:
    plan = make_plan([manifest(data={"k": "new"})], [observed(manifest(data={"k": "old"}))], owner=OWNER)
    assert not plan.drift
    assert len(plan.apply) == 1


def test_ours_that_is_no_longer_wanted_goes_and_only_that_very_one() -> None:
    plan = make_plan([], [observed(manifest())], owner=OWNER)
    assert [(each.key.name, each.uid) for each in plan.delete] == [("a", "x")]


def test_an_object_without_our_labels_is_never_touched() -> None:
    foreign = observed(manifest())
    foreign["metadata"] = {**foreign["metadata"], "labels": {"berth/team": "u1"}}
    assert make_plan([], [foreign], owner=OWNER).is_empty
    plan = make_plan([manifest()], [foreign], owner=OWNER)
    assert plan.is_empty
    assert [each.key.name for each in plan.refused] == ["a"]


def test_a_changed_role_of_a_binding_is_replaced_the_old_one_first() -> None:
    desired = manifest("RoleBinding", roleRef=ROLE_REF)
    there = observed(manifest("RoleBinding", roleRef={**ROLE_REF, "name": "ml-lead"}))
    plan = make_plan([desired], [there], owner=OWNER)
    assert [each.uid for each in plan.replace] == ["x"]
    assert len(plan.apply) == 1


def test_a_job_that_is_there_is_never_applied_again() -> None:
    desired = {**manifest("Job"), "apiVersion": "batch/v1", "spec": {"parallelism": 2}}
    there = observed({**desired, "spec": {"parallelism": 1}})
    assert make_plan([desired], [there], owner=OWNER).is_empty


def test_quantities_the_server_rewrites_are_equal() -> None:
    assert not [*differences({"cpu": "1000m", "m": "1024Mi"}, {"cpu": "1", "m": "1Gi"})]
    assert [*differences({"cpu": "1"}, {"cpu": "2"})] == [("cpu", "1", "2")]
