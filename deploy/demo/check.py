"""The demo without a person: fresh data, every step with its time, ends at the first that fails."""

import contextlib
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from deploy import devcluster
from deploy.demo import scenario
from deploy.demo.client import Client, wait_for
from deploy.demo.stack import Stack, reset

OPEN_STATES = ("Queued", "Admitted", "Starting", "Running", "Stopping")


class Check:
    """One run in a directory of its own."""

    def __init__(self, directory: Path, *, real_node: bool) -> None:
        reset(directory)
        self._begun = time.monotonic()
        self._real_node = real_node
        self.stack = Stack(
            directory, say=lambda text: print(f"           {text}", flush=True), real_node=real_node
        )

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Print a step and its time."""
        started = time.monotonic()
        try:
            yield
        except Exception:
            print(f"FAILED     {name}", flush=True)
            raise
        now = time.monotonic()
        print(f"ok {now - started:6.1f} s {name}", flush=True)

    def run(self) -> None:
        """Every step. Raises the first failure."""
        with self.step("the portal answers, while the cluster comes up"):
            self.stack.start()
            anonymous = Client(self.stack.url)
            wait_for("the portal", lambda: anonymous.get("/healthz"), seconds=90)
        with self.step("alice signs in through the provider"):
            alice = Client(self.stack.url, ca_file=str(self.stack.idp.ca_file))
            alice.sign_in("alice", "alice")
            assert "alice" in alice.get("/").text
        with self.step("submits by form; the job is kept, whatever the cluster does"):
            by_form = self._submit_by_form(alice)
        with self.step("the cluster is ready"):
            self.stack.wait_cluster()
        with self.step("submits by REST; the same key makes one job"):
            robot = self.stack.client("alice")
            body = scenario.demo_job("a", "by REST", run_for="20s")
            by_rest = robot.post("/api/v1/jobs", body, key="demo-check")["id"]
            assert robot.post("/api/v1/jobs", body, key="demo-check")["id"] == by_rest
        with self.step("both run"):
            for job_id in (by_form, by_rest):
                wait_for(f"job {job_id} to run", lambda job_id=job_id: self._has_run(alice, job_id))  # type: ignore[misc]
        with self.step("the log is read live"):
            self._read_live(alice, by_rest)
        with self.step("both end, the log stays complete"):
            for job_id in (by_form, by_rest):
                self._wait_complete(alice, job_id)
        with self.step("team A submits 100 jobs; B and C submit one each, which start although A came first"):
            outcome = self._scenario()
        with self.step("cancelling team A's jobs"):
            for job_id in outcome.jobs_a:
                robot.post(f"/api/v1/jobs/{job_id}/cancel")
            wait_for("team A's jobs to end", lambda: self._all_ended(robot, outcome.jobs_a))
        with self.step("the worker is killed in the middle of 20 submissions; nothing lost, nothing twice"):
            self._kill_worker()
        if self._real_node:
            with self.step("a real container's lines"):
                self._real_container(robot, alice)
        print(f"demo-check passed in {time.monotonic() - self._begun:.0f} s")

    def _submit_by_form(self, client: Client) -> int:
        values = {
            "team": "a",
            "name": "by form",
            "pool": "a100",
            "tier": "low-priority-dev",
            "gpus": "1",
            "image": "registry.example/train:1",
            "command_mode": "argv",
            "command": "python train.py",
            "workers": "1",
            "cpu": "1",
            "memory": "1Gi",
            "retries": "0",
            "grace_seconds": "30",
            "annotations": "simulate/run-for=20s",
        }
        landed = client.submit_form("/jobs/new/", values)
        number = landed.url.rstrip("/").rsplit("/", 1)[1]
        assert number.isdecimal(), f"the form led to {landed.url}"
        return int(number)

    def _has_run(self, client: Client, job_id: int) -> bool:
        return client.job(job_id)["state"] in ("Running", "Succeeded")

    def _read_live(self, client: Client, job_id: int) -> None:
        stream = wait_for("a log stream", lambda: client.streams(job_id))[0]
        for line in client.follow(job_id, stream["id"]):
            if line.startswith("data:") and "lines" in line:
                return
        raise AssertionError("the live log ended without a line")

    def _wait_complete(self, client: Client, job_id: int) -> None:
        wait_for(f"job {job_id} to succeed", lambda: client.job(job_id)["state"] == "Succeeded")
        stream = wait_for(
            "the complete log", lambda: next((s for s in client.streams(job_id) if s["complete"]), None)
        )
        assert client.log_lines(job_id, stream["id"]), "the log is empty"
        assert stream["gaps"] == 0

    def _scenario(self) -> scenario.Outcome:
        clients = [self.stack.client(name) for name in ("alice", "bob", "charlie")]
        outcome = scenario.play(*clients, say=lambda text: print(f"           {text}", flush=True))
        assert outcome.waiting_a > 0, "team A's jobs should still wait"
        return outcome

    def _all_ended(self, client: Client, job_ids: tuple[int, ...]) -> bool:
        return all(client.job(job_id)["state"] not in OPEN_STATES for job_id in job_ids)

    def _kill_worker(self) -> None:
        robot = self.stack.client("bob")
        jobs = []
        for number in range(20):
            body = scenario.demo_job("b", f"survivor {number}", run_for="3s")
            jobs.append(robot.post("/api/v1/jobs", body, key=f"survivor-{number}")["id"])
            if number == 10:
                self.stack.kill_part("worker")
        assert len(set(jobs)) == 20

        def all_succeeded() -> bool:
            self.stack.tend()
            return all(robot.job(job_id)["state"] == "Succeeded" for job_id in jobs)

        wait_for("all 20 jobs to succeed", all_succeeded, seconds=240)
        for job_id in jobs:
            pods = robot.json(f"/api/v1/jobs/{job_id}/pods")
            assert len(pods) == 1, f"job {job_id} has {len(pods)} pods"

    def _real_container(self, robot: Client, alice: Client) -> None:
        body = {
            "team": "a",
            "name": "real container",
            "pool": "real",
            "image": "berth/train:demo",
            "command": ["sh", "-c", "for i in 1 2 3; do echo step $i; sleep 1; done"],
            "gpus": 0,
            "cpu": "100m",
            "memory": "32Mi",
        }
        job_id = robot.post("/api/v1/jobs", body)["id"]
        self._wait_complete(alice, job_id)
        stream = alice.streams(job_id)[0]
        assert alice.log_lines(job_id, stream["id"]) == ["step 1", "step 2", "step 3"]


def run(directory: Path, *, real_node: bool) -> None:
    """Run every step, and leave nothing behind when they pass; data and logs stay when one fails."""
    if real_node and (reason := devcluster.real_node_obstacle()):
        print(f"not run    the steps with a real node: {reason}", flush=True)
        real_node = False
    check = Check(directory, real_node=real_node)
    stop: Callable[[], None] = check.stack.stop
    try:
        check.run()
    finally:
        stop()
    reset(directory)
    shutil.rmtree(directory, ignore_errors=True)
