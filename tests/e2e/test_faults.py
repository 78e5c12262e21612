"""SIGKILL of each process in the middle of 20 submissions: nothing lost, nothing twice, logs complete."""

import secrets
from functools import partial
from typing import Any

import pytest

from deploy import devcluster
from deploy.demo.client import Client, RefusedError, wait_for
from deploy.demo.scenario import demo_job
from deploy.demo.stack import PARTS, Stack

pytestmark = pytest.mark.e2e

JOBS = 20
TIMEOUT_SECONDS = 240


@pytest.mark.parametrize("victim", [*PARTS, "kube-apiserver"])
def test_a_kill_in_the_middle_loses_nothing_and_does_nothing_twice(healthy_stack: Stack, victim: str) -> None:
    stack, bob, mark = healthy_stack, healthy_stack.client("bob"), secrets.token_hex(4)
    jobs = []
    for number in range(JOBS):
        if number == JOBS // 2:
            kill(stack, victim)
        jobs.append(submit(stack, bob, f"{mark}-{number}"))
    assert len(set(jobs)) == JOBS
    start_again(stack, victim)
    for job_id in jobs:
        wait_for(f"job {job_id} to succeed", partial(succeeded, stack, bob, job_id), seconds=TIMEOUT_SECONDS)
    for job_id in jobs:
        assert_done_once(bob, job_id)


def submit(stack: Stack, client: Client, key: str) -> int:
    """Submit as a careful script does: again with the same key when there was no answer."""

    def sent() -> Any:
        stack.tend()  # as an operator's service manager would
        return client.post("/api/v1/jobs", demo_job("b", key, pool="l4", run_for="2s"), key=key)

    return int(wait_for("an answer", sent)["id"])


def kill(stack: Stack, victim: str) -> None:
    """As a crash: no chance to clean up."""
    if victim == "kube-apiserver":
        devcluster.kill_component(stack.wait_cluster(), victim)
    else:
        stack.kill_part(victim)


def start_again(stack: Stack, victim: str) -> None:
    """What a service manager does."""
    if victim == "kube-apiserver":
        devcluster.start_component(stack.wait_cluster(), victim)
    else:
        stack.start_all()


def succeeded(stack: Stack, client: Client, job_id: int) -> bool:
    """Whether the job has ended well; a failure ends the wait at once."""
    stack.tend()
    job = client.job(job_id)
    assert job["state"] not in ("Failed", "Cancelled", "TimedOut"), job
    return bool(job["state"] == "Succeeded")


def assert_done_once(client: Client, job_id: int) -> None:
    """One pod, one log, from its first line to its last, without a gap and without a line twice."""
    pods = client.json(f"/api/v1/jobs/{job_id}/pods")
    assert [pod["phase"] for pod in pods] == ["Succeeded"]
    admitted = [
        event for event in client.json(f"/api/v1/jobs/{job_id}/events") if event["state"] == "Admitted"
    ]
    assert len(admitted) == 1

    def complete() -> dict[str, Any] | None:
        streams = client.streams(job_id)
        assert len(streams) == 1
        return streams[0] if streams[0]["complete"] else None

    stream = wait_for(f"the log of job {job_id}", complete, seconds=TIMEOUT_SECONDS)
    assert stream["gaps"] == 0
    lines = client.log_lines(job_id, stream["id"])
    assert lines
    with pytest.raises(RefusedError):
        client.json(f"/jobs/{job_id}/logs/{stream['id'] + 10_000}/lines")
