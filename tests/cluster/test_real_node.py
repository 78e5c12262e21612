"""Real containers on this machine, through the whole product. Needs root: run as another user they say so."""

import os
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy import devcluster
from deploy.demo.client import Client, wait_for
from deploy.demo.stack import Stack, reset

pytestmark = [pytest.mark.cluster, pytest.mark.realnode]


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    """The whole product with a cluster that has the real node."""
    if reason := devcluster.real_node_obstacle():
        pytest.skip(f"not run: {reason}")
    directory = Path("/tmp", f"berth-real-{os.getpid()}")
    running = Stack(directory, real_node=True)
    try:
        running.start()
        running.wait_cluster()
        wait_for("the portal", lambda: running.client().get("/healthz"))
        yield running
    finally:
        running.stop()
    reset(directory)


def submit(client: Client, script: str, **changes: Any) -> int:
    """A job of team a with this shell script on the real node; it stops two seconds after it was told to."""
    body = {
        "team": "a",
        "name": "real",
        "pool": "real",
        "image": "berth/train:demo",
        "script": script,
        "cpu": "100m",
        "memory": "32Mi",
        "grace_seconds": 2,
    }
    return int(client.post("/api/v1/jobs", body | changes)["id"])


def wait_state(client: Client, job_id: int, state: str) -> None:
    """Wait until the job is in `state`; any other end fails at once."""

    def is_there() -> bool:
        job = client.job(job_id)
        assert job["state"] in ("Queued", "Admitted", "Starting", "Running", "Stopping", state), job
        return bool(job["state"] == state)

    wait_for(f"job {job_id} to be {state}", is_there, seconds=60)


def running_here(mark: str) -> list[int]:
    """Processes of this machine with `mark` in their environment, that is, in the container of one job."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and f"MARK={mark}\0".encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def test_lines_of_a_real_container_are_read_live_and_kept(stack: Stack) -> None:
    alice = stack.client("alice")
    script = (
        "echo it is $(cat /proc/1/comm); for i in 1 2 3 4 5; do echo step $i; sleep 1; done; echo bad >&2"
    )
    job_id = submit(alice, script, gpus=1)
    stream = wait_for("a log stream", lambda: alice.streams(job_id))[0]
    for line in alice.follow(job_id, stream["id"]):
        if line.startswith("data:") and "step 1" in line:
            break
    assert alice.job(job_id)["state"] in ("Starting", "Running")
    wait_state(alice, job_id, "Succeeded")
    wait_for("the complete log", lambda: all(each["complete"] for each in alice.streams(job_id)))
    lines = alice.log_lines(job_id, stream["id"])
    assert lines == ["it is sh", *(f"step {number}" for number in range(1, 6)), "bad"]
    (pod,) = alice.json(f"/api/v1/jobs/{job_id}/pods")
    assert pod["node_name"] == "real-0"


def test_an_exit_code_of_3_is_shown(stack: Stack) -> None:
    alice = stack.client("alice")
    job_id = submit(alice, "echo about to fail; exit 3")
    wait_state(alice, job_id, "Failed")
    (pod,) = alice.json(f"/api/v1/jobs/{job_id}/pods")
    assert (pod["phase"], pod["containers"][0]["exit_code"]) == ("Failed", 3)
    assert "3" in alice.job(job_id)["message"]


def test_cancelling_ends_the_container(stack: Stack) -> None:
    alice, mark = stack.client("alice"), secrets.token_hex(8)
    job_id = submit(alice, "while true; do sleep 1; done", env={"MARK": mark})
    wait_state(alice, job_id, "Running")
    assert running_here(mark)
    alice.post(f"/api/v1/jobs/{job_id}/cancel")
    wait_state(alice, job_id, "Cancelled")
    wait_for("its processes to end", lambda: not running_here(mark), seconds=20)


def test_the_wall_time_ends_the_container(stack: Stack) -> None:
    alice, mark = stack.client("alice"), secrets.token_hex(8)
    started = time.monotonic()
    job_id = submit(alice, "while true; do sleep 1; done", env={"MARK": mark}, wall_time="5s")
    wait_for("its processes", lambda: running_here(mark), seconds=30)
    wait_state(alice, job_id, "TimedOut")
    wait_for("its processes to end", lambda: not running_here(mark), seconds=20)
    assert time.monotonic() - started >= 5
