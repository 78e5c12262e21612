"""A line on the node → the browser, beside `kubectl logs -f` of the same pod at the same time.

Every line carries the node's time in nanoseconds, and the node writes it within milliseconds of that time, so lag is
arrival less the line's own time. Only lines that both readers got while both were reading are counted.
"""

import json
import re
import subprocess
import threading
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

from deploy.demo.client import Client, wait_for
from deploy.demo.stack import Stack
from tests.bench.cluster import Kubectl, kubectl_with_token, wait_quiet
from tests.bench.rows import Row, median, percentile

LINES_PER_SECOND = 10
TEAM, PERSON, NAMESPACE, CONTAINER = "a", "alice", "team-a", "main"
LIMIT_MS, ALLOWED_MS = 1000.0, 500.0
PATIENCE_SECONDS = 60.0
STAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.(\d+)Z")
Arrivals = dict[str, float]  # a line's stamp → when it arrived, in seconds since the epoch


def rows(stack: Stack, *, lines: int, say: Callable[[str], None]) -> list[Row]:
    """Median and 95th percentile of the lag of both, in milliseconds."""
    cluster = stack.wait_cluster()
    wait_quiet(cluster)
    client = stack.client(PERSON)
    seconds = lines / LINES_PER_SECOND
    job_id, pod = _start_job(client, run_for=seconds + 2 * PATIENCE_SECONDS)
    stream = wait_for("lines", lambda: next((s for s in client.streams(job_id) if s["lines"] > 20), None))
    kubectl = kubectl_with_token(cluster, stack.idp.mint(PERSON))
    ours, theirs = _read_both(stack.client(PERSON), kubectl, job_id, stream["id"], pod, lines)
    client.post(f"/api/v1/jobs/{job_id}/cancel")
    say(f"logs: {median(ours):.0f} ms beside {median(theirs):.0f} ms, {len(ours)} lines")
    return _rows(ours, theirs)


def _start_job(client: Client, *, run_for: float) -> tuple[int, str]:
    body = {
        "team": TEAM,
        "name": "bench of logs",
        "pool": "cpu",
        "image": "registry.example/train:1",
        "command": ["python", "train.py"],
        "annotations": {
            "simulate/run-for": f"{run_for:.0f}s",
            "simulate/log-lines-per-second": str(LINES_PER_SECOND),
        },
    }
    job_id = client.post("/api/v1/jobs", body)["id"]
    wait_for("the job to run", lambda: client.job(job_id)["state"] == "Running")
    pods: list[dict[str, Any]] = wait_for("its pod", lambda: client.json(f"/api/v1/jobs/{job_id}/pods"))
    return job_id, str(pods[0]["name"])


def _read_both(
    client: Client, kubectl: Kubectl, job_id: int, stream_id: int, pod: str, lines: int
) -> tuple[list[float], list[float]]:
    """Lags in milliseconds of the same lines. Raises TimeoutError when too few come."""
    browser: Arrivals = {}
    terminal: Arrivals = {}
    process = kubectl.start(
        "logs",
        "--follow",
        "--timestamps",
        "--tail=1",
        f"--namespace={NAMESPACE}",
        f"--container={CONTAINER}",
        pod,
    )
    over = threading.Event()
    readers = [
        threading.Thread(target=_read_browser, args=(client, job_id, stream_id, browser, over), daemon=True),
        threading.Thread(target=_read_terminal, args=(process, terminal), daemon=True),
    ]
    try:
        for reader in readers:
            reader.start()
        wait_for("both readers", lambda: browser and terminal, seconds=PATIENCE_SECONDS)
        begun = time.time() + 1.0  # what was there before is no news
        enough = lines / LINES_PER_SECOND + PATIENCE_SECONDS
        wait_for(f"{lines} lines", lambda: len(_common(browser, terminal, begun)) >= lines, seconds=enough)
    finally:
        over.set()
        process.terminate()
        process.wait(10)
        for reader in readers:
            reader.join(10)  # the next line ends it; the job still writes
    stamps = _common(browser, terminal, begun)
    return [_lag(stamp, browser) for stamp in stamps], [_lag(stamp, terminal) for stamp in stamps]


def _read_browser(
    client: Client, job_id: int, stream_id: int, arrivals: Arrivals, over: threading.Event
) -> None:
    for line in client.follow(job_id, stream_id):
        now = time.time()
        if over.is_set():
            return
        if line.startswith("data: {"):
            for entry in json.loads(line.removeprefix("data: "))["lines"]:
                arrivals.setdefault(str(entry["t"]), now)


def _read_terminal(process: "subprocess.Popen[bytes]", arrivals: Arrivals) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        arrivals.setdefault(line.split(b" ", 1)[0].decode(errors="replace"), time.time())


def _common(browser: Arrivals, terminal: Arrivals, begun: float) -> list[str]:
    """Stamps of the lines that both got, written since `begun`, in their order."""
    # Copies: both are being written to.
    return [stamp for stamp in sorted({*list(browser)} & {*list(terminal)}) if _moment(stamp) >= begun]


def _lag(stamp: str, arrivals: Arrivals) -> float:
    return 1000 * (arrivals[stamp] - _moment(stamp))


def _moment(stamp: str) -> float:
    """A line's own time in seconds since the epoch; 0 for what is no stamp."""
    found = STAMP.fullmatch(stamp)
    if found is None:
        return 0.0
    return datetime.fromisoformat(f"{found[1]}+00:00").timestamp() + float(f"0.{found[2]}")


def _rows(ours: list[float], theirs: list[float]) -> list[Row]:
    high = percentile(ours, 95), percentile(theirs, 95)
    limit = f"<= {LIMIT_MS:.0f} ms, <= +{ALLOWED_MS:.0f} ms"
    return [
        Row(
            name="log line → browser, p50",
            unit="ms",
            beside="kubectl logs -f",
            ours=median(ours),
            theirs=median(theirs),
            aim=f"<= +{ALLOWED_MS:.0f} ms",
            is_met=median(ours) <= median(theirs) + ALLOWED_MS,
            samples={"berth": ours, "kubectl": theirs},
        ),
        Row(
            name="log line → browser, p95",
            unit="ms",
            beside="kubectl logs -f",
            ours=high[0],
            theirs=high[1],
            aim=limit,
            is_met=high[0] <= LIMIT_MS and high[0] <= high[1] + ALLOWED_MS,
        ),
    ]
