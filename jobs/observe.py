"""From what the watches deliver to the columns that are stored. Called by the observe process.

Labels, messages and requests are tenants' input: whatever they hold can be stored, so that no pod stops the watch.

The watches themselves are `portal/kube/informer.py`; what is written, and who is rung, is in
`jobs/actions/observation.py`.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from jobs import actions
from portal.kube import names, objects
from portal.kube.informer import Change
from portal.kube.quantity import QuantityError, parse_cpu_milli, parse_gpus, parse_memory_bytes

LARGEST_NUMBER = 2**31 - 1  # what a column of `jobs.models.Pod` holds


def replace_pods(pods: Sequence[objects.Pod], *, now: datetime) -> None:
    """A fresh list of every pod: what is stored and not in it has vanished."""
    actions.observe_pods([pod_columns(pod) for pod in pods], gone=(), now=now, is_complete=True)


def change_pods(changes: Sequence[Change[objects.Pod]], *, now: datetime) -> None:
    """A batch of watch events; of several events of one pod the last counts."""
    latest = {change.object.metadata.uid: change for change in changes}
    seen = [pod_columns(change.object) for change in latest.values()]
    gone = {uid for uid, change in latest.items() if change.type == "DELETED"}
    actions.observe_pods(seen, gone=gone, now=now)


def replace_nodes(nodes: Sequence[objects.Node], *, now: datetime) -> None:
    """A fresh list of every node."""
    actions.observe_nodes([node_columns(node) for node in nodes], gone=(), now=now, is_complete=True)


def change_nodes(changes: Sequence[Change[objects.Node]], *, now: datetime) -> None:
    """A batch of watch events about nodes; heartbeats change nothing that is stored."""
    latest = {change.object.metadata.name: change for change in changes}
    seen = [node_columns(change.object) for change in latest.values() if change.type != "DELETED"]
    gone = {name for name, change in latest.items() if change.type == "DELETED"}
    actions.observe_nodes(seen, gone=gone, now=now)


def replace_jobs(jobs: Sequence[objects.Job], *, now: datetime) -> None:
    """A fresh list of every Job: those that ended, and running ones that are missing from it, are looked at."""
    settled = {job.metadata.labels.get(names.JOB_LABEL, "") for job in jobs if _is_settled(job)}
    present = {job.metadata.uid for job in jobs}
    actions.observe_jobs(settled, present=present)


def change_jobs(changes: Sequence[Change[objects.Job]], *, now: datetime) -> None:
    """A batch of watch events about Jobs. Their pods are watched too: only the end of a Job tells something new."""
    labels = {
        change.object.metadata.labels.get(names.JOB_LABEL, "")
        for change in changes
        if change.type == "DELETED" or _is_settled(change.object)
    }
    actions.observe_jobs(labels)


def _is_settled(job: objects.Job) -> bool:
    """Whether the cluster has decided how the Job ends (it may still be stopping pods)."""
    return any(condition.status == "True" for condition in job.status.conditions)


def pod_columns(pod: objects.Pod) -> dict[str, Any]:
    """The stored columns of a pod (see `jobs.models.Pod`), and the job label as `job_label`."""
    meta, spec, status = pod.metadata, pod.spec, pod.status
    scheduled = next((c for c in status.conditions if c.type == "PodScheduled"), None)
    ready = next((c for c in status.conditions if c.type == "Ready"), None)
    disruption = next(
        (c for c in status.conditions if c.type == "DisruptionTarget" and c.status == "True"), None
    )
    containers = container_columns(pod)
    ended = [each["finished_at"] for each in containers if each["finished_at"]]
    begun = [each["started_at"] for each in containers if each["started_at"] and each["kind"] != "init"]
    has_ended = status.phase in ("Succeeded", "Failed")
    requests = _requests(pod)
    rank = meta.labels.get("batch.kubernetes.io/job-completion-index", "")
    return {
        "uid": meta.uid,
        "job_label": meta.labels.get(names.JOB_LABEL, ""),
        "attempt": _number(meta.labels.get(names.ATTEMPT_LABEL, "")),
        "rank": _number(rank) if rank.isdecimal() else None,
        "namespace": meta.namespace,
        "name": meta.name,
        "node_name": spec.node_name,
        "phase": status.phase or "Pending",
        "reason": _text(status.reason)[:120],
        "message": _text(status.message),
        "disruption": _text(disruption.reason)[:60] if disruption else "",
        "unschedulable": _text(scheduled.message) if scheduled and scheduled.status == "False" else "",
        "is_ready": bool(ready and ready.status == "True"),
        "containers": containers,
        "cpu_milli": _quantity(parse_cpu_milli, requests.get("cpu")),
        "memory_bytes": _quantity(parse_memory_bytes, requests.get("memory")),
        "gpus": {
            name: count
            for name, value in requests.items()
            if names.is_extended_resource(name) and (count := _quantity(parse_gpus, value))
        },
        "priority": spec.priority or 0,
        "resource_version": meta.resource_version,
        "created_at": meta.creation_timestamp,
        "started_at": datetime.fromisoformat(min(begun)) if begun else None,
        "finished_at": datetime.fromisoformat(max(ended)) if has_ended and ended else None,
        "deleting_at": meta.deletion_timestamp,
    }


def container_columns(pod: objects.Pod) -> list[dict[str, Any]]:
    """Every container of a pod with its kind and state, init containers first; times as ISO text."""
    found = []
    specs = [
        (each, "sidecar" if each.restart_policy == "Always" else "init") for each in pod.spec.init_containers
    ]
    ours = names.JOB_LABEL in pod.metadata.labels
    for each in pod.spec.containers:
        # In a pod of ours a container that we did not ask for was injected: never the job's result (RW-011).
        specs.append((each, "main" if not ours or each.name == "main" else "sidecar"))
    statuses = {s.name: s for s in [*pod.status.init_container_statuses, *pod.status.container_statuses]}
    for spec, kind in specs:
        found.append({"name": spec.name, "kind": kind} | _container_state(statuses.get(spec.name)))
    return found


def _container_state(status: objects.ContainerStatus | None) -> dict[str, Any]:
    columns: dict[str, Any] = {
        "state": "waiting",
        "restarts": status.restart_count if status else 0,
        "reason": "",
        "message": "",
        "exit_code": None,
        "started_at": None,
        "finished_at": None,
    }
    if status is None:
        return columns
    if ended := status.state.terminated:
        columns |= {
            "state": "terminated",
            "reason": _text(ended.reason),
            "message": _text(ended.message),
            "exit_code": ended.exit_code,
            "started_at": _iso(ended.started_at),
            "finished_at": _iso(ended.finished_at),
        }
    elif running := status.state.running:
        columns |= {"state": "running", "started_at": _iso(running.started_at)}
    elif waiting := status.state.waiting:
        columns |= {"reason": _text(waiting.reason), "message": _text(waiting.message)}
    return columns


def node_columns(node: objects.Node) -> dict[str, Any]:
    """The stored columns of a node (see `jobs.models.Node`)."""
    ready = next((c for c in node.status.conditions if c.type == "Ready"), None)
    allocatable, capacity = node.status.allocatable, node.status.capacity
    return {
        "name": node.metadata.name,
        "uid": node.metadata.uid,
        "labels": dict(node.metadata.labels),
        "taints": [
            {"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in node.spec.taints
        ],
        "is_ready": bool(ready and ready.status == "True"),
        "is_cordoned": node.spec.unschedulable,
        "cpu_milli": _quantity(parse_cpu_milli, allocatable.get("cpu")),
        "memory_bytes": _quantity(parse_memory_bytes, allocatable.get("memory")),
        "pods": _quantity(parse_gpus, allocatable.get("pods")),
        "gpus": {
            name: {
                "capacity": _quantity(parse_gpus, value),
                "allocatable": _quantity(parse_gpus, allocatable.get(name)),
            }
            for name, value in capacity.items()
            if names.is_extended_resource(name)
        },
        "resource_version": node.metadata.resource_version,
    }


def _requests(pod: objects.Pod) -> dict[str, str]:
    """What a pod holds: per resource the larger of all its containers together and any one init container.

    Sidecar init containers count with the others (Kubernetes documentation, "Init containers", resource sharing).
    """
    together: dict[str, list[str]] = {}
    largest: dict[str, list[str]] = {}
    for container in pod.spec.containers:
        for name, value in container.resources.requests.items():
            together.setdefault(name, []).append(value)
    for container in pod.spec.init_containers:
        target = together if container.restart_policy == "Always" else largest
        for name, value in container.resources.requests.items():
            target.setdefault(name, []).append(value)
    return {name: _larger(name, together.get(name, []), largest.get(name, [])) for name in together | largest}


def _larger(name: str, together: list[str], single: list[str]) -> str:
    parse = {"cpu": parse_cpu_milli}.get(name, parse_memory_bytes)
    total = sum(_quantity(parse, value) for value in together)
    peak = max((_quantity(parse, value) for value in single), default=0)
    return f"{max(total, peak)}m" if name == "cpu" else str(max(total, peak))


def _quantity(parse: Any, value: Any) -> int:
    """A quantity of the API server; what cannot be read counts as nothing rather than stopping the watch."""
    try:
        return int(parse(value)) if value is not None else 0
    except QuantityError:
        return 0


def _number(label: str) -> int:
    """A label's number; anything else, and what no column holds, is 0."""
    is_number = label.isascii() and label.isdecimal() and len(label) < 12
    return min(int(label), LARGEST_NUMBER) if is_number else 0


def _text(words: str) -> str:
    """Words as they can be stored: a program may write NUL into its termination message, PostgreSQL holds none."""
    return words.replace("\0", "\N{REPLACEMENT CHARACTER}")


def _iso(at: datetime | None) -> str | None:
    return at.isoformat() if at else None
