"""The scene the product was made for: team A submits 100 jobs, then B and C one each, which start at once."""

import secrets
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from deploy.demo.client import Client, wait_for

JOBS_OF_A = 100


@dataclass(frozen=True)
class Outcome:
    """How it went: jobs' ids, seconds from submission to running of B's and C's job, and A's states at that time."""

    jobs_a: tuple[int, ...]
    jobs_bc: tuple[int, ...]
    seconds_bc: tuple[float, ...]
    waiting_a: int
    running_a: int


def demo_job(team: str, name: str, **changes: Any) -> dict[str, Any]:
    """A job for one GPU that trains for as long as `run_for` says (simulated nodes), as `POST /jobs` takes it."""
    body: dict[str, Any] = {
        "team": team,
        "name": name,
        "pool": "a100",
        "image": "registry.example/train:1",
        "command": ["python", "train.py"],
        "gpus": 1,
        "cpu": "1",
        "memory": "1Gi",
        "annotations": {"simulate/run-for": changes.pop("run_for", "45s")},
    }
    return body | changes


def play(
    a: Client, b: Client, c: Client, *, say: Callable[[str], None] = print, run_for: str = "45s"
) -> Outcome:
    """Submit and wait until B's and C's jobs run. Raises TimeoutError when they do not."""
    say(f"team A submits {JOBS_OF_A} jobs for one GPU each")
    mark = secrets.token_hex(3)
    with ThreadPoolExecutor(4) as pool:
        bodies = [demo_job("a", f"sweep {n}", run_for=run_for) for n in range(1, JOBS_OF_A + 1)]
        sent = pool.map(
            lambda pair: a.post("/api/v1/jobs", pair[1], key=f"{mark}-{pair[0]}"), enumerate(bodies)
        )
        jobs_a = tuple(job["id"] for job in sent)
    wait_for("a job of team A to run", lambda: any_running(a, jobs_a[:20]))
    seconds, jobs = [], []
    for client, team in ((b, "b"), (c, "c")):
        started = time.monotonic()
        job_id = client.post("/api/v1/jobs", demo_job(team, "one job", run_for=run_for))["id"]
        wait_for(
            f"the job of team {team} to run",
            lambda client=client, job_id=job_id: client.job(job_id)["state"] == "Running",  # type: ignore[misc]
        )
        seconds.append(time.monotonic() - started)
        jobs.append(job_id)
        say(f"team {team.upper()} submits one job: it runs after {seconds[-1]:.1f} s")
    states = [a.job(job_id)["state"] for job_id in jobs_a]
    running = sum(state in ("Admitted", "Starting", "Running") for state in states)
    outcome = Outcome(jobs_a, tuple(jobs), tuple(seconds), states.count("Queued"), running)
    say(f"of team A's jobs {outcome.running_a} run and {outcome.waiting_a} wait")
    return outcome


def any_running(client: Client, job_ids: tuple[int, ...]) -> bool:
    """Whether one of these jobs runs or has run."""
    return any(client.job(job_id)["state"] in ("Running", "Succeeded") for job_id in job_ids)
