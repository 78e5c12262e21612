"""RW-003: web, workers and log writer on one SQLite file: nothing is refused, no line and no result is lost."""

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle

import pytest
import requests

from deploy.demo.client import wait_for
from deploy.demo.scenario import demo_job
from deploy.demo.stack import PARTS, Stack

pytestmark = pytest.mark.e2e

SECONDS = 120
WRITERS = 4
LINES_PER_SECOND = 50  # each
REQUESTS_PER_SECOND = 20
LOCKED = ("database is locked", "OperationalError")


def test_sqlite_carries_logs_workers_and_readers_at_once(healthy_stack: Stack) -> None:
    stack, robot = healthy_stack, healthy_stack.client("bob")
    before = {part: stack.log_file(part).stat().st_size for part in PARTS}
    annotations = {
        "simulate/run-for": f"{SECONDS}s",
        "simulate/log-lines-per-second": str(LINES_PER_SECOND),
    }
    writers = [
        robot.post("/api/v1/jobs", demo_job("b", f"writer {n}", pool="a100", annotations=annotations))["id"]
        for n in range(WRITERS)
    ]
    for job_id in writers:
        wait_for(f"job {job_id} to run", lambda job_id=job_id: robot.job(job_id)["state"] == "Running")  # type: ignore[misc]
    answers = read_and_submit(stack, writers[0])
    assert {code for code in answers if code >= 400} == set(), answers
    assert sum(answers.values()) >= SECONDS * REQUESTS_PER_SECOND / 4, "too few requests for a load"
    for job_id in writers:
        assert_log_as_in_the_cluster(stack, job_id)
    for part in PARTS:
        with stack.log_file(part).open("rb") as log:
            log.seek(before[part])
            said = log.read().decode()
        assert not [line for line in said.splitlines() if any(word in line for word in LOCKED)], part


def read_and_submit(stack: Stack, job_id: int) -> Counter[int]:
    """Send requests at a steady rate from several clients for the span; how many had which status."""
    token, answers, over = stack.idp.mint("bob"), Counter[int](), time.monotonic() + SECONDS
    turn, lock = (
        cycle(["/", "/jobs/", f"/jobs/{job_id}/", "/api/v1/jobs", "/cluster/", "submit"]),
        threading.Lock(),
    )

    def visitor(number: int) -> None:
        with requests.Session() as http:
            http.trust_env = False
            http.headers["Authorization"] = f"Bearer {token}"
            while time.monotonic() < over:
                begun = time.monotonic()
                with lock:
                    path = next(turn)
                if path == "submit":
                    body = demo_job(
                        "b", f"small {number}", pool="cpu", gpus=0, run_for="1s", cpu="100m", memory="64Mi"
                    )
                    answer = http.post(f"{stack.url}/api/v1/jobs", json=body, timeout=60)
                else:
                    answer = http.get(stack.url + path, timeout=60, allow_redirects=False)
                with lock:
                    answers[answer.status_code] += 1
                time.sleep(max(0.0, 8 / REQUESTS_PER_SECOND - (time.monotonic() - begun)))  # the rate itself

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(visitor, range(8)))
    return answers


def assert_log_as_in_the_cluster(stack: Stack, job_id: int) -> None:
    """The stored log is, byte for byte, what kubectl reads from the node."""
    robot = stack.client("bob")
    stream = wait_for(
        "the complete log",
        lambda: next((s for s in robot.streams(job_id) if s["complete"]), None),
        seconds=240,
    )
    assert stream["gaps"] == 0
    stored = robot.get(f"/jobs/{job_id}/logs/{stream['id']}/raw").content
    pod = robot.json(f"/api/v1/jobs/{job_id}/pods")[0]["name"]
    witness = stack.wait_cluster().kubectl("logs", pod, "--namespace=team-b").stdout.encode()
    assert stored == witness
    assert stored.count(b"\n") >= SECONDS * LINES_PER_SECOND / 2
