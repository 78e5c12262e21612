"""What the cluster says of a job, as one state with a reason that names what to do about it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobs.state import TERMINAL, TRANSITIONS, ContainerState, JobState, PodState
from jobs.status import Condition, ObservedJob, derive_status

pytestmark = pytest.mark.unit

START = datetime(2026, 1, 1, 8, tzinfo=UTC)
END = START + timedelta(minutes=5)


def pod(phase: str = "Running", *containers: ContainerState, **changes: Any) -> PodState:
    """A pod that does what its phase says."""
    plain = PodState(
        uid="u",
        name="p",
        phase=phase,
        node_name="n1",
        is_ready=phase == "Running",
        is_deleting=False,
        containers=containers,
        started_at=START,
    )
    return replace(plain, **changes)


def waiting(reason: str, message: str = "", name: str = "main", kind: str = "main") -> ContainerState:
    return ContainerState(name, kind, "waiting", reason=reason, message=message)


def ended(exit_code: int, reason: str = "Error", name: str = "main", kind: str = "main") -> ContainerState:
    return ContainerState(name, kind, "terminated", reason=reason, exit_code=exit_code)


SIDECAR = ended(1, name="proxy", kind="sidecar")
OUT_OF_MEMORY = "Out of memory: main used more than its memory limit and was killed."
OVER = "DeadlineExceeded"


def observed(kind: str = "", reason: str = "", message: str = "") -> ObservedJob:
    """A Job object with at most one condition."""
    conditions = (Condition(kind, is_true=True, reason=reason, message=message, at=END),) if kind else ()
    return ObservedJob("j", conditions, started_at=START)


@pytest.mark.parametrize(
    ("job", "pods", "workers", "state", "reason"),
    [
        pytest.param(None, [], 1, JobState.ADMITTED, "", id="no object yet"),
        pytest.param(observed(), [], 1, JobState.STARTING, "CreatingPods", id="no pods yet"),
        pytest.param(observed(), [pod()], 2, JobState.STARTING, "StartingWorkers", id="half there"),
        pytest.param(observed(), [pod(), pod()], 2, JobState.RUNNING, "Running", id="all there"),
        pytest.param(observed(), [pod(), pod("Succeeded")], 2, JobState.RUNNING, "Running", id="one is done"),
        pytest.param(observed(), [pod(is_deleting=True)], 1, JobState.STARTING, "CreatingPods", id="leaving"),
        pytest.param(observed("Suspended"), [], 1, JobState.STARTING, "Suspended", id="suspended by hand"),
        pytest.param(observed("FailureTarget", "Bad"), [pod()], 1, JobState.STOPPING, "Bad", id="failing"),
        pytest.param(observed("Complete"), [], 1, JobState.SUCCEEDED, "Completed", id="complete"),
        pytest.param(observed("Failed", "Backoff"), [], 1, JobState.FAILED, "Backoff", id="failed"),
        pytest.param(observed("Failed", OVER), [pod()], 1, JobState.TIMED_OUT, OVER, id="time over"),
    ],
)  # fmt: skip
def test_state_and_reason(
    job: ObservedJob | None, pods: list[PodState], workers: int, state: JobState, reason: str
) -> None:
    found = derive_status(job, pods, workers=workers)
    assert (found.state, found.reason) == (state, reason)


def test_a_condition_that_is_false_says_nothing() -> None:
    job = ObservedJob("j", (Condition("Failed", is_true=False),))
    assert derive_status(job, [pod()], workers=1).state is JobState.RUNNING


@pytest.mark.parametrize(
    ("stuck", "words"),
    [
        (
            pod("Pending", waiting("ImagePullBackOff", "no such tag")),
            "main: the image cannot be pulled. The node says: no such tag",
        ),
        (
            pod("Pending", waiting("CreateContainerConfigError")),
            "main: the container's configuration is wrong.",
        ),
        (
            pod("Pending", waiting("PodInitializing"), waiting("ErrImagePull", name="fetch", kind="init")),
            "fetch: the image cannot be pulled.",
        ),
        (pod("Pending", unschedulable="0/2 nodes"), "The scheduler finds no node: 0/2 nodes"),
        (
            pod("Failed", disruption="PreemptionByScheduler"),
            "A worker was displaced by pods of a higher priority; it is being restarted, without using up a retry.",
        ),
        (
            pod("Failed", disruption="Unheard"),
            "A worker was Unheard; it is being restarted, without using up a retry.",
        ),
        (pod("Failed", ended(3)), "Failed: main ended with exit code 3."),
        (pod("Pending", waiting("ContainerCreating")), "0 of 1 workers run."),
    ],
)
def test_a_job_that_does_not_start_says_why(stuck: PodState, words: str) -> None:
    assert derive_status(observed(), [stuck], workers=1).message == words


@pytest.mark.parametrize(
    ("failed", "words"),
    [
        (pod("Failed", ended(1)), "Failed: main ended with exit code 1."),
        (pod("Failed", ended(137, "OOMKilled")), OUT_OF_MEMORY),
        (pod("Failed", ended(0), ended(2, name="fetch", kind="init")), "Init failed: fetch (exit 2)"),
        (pod("Failed", ended(0), SIDECAR, reason="Evicted", message="disk"), "Evicted: disk"),
        (pod("Failed"), "A worker failed."),
        (pod("Failed", ended(1), disruption="EvictionByEvictionAPI"), "the words of the Job"),
    ],
)  # fmt: skip
def test_a_failed_job_says_which_container_and_how(failed: PodState, words: str) -> None:
    job = observed("Failed", "BackoffLimitExceeded", "the words of the Job")
    assert derive_status(job, [failed], workers=1).message == words


def test_a_running_job_that_was_restarted_says_after_what() -> None:
    found = derive_status(observed(), [pod("Failed", ended(9)), pod()], workers=1)
    assert (found.state, found.message) == (
        JobState.RUNNING,
        "Restarted after: Failed: main ended with exit code 9.",
    )


@pytest.mark.parametrize(
    ("retries", "reason", "ending"),
    [(0, "Failing", "code 3."), (1, "Retrying", "It is being started again.")],
)
def test_a_retry_is_announced_only_when_there_is_one(retries: int, reason: str, ending: str) -> None:
    found = derive_status(observed(), [pod("Failed", ended(3))], workers=1, retries=retries)
    assert found.reason == reason
    assert found.message.endswith(ending)


def test_rw_058_a_pod_never_seen_running_still_tells_its_times() -> None:
    found = derive_status(observed("Complete"), [pod("Succeeded", finished_at=END)], workers=1)
    assert (found.started_at, found.finished_at) == (START, END)


def test_rw_058_what_has_ended_stays_so_and_everything_else_can_end() -> None:
    assert set(TRANSITIONS) == set(JobState)
    for state, following in TRANSITIONS.items():
        if state in TERMINAL:
            assert not following
        else:
            assert JobState.CANCELLED in following
            assert state not in following
