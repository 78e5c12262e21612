"""What people do to Berth's objects with kubectl, and what Berth makes of it."""

import json
from typing import Any

import pytest

from deploy.devcluster import DevCluster
from jobs import actions, reconcile
from jobs.manifests import object_name
from jobs.models import Job
from jobs.queries import job_spec
from jobs.state import JobState
from portal.kube import names
from tenants.actions import SYSTEM
from tenants.models import Team
from tests.cluster.scene import found, submitted

pytestmark = [pytest.mark.cluster, pytest.mark.django_db(transaction=True)]


def apply(cluster: DevCluster, manifest: dict[str, Any], *, check: bool = True) -> Any:
    """Create an object as the cluster's administrator."""
    return cluster.kubectl("create", "-f", "-", input=json.dumps(manifest), check=check)


def state_of(job: Job) -> tuple[str, str]:
    job.refresh_from_db()
    return job.state, job.reason


@pytest.mark.parametrize("workers", [1, 2])
def test_an_object_that_stands_under_a_jobs_name_is_neither_adopted_nor_deleted(
    tenancy_ready: DevCluster,
    workers: int,
) -> None:
    job = submitted(workers=workers)
    name, namespace = object_name(job_spec(job)), job.team.namespace
    kind = "job" if workers == 1 else "service"
    if kind == "job":
        tenancy_ready.kubectl("create", "job", name, "--image=x", "-n", namespace)
    else:
        tenancy_ready.kubectl("create", "service", "clusterip", name, "--tcp=80", "-n", namespace)
    before = found(tenancy_ready, kind, name, "-n", namespace)["metadata"]
    reconcile.reconcile_job(job.pk)
    assert state_of(job) == (JobState.FAILED, "Refused")
    assert name in job.message
    Job.objects.filter(pk=job.pk).update(finished_at="2026-01-01T00:00:00Z")
    reconcile.reconcile_job(job.pk)
    after = found(tenancy_ready, kind, name, "-n", namespace)["metadata"]
    assert (after["uid"], after.get("labels")) == (before["uid"], before.get("labels"))


def test_a_job_whose_labels_were_taken_off_can_still_be_cancelled(
    tenancy_ready: DevCluster,
) -> None:
    job = submitted()
    reconcile.reconcile_job(job.pk)
    name, where = object_name(job_spec(job)), ("-n", job.team.namespace)
    tenancy_ready.kubectl("label", "job", name, *where, f"{names.MANAGED_BY_LABEL}-", f"{names.JOB_LABEL}-")
    job.refresh_from_db()
    reconcile.reconcile_job(job.pk)
    assert found(tenancy_ready, "job", name, *where)["metadata"]["labels"][names.JOB_LABEL] == str(job.pk)

    tenancy_ready.kubectl("label", "job", name, *where, f"{names.MANAGED_BY_LABEL}-", f"{names.JOB_LABEL}-")
    job.refresh_from_db()
    actions.cancel_job(actor=SYSTEM, job=job)
    reconcile.reconcile_job(job.pk)
    assert name not in [each["metadata"]["name"] for each in found(tenancy_ready, "jobs", *where)["items"]]


def test_a_job_that_the_cluster_does_not_take_fails_and_holds_nothing(
    tenancy_ready: DevCluster,
) -> None:
    job = submitted()
    Job.objects.filter(pk=job.pk).update(labels={"job-name": "x", "secret": "ketchup"})
    reconcile.reconcile_job(job.pk)
    assert state_of(job) == (JobState.FAILED, "Refused")
    assert "labels" in job.message
    assert "ketchup" not in job.message


@pytest.mark.parametrize(
    ("priority_class", "is_taken"),
    [
        ("system-node-critical", False),
        ("system-cluster-critical", False),
        ("critical-prod", False),
        ("low-priority-dev", True),
        ("", True),
    ],
)
def test_pods_made_with_kubectl_have_no_priority_the_team_was_not_granted(
    tenancy_ready: DevCluster,
    priority_class: str,
    *,
    is_taken: bool,
) -> None:
    spec: dict[str, Any] = {"containers": [{"name": "main", "image": "x"}]}
    if priority_class:
        spec["priorityClassName"] = priority_class
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "mine-", "namespace": Team.objects.get(slug="a").namespace},
        "spec": spec,
    }
    answer = apply(tenancy_ready, manifest, check=False)
    assert (answer.returncode == 0) == is_taken, answer.stderr
    if not is_taken:
        assert "berth-tiers-not-granted" in answer.stderr
