"""A job's objects, whole."""

from typing import Any

import pytest

from jobs.manifests import job_manifests
from jobs.state import CommandMode, JobSpec, Resources
from portal.kube import names

pytestmark = pytest.mark.unit


def spec(**changes: Any) -> JobSpec:
    """One worker with two GPUs."""
    plain: dict[str, Any] = {
        "job_id": 12,
        "attempt": 1,
        "name": "Größe 1!",
        "team_id": 3,
        "team_uid": "uid-of-team",
        "namespace": "team-a",
        "owner": "alice",
        "image": "registry.example/train:1",
        "command_mode": CommandMode.ARGV,
        "argv": ("python", "train.py", "--cost=$(HOME)"),
        "script": "",
        "env": (("A", "$(B)"),),
        "workers": 1,
        "resources": Resources(cpu_milli=1500, memory_bytes=2 * 1024**3, gpus=2),
        "gpu_resource": "nvidia.com/gpu",
        "pool_slug": "h100",
        "priority_class": "low-priority-dev",
        "retries": 2,
        "wall_seconds": None,
        "grace_seconds": 30,
    }
    return JobSpec(**(plain | changes))


def job_of(**changes: Any) -> dict[str, Any]:
    """The Job of such a spec."""
    return job_manifests(spec(**changes))[0]


def pod_of(**changes: Any) -> dict[str, Any]:
    """The pod's spec in it."""
    found: dict[str, Any] = job_of(**changes)["spec"]["template"]["spec"]
    return found


def test_one_worker_is_one_plain_job() -> None:
    (job,) = job_manifests(spec())
    assert (job["apiVersion"], job["kind"]) == ("batch/v1", "Job")
    body = job["spec"]
    assert (body["parallelism"], body["completions"], body["completionMode"]) == (1, 1, "NonIndexed")
    assert body["backoffLimit"] == 2
    assert "activeDeadlineSeconds" not in body
    assert "suspend" not in body


def test_the_name_is_valid_and_the_typed_name_kept_beside_it() -> None:
    meta = job_of()["metadata"]
    assert names.is_valid_label_value(meta["name"])
    assert meta["annotations"] == {names.JOB_NAME_ANNOTATION: "Größe 1!"}


def test_another_attempt_is_another_object() -> None:
    assert job_of(attempt=1)["metadata"]["name"] != job_of(attempt=2)["metadata"]["name"]


def test_a_pod_is_told_whose_it_is_by_ids_only_and_cannot_claim_otherwise() -> None:
    meta = job_of(labels={names.TEAM_LABEL: "other", "x": "y"})["spec"]["template"]["metadata"]
    assert meta["labels"] == {
        "x": "y",
        names.MANAGED_BY_LABEL: names.MANAGED_BY,
        names.TEAM_LABEL: "uid-of-team",
        names.JOB_LABEL: "12",
        names.ATTEMPT_LABEL: "1",
    }


def test_the_pod_has_no_rights_in_the_cluster_and_none_to_gain() -> None:
    pod = pod_of()
    assert pod["automountServiceAccountToken"] is False
    assert pod["serviceAccountName"] == names.JOB_SERVICE_ACCOUNT
    assert pod["containers"][0]["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def test_it_goes_to_its_pool_and_nowhere_else() -> None:
    pod = pod_of()
    assert pod["nodeSelector"] == {names.POOL_LABEL: "h100"}
    assert [(each["key"], each["value"]) for each in pod["tolerations"]] == [(names.POOL_LABEL, "h100")]


def test_planned_nodes_are_a_wish_not_a_condition() -> None:
    assert "affinity" not in pod_of()
    wish = pod_of(planned_nodes=("n2", "n1", "n2"))["affinity"]["nodeAffinity"]
    assert list(wish) == ["preferredDuringSchedulingIgnoredDuringExecution"]
    (term,) = wish["preferredDuringSchedulingIgnoredDuringExecution"]
    assert term["preference"]["matchExpressions"][0]["values"] == ["n1", "n2"]


def test_requests_are_limits() -> None:
    resources = pod_of()["containers"][0]["resources"]
    assert resources["limits"] == {"cpu": "1500m", "memory": "2Gi", "nvidia.com/gpu": "2"}
    assert resources["requests"] == resources["limits"]


def test_no_gpus_are_not_asked_for() -> None:
    assert (
        "nvidia.com/gpu"
        not in pod_of(resources=Resources(100, 1024**2))["containers"][0]["resources"]["limits"]
    )


def test_rw_036_nothing_is_expanded_by_the_kubelet() -> None:
    container = pod_of()["containers"][0]
    assert container["command"] == ["python", "train.py", "--cost=$$(HOME)"]
    assert container["env"][0] == {"name": "A", "value": "$$(B)"}


def test_without_a_command_the_image_decides() -> None:
    assert "command" not in pod_of(argv=())["containers"][0]


def test_a_wall_time_is_the_jobs_deadline() -> None:
    assert job_of(wall_seconds=90)["spec"]["activeDeadlineSeconds"] == 90


def test_workers_find_each_other() -> None:
    job, service = job_manifests(spec(workers=4))
    assert (job["spec"]["parallelism"], job["spec"]["completionMode"]) == (4, "Indexed")
    assert job["spec"]["template"]["spec"]["subdomain"] == service["metadata"]["name"]
    assert service["spec"]["clusterIP"] == "None"
    labels = job["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    env = {
        each["name"]: each.get("value") for each in job["spec"]["template"]["spec"]["containers"][0]["env"]
    }
    name = service["metadata"]["name"]
    assert (env["WORLD_SIZE"], env["MASTER_ADDR"]) == ("4", f"{name}-0.{name}")
    assert "RANK" in env
