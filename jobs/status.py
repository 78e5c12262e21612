"""What the cluster says of a job, read as one state with a reason in plain words (pure).

The state comes from the Job's terminal conditions and from container states, never from counters (RW-034); very short
pods that were never seen running still tell their times (RW-058).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from jobs.state import ContainerState, JobState, PodState


@dataclass(frozen=True)
class Condition:
    """One condition of a batch/v1 Job."""

    type: str
    is_true: bool
    reason: str = ""
    message: str = ""
    at: datetime | None = None


@dataclass(frozen=True)
class ObservedJob:
    """The batch/v1 Job as observed."""

    uid: str
    conditions: tuple[Condition, ...] = ()
    started_at: datetime | None = None
    completed_at: datetime | None = None

    def condition(self, kind: str) -> Condition | None:
        """The condition of that type when it is true; a false one says nothing."""
        return next((c for c in self.conditions if c.type == kind and c.is_true), None)


@dataclass(frozen=True)
class Status:
    """Where the job stands. `message` is for people."""

    state: JobState
    reason: str = ""
    message: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None


FAILING = "Failing"  # a worker failed for the last time; the cluster has not said yet that the job did
# Waiting reasons of the kubelet that do not pass on their own, in words.
_STUCK = {
    "ErrImagePull": "the image cannot be pulled",
    "ImagePullBackOff": "the image cannot be pulled",
    "InvalidImageName": "the image name is invalid",
    "ErrImageNeverPull": "the image is not on the node and may not be pulled",
    "CreateContainerConfigError": "the container's configuration is wrong",
    "CreateContainerError": "the container cannot be created",
    "RunContainerError": "the container cannot be started",
}
_DISRUPTIONS = {
    "PreemptionByScheduler": "displaced by pods of a higher priority",
    "PreemptionByKubeScheduler": "displaced by pods of a higher priority",
    "EvictionByEvictionAPI": "evicted from its node",
    "DeletionByTaintManager": "its node was tainted",
    "DeletionByPodGC": "its node is gone",
    "TerminationByKubelet": "stopped by its node",
}


def derive_status(
    observed: ObservedJob | None, pods: Sequence[PodState], *, workers: int, retries: int = 0
) -> Status:
    """The job's state from what is observed; `observed` None means that its Job object is not there (yet)."""
    started = _earliest(pod.started_at for pod in pods)
    if observed is None:
        return Status(JobState.ADMITTED, started_at=started)
    if complete := observed.condition("Complete"):
        finished = observed.completed_at or complete.at or _latest(p.finished_at for p in pods)
        return Status(JobState.SUCCEEDED, "Completed", "", started or observed.started_at, finished)
    if failed := observed.condition("Failed"):
        return _failed(failed, pods, started or observed.started_at)
    if failing := observed.condition("FailureTarget"):
        text = "Failing: some workers are still being stopped and hold their GPUs."
        return Status(JobState.STOPPING, failing.reason or "Failing", text, started)
    if observed.condition("Suspended"):
        return Status(JobState.STARTING, "Suspended", "The job is suspended in the cluster.", started)
    running = [pod for pod in pods if pod.phase in ("Running", "Succeeded") and not pod.is_deleting]
    if len(running) >= workers:
        return Status(JobState.RUNNING, "Running", _restart_note(pods), started or observed.started_at)
    reason, message = _why_not_running(pods, workers, retries)
    state = JobState.STOPPING if reason == FAILING else JobState.STARTING
    return Status(state, reason, message, started)


def _failed(condition: Condition, pods: Sequence[PodState], started: datetime | None) -> Status:
    if condition.reason == "DeadlineExceeded":
        text = "Stopped because its wall time was over."
        return Status(JobState.TIMED_OUT, "DeadlineExceeded", text, started, condition.at)
    culprit = next((pod for pod in reversed(pods) if pod.phase == "Failed" and not pod.disruption), None)
    text = explain_failure(culprit) if culprit else (condition.message or "The job failed.")
    return Status(JobState.FAILED, condition.reason or "Failed", text, started, condition.at)


def explain_failure(pod: PodState) -> str:
    """Why a failed pod failed, in one sentence that names the container."""
    for container in _init_first(pod.containers):
        if container.state != "terminated" or not container.exit_code:
            continue
        if container.kind == "init":
            return f"Init failed: {container.name} (exit {container.exit_code})"
        if container.reason == "OOMKilled":
            return f"Out of memory: {container.name} used more than its memory limit and was killed."
        return f"Failed: {container.name} ended with exit code {container.exit_code}."
    if pod.reason:
        return f"{pod.reason}: {pod.message}" if pod.message else pod.reason
    return "A worker failed."


def _why_not_running(pods: Sequence[PodState], workers: int, retries: int) -> tuple[str, str]:
    present = [
        pod for pod in pods if pod.phase in ("Pending", "Running", "Succeeded") and not pod.is_deleting
    ]
    for pod in present:
        for container in _init_first(pod.containers):
            if container.state == "waiting" and container.reason in _STUCK:
                detail = f" The node says: {container.message}" if container.message else ""
                return container.reason, f"{container.name}: {_STUCK[container.reason]}.{detail}"
    for pod in present:
        if pod.unschedulable:
            return "Unschedulable", f"The scheduler finds no node: {pod.unschedulable}"
    if displaced := [pod for pod in pods if pod.disruption]:
        what = _DISRUPTIONS.get(displaced[-1].disruption, displaced[-1].disruption)
        return "Disrupted", f"A worker was {what}; it is being restarted, without using up a retry."
    if failures := [pod for pod in pods if pod.phase == "Failed"]:
        if len(failures) > retries:
            return FAILING, explain_failure(failures[-1])
        return "Retrying", f"{explain_failure(failures[-1])} It is being started again."
    if not present:
        return "CreatingPods", "Waiting for the cluster to create the workers."
    ready = sum(pod.phase in ("Running", "Succeeded") for pod in present)
    return "StartingWorkers", f"{ready} of {workers} workers run."


def _restart_note(pods: Sequence[PodState]) -> str:
    failures = [pod for pod in pods if pod.phase == "Failed" and not pod.disruption]
    return f"Restarted after: {explain_failure(failures[-1])}" if failures else ""


def _init_first(containers: Iterable[ContainerState]) -> list[ContainerState]:
    return sorted((c for c in containers if c.kind != "sidecar"), key=lambda c: c.kind != "init")


def _earliest(times: Iterable[datetime | None]) -> datetime | None:
    return min((t for t in times if t is not None), default=None)


def _latest(times: Iterable[datetime | None]) -> datetime | None:
    return max((t for t in times if t is not None), default=None)
