"""A job's spec to its Kubernetes objects (pure). Called by `jobs/reconcile.py`; built whole, tested whole."""

from typing import Any

from jobs.argv import container_argv, escape_dollars
from jobs.state import JobSpec
from portal.kube import names
from portal.kube.plan import Manifest
from portal.kube.quantity import format_cpu, format_memory

CONTAINER = "main"
MASTER_PORT = 29500  # torchrun's default rendezvous port
# Names Berth gives to a worker's environment; a job may not set them itself.
RESERVED_ENV_PREFIX = "BERTH_"


def job_manifests(spec: JobSpec) -> list[Manifest]:
    """Every object one attempt of a job needs: the Job, and for several workers the Service they find each other by."""
    name = object_name(spec)
    manifests = [_job(spec, name)]
    if spec.workers > 1:
        manifests.append(_headless_service(spec, name))
    return manifests


def object_name(spec: JobSpec) -> str:
    """Name of the attempt's Job (and Service)."""
    return names.job_name(spec.name, spec.job_id, spec.attempt)


def owner_labels(*, team_uid: str, job_id: int) -> dict[str, str]:
    """The labels by which Berth knows a job's objects again; ids only (RW-046)."""
    return {
        names.MANAGED_BY_LABEL: names.MANAGED_BY,
        names.TEAM_LABEL: team_uid,
        names.JOB_LABEL: str(job_id),
    }


def _job(spec: JobSpec, name: str) -> Manifest:
    labels = owner_labels(team_uid=spec.team_uid, job_id=spec.job_id)
    body: dict[str, Any] = {
        "parallelism": spec.workers,
        "completions": spec.workers,
        "completionMode": "Indexed" if spec.workers > 1 else "NonIndexed",
        "backoffLimit": spec.retries,
        # A preempted, evicted or drained pod does not use up a retry (RW-067; Kubernetes documentation, "Pod failure
        # policy"). The policy asks for restartPolicy Never.
        "podFailurePolicy": {
            "rules": [
                {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
            ]
        },
        "template": {
            "metadata": {
                "labels": dict(spec.labels) | labels | {names.ATTEMPT_LABEL: str(spec.attempt)},
                "annotations": dict(spec.annotations) | {names.JOB_NAME_ANNOTATION: spec.name},
            },
            "spec": _pod_spec(spec, name),
        },
    }
    if spec.wall_seconds is not None:
        body["activeDeadlineSeconds"] = spec.wall_seconds
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": spec.namespace,
            "labels": labels | {names.ATTEMPT_LABEL: str(spec.attempt)},
            "annotations": {names.JOB_NAME_ANNOTATION: spec.name},
        },
        "spec": body,
    }


def _pod_spec(spec: JobSpec, name: str) -> dict[str, Any]:
    pod: dict[str, Any] = {
        "restartPolicy": "Never",
        "serviceAccountName": names.JOB_SERVICE_ACCOUNT,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "priorityClassName": spec.priority_class,
        "terminationGracePeriodSeconds": spec.grace_seconds,
        "nodeSelector": {names.POOL_LABEL: spec.pool_slug},
        "tolerations": [
            {
                "key": names.POOL_LABEL,
                "operator": "Equal",
                "value": spec.pool_slug,
                "effect": "NoSchedule",
            }
        ],
        "containers": [_container(spec, name)],
    }
    if spec.workers > 1:
        pod["subdomain"] = name
    if spec.planned_nodes:
        pod["affinity"] = _prefer_planned(spec.planned_nodes)
    return pod


def _container(spec: JobSpec, name: str) -> dict[str, Any]:
    argv = container_argv(spec.command_mode, spec.argv, spec.script)
    limits = {
        "cpu": format_cpu(spec.resources.cpu_milli),
        "memory": format_memory(spec.resources.memory_bytes),
    }
    if spec.resources.gpus:
        limits[spec.gpu_resource] = str(spec.resources.gpus)
    container: dict[str, Any] = {
        "name": CONTAINER,
        "image": spec.image,
        "imagePullPolicy": "IfNotPresent",
        "env": _environment(spec, name),
        "resources": {"requests": dict(limits), "limits": limits},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    if argv:
        container["command"] = [escape_dollars(argument) for argument in argv]
    return container


def _environment(spec: JobSpec, name: str) -> list[dict[str, Any]]:
    """The job's variables, then ours: the names torchrun and its like read for several workers."""
    env: list[dict[str, Any]] = [{"name": key, "value": escape_dollars(value)} for key, value in spec.env]
    env.append({"name": "BERTH_JOB_ID", "value": str(spec.job_id)})
    if spec.workers > 1:
        index = {
            "fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}
        }
        env += [
            {"name": "RANK", "valueFrom": index},
            {"name": "WORLD_SIZE", "value": str(spec.workers)},
            {"name": "MASTER_ADDR", "value": f"{name}-0.{name}"},
            {"name": "MASTER_PORT", "value": str(MASTER_PORT)},
        ]
    return env


def _prefer_planned(nodes: tuple[str, ...]) -> dict[str, Any]:
    """Ask the scheduler for the nodes admission planned with, without insisting on them.

    Its own spreading would otherwise break up the holes that the plan keeps whole for larger jobs.
    """
    return {
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 100,
                    "preference": {
                        "matchExpressions": [
                            {"key": "kubernetes.io/hostname", "operator": "In", "values": sorted(set(nodes))}
                        ]
                    },
                }
            ]
        }
    }


def _headless_service(spec: JobSpec, name: str) -> Manifest:
    labels = owner_labels(team_uid=spec.team_uid, job_id=spec.job_id)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": spec.namespace, "labels": labels},
        "spec": {
            "clusterIP": "None",
            # Workers look each other up before they are ready.
            "publishNotReadyAddresses": True,
            "selector": {names.JOB_LABEL: str(spec.job_id), names.ATTEMPT_LABEL: str(spec.attempt)},
            "ports": [{"name": "rendezvous", "port": MASTER_PORT, "protocol": "TCP"}],
        },
    }
