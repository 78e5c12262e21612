"""The subset of the Kubernetes API that Berth reads, as msgspec structs: 40 times faster than the typed models.

Unknown fields are dropped and missing ones have defaults, so no odd object can stop a list. Never write back what was
read this way.
"""

from datetime import datetime
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")
Labels = dict[str, str]


class Struct(msgspec.Struct, rename="camel", kw_only=True, frozen=True):
    """Base: field names in the API's camel case."""


def renamed(name: str, default: Any) -> Any:
    """A field whose name in the API is no Python name."""
    return msgspec.field(name=name, default=default)


class Meta(Struct, frozen=True):
    """metav1.ObjectMeta."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: Labels = {}
    annotations: Labels = {}
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None


class Condition(Struct, frozen=True):
    """A condition of a pod, node or job."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None


class Resources(Struct, frozen=True):
    """v1.ResourceRequirements."""

    requests: dict[str, str] = {}
    limits: dict[str, str] = {}


class Container(Struct, frozen=True):
    """v1.Container."""

    name: str = ""
    image: str = ""
    restart_policy: str = ""
    resources: Resources = Resources()


class PodSpec(Struct, frozen=True):
    """v1.PodSpec."""

    node_name: str = ""
    priority: int | None = None
    containers: list[Container] = []
    init_containers: list[Container] = []


class Waiting(Struct, frozen=True):
    """v1.ContainerStateWaiting."""

    reason: str = ""
    message: str = ""


class Running(Struct, frozen=True):
    """v1.ContainerStateRunning."""

    started_at: datetime | None = None


class Terminated(Struct, frozen=True):
    """v1.ContainerStateTerminated."""

    exit_code: int = 0
    reason: str = ""
    message: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None


class ContainerState(Struct, frozen=True):
    """v1.ContainerState: one of the three."""

    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(Struct, frozen=True):
    """v1.ContainerStatus."""

    name: str = ""
    restart_count: int = 0
    state: ContainerState = ContainerState()


class PodStatus(Struct, frozen=True):
    """v1.PodStatus."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: list[Condition] = []
    container_statuses: list[ContainerStatus] = []
    init_container_statuses: list[ContainerStatus] = []


class Pod(Struct, frozen=True):
    """v1.Pod."""

    metadata: Meta = Meta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class Taint(Struct, frozen=True):
    """v1.Taint."""

    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(Struct, frozen=True):
    """v1.NodeSpec."""

    unschedulable: bool = False
    taints: list[Taint] = []


class NodeStatus(Struct, frozen=True):
    """v1.NodeStatus."""

    capacity: dict[str, str] = {}
    allocatable: dict[str, str] = {}
    conditions: list[Condition] = []


class Node(Struct, frozen=True):
    """v1.Node."""

    metadata: Meta = Meta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class JobStatus(Struct, frozen=True):
    """batch/v1 JobStatus."""

    conditions: list[Condition] = []
    start_time: datetime | None = None
    completion_time: datetime | None = None


class Job(Struct, frozen=True):
    """batch/v1 Job."""

    metadata: Meta = Meta()
    status: JobStatus = JobStatus()


def decode(data: bytes, into: type[T]) -> T:
    """JSON bytes into a struct; `null` counts as missing. Raises msgspec.ValidationError for what cannot be read."""
    try:
        return msgspec.json.decode(data, type=into, strict=False)
    except msgspec.ValidationError:
        # Some controllers write null where the API knows no null; this slower path reads those too.
        return convert(msgspec.json.decode(data), into)


def convert(value: Any, into: type[T]) -> T:
    """A JSON value already decoded into a struct. Raises msgspec.ValidationError."""
    return msgspec.convert(_without_nulls(value), type=into, strict=False)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    if isinstance(value, list):
        return [_without_nulls(each) for each in value if each is not None]
    return value
