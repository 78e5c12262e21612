"""What tenants write into their pods with kubectl: stored as far as it means something, and it stops nothing."""

import json
from typing import Any

import pytest
from django.utils import timezone

from jobs import observe
from jobs.models import Pod
from portal.kube import names, objects
from portal.kube.informer import Change
from tests import builders

pytestmark = [pytest.mark.integration, pytest.mark.django_db]

HUGE = "9" * 63


def pod(name: str, *, namespace: str = "team-vision", **parts: Any) -> objects.Pod:
    """A pod as the API server sends it."""
    meta = {
        "name": name,
        "namespace": namespace,
        "uid": f"uid-{name}",
        "resourceVersion": "7",
        "creationTimestamp": "2026-01-01T08:00:00Z",
        "labels": parts.pop("labels", {}),
    }
    spec = {"containers": [{"name": "main"} | parts.pop("container", {})]}
    data = {"metadata": meta, "spec": spec, "status": {"phase": "Pending"} | parts.pop("status", {})}
    return objects.decode(json.dumps(data).encode(), objects.Pod)


def terminated(message: str, reason: str = "Error") -> dict[str, Any]:
    state = {"terminated": {"exitCode": 1, "reason": reason, "message": message}}
    return {"phase": "Failed", "containerStatuses": [{"name": "main", "restartCount": 0, "state": state}]}


POISON: dict[str, Any] = {
    "job label without end": {"labels": {names.JOB_LABEL: HUGE}},
    "job label over 64 bits": {"labels": {names.JOB_LABEL: str(2**64)}},
    "job label that is a word": {"labels": {names.JOB_LABEL: "x-1"}},
    "attempt over 32 bits": {"labels": {names.ATTEMPT_LABEL: str(2**40)}},
    "attempt without end": {"labels": {names.ATTEMPT_LABEL: HUGE}},
    "rank over 32 bits": {"labels": {"batch.kubernetes.io/job-completion-index": str(2**31)}},
    "rank that is a word": {"labels": {"batch.kubernetes.io/job-completion-index": "first"}},
    "NUL in the termination message": {"status": terminated("half\0done")},
    "NUL in a reason": {"status": terminated("", reason="a\0b")},
    "NUL in the pod's message": {"status": {"phase": "Failed", "reason": "E\0", "message": "\0"}},
    "very long reason": {"status": terminated("m" * 5000, reason="r" * 5000)},
    "all the memory there is": {"container": {"resources": {"requests": {"memory": "8Ei", "cpu": "9E"}}}},
    "memory in thousandths": {"container": {"resources": {"requests": {"memory": "1500m"}}}},
    "devices nobody knows": {"container": {"resources": {"requests": {"example.com/x": "9" * 18}}}},
}


@pytest.mark.parametrize("kind", POISON)
def test_no_pod_stops_the_watch(kind: str) -> None:
    team = builders.team("vision")
    now = timezone.now()
    observe.replace_pods([pod("before"), pod("odd", **POISON[kind]), pod("after")], now=now)
    observe.change_pods(
        [Change("MODIFIED", pod("odd", **POISON[kind])), Change("ADDED", pod("late"))], now=now
    )
    assert set(Pod.objects.filter(team=team).values_list("name", flat=True)) == {
        "before",
        "odd",
        "after",
        "late",
    }


def test_a_job_label_pasted_in_another_teams_namespace_means_nothing() -> None:
    vision, language = builders.team("vision"), builders.team("language")
    pool, tier = builders.pool(), builders.tier()
    builders.quota(vision, pool)
    job = builders.job(builders.person("alice", "developer", vision), vision, pool, tier)
    labels = {names.JOB_LABEL: str(job.pk)}
    observe.replace_pods(
        [pod("own", labels=labels), pod("foreign", namespace=language.namespace, labels=labels)],
        now=timezone.now(),
    )
    assert Pod.objects.get(name="own").job == job
    assert Pod.objects.get(name="foreign").job is None


def test_a_labels_job_with_a_number_without_end_is_nobodys() -> None:
    settled = {"type": "Complete", "status": "True"}
    data = {"metadata": {"uid": "u", "labels": {names.JOB_LABEL: HUGE}}, "status": {"conditions": [settled]}}
    job = objects.decode(json.dumps(data).encode(), objects.Job)
    observe.replace_jobs([job], now=timezone.now())
    observe.change_jobs([Change("MODIFIED", job)], now=timezone.now())
