"""Writes the logs of the pods on fake nodes: `python -m deploy.devcluster.podlogs SERVER PKI ROOT`.

A process of the cluster, started by cluster.py. It watches pods and appends lines in CRI format to
<root>/<namespace>/<pod>/<container>/0.log as they become due; when a container has ended it makes the file `exited`
beside it. nodelogs serves these files to the API server. All times of lines follow from the container's start, so
after a restart of this process a log goes on where it stopped.
"""

import contextlib
import datetime as dt
import heapq
import math
import queue
import re
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploy.devcluster import nodes, trainlog
from deploy.devcluster.api import Api, ApiError

KEEP_DELETED_SECONDS = 10.0
RANK_ANNOTATION = "batch.kubernetes.io/job-completion-index"
Json = dict[str, Any]
DELETED, LISTED = "DELETED", "LISTED"


class PodWatch(threading.Thread):
    """Puts (event type, pod) for every pod into `events`; lists again after a lost watch, and reports what vanished."""

    def __init__(self, api: Api) -> None:
        super().__init__(daemon=True)
        self._api = api
        self._known: dict[str, Json] = {}
        self.events: queue.Queue[tuple[str, Json]] = queue.Queue()

    def run(self) -> None:
        pause = 0.2
        while True:
            try:
                version = self._list()
                pause = 0.2
                self._follow(version)
            except ApiError as error:
                print(f"watch: {error}", flush=True)
                time.sleep(pause)
                pause = min(pause * 2, 3.0)

    def _list(self) -> str:
        answer = self._api.get("/api/v1/pods")
        present = {pod["metadata"]["uid"]: pod for pod in answer["items"]}
        for uid in self._known.keys() - present.keys():
            self._report(DELETED, self._known[uid])
        for pod in present.values():
            self._report("MODIFIED", pod)
        self.events.put((LISTED, {"uids": set(present)}))
        return str(answer["metadata"]["resourceVersion"])

    def _follow(self, version: str) -> None:
        while True:
            for event in self._api.watch("/api/v1/pods", version):
                if event["type"] == "ERROR":
                    raise ApiError(event["object"].get("code", 0), event["object"].get("message", ""))
                version = event["object"]["metadata"]["resourceVersion"]
                if event["type"] != "BOOKMARK":
                    self._report(event["type"], event["object"])

    def _report(self, kind: str, pod: Json) -> None:
        if kind == DELETED:
            self._known.pop(pod["metadata"]["uid"], None)
        else:
            self._known[pod["metadata"]["uid"]] = {
                "metadata": pod["metadata"],
                "spec": pod["spec"],
                "status": {},
            }
        self.events.put((kind, pod))


@dataclass
class ContainerLog:
    """The log file of one container. `started` is in seconds since the epoch."""

    directory: Path
    started: float
    lines: Iterator[trainlog.Line]
    pending: trainlog.Line | None = None
    is_open: bool = True

    def due(self) -> float:
        """When the next line is to be written, in seconds since the epoch; infinite when there is none."""
        if self.pending is None:
            self.pending = next(self.lines, None)
        return self.started + self.pending.after if self.pending else math.inf

    def write_until(self, moment: float) -> None:
        """Append all lines that are due by `moment`."""
        written = []
        while (due := self.due()) <= moment and self.pending:
            written.append(cri_line(due, self.pending.stream, self.pending.text))
            self.pending = None
        if written:
            self.append("".join(written))

    def append(self, text: str) -> None:
        """Append raw text to the file."""
        with (self.directory / "0.log").open("a", encoding="utf-8", newline="") as handle:
            handle.write(text)

    def close(self) -> None:
        """Say that the container is over: whoever follows the log sees its end."""
        self.is_open = False
        (self.directory / "exited").touch()


class PodLogs:
    """All logs under `root`; `pods` are the open ones by pod uid."""

    def __init__(self, api: Api, root: Path) -> None:
        self._api = api
        self._root = root
        self._fake: dict[str, bool] = {}
        self._pods: dict[str, list[ContainerLog]] = {}
        self._terminating: set[str] = set()
        self._due: list[tuple[float, int, ContainerLog]] = []
        self._remove: list[tuple[float, Path, str]] = []
        self._count = 0

    def handle(self, kind: str, pod: Json) -> None:
        """Take in one event of the watch."""
        if kind == LISTED:
            self._discard_all_but(pod["uids"])
            return
        uid, phase = pod["metadata"]["uid"], pod.get("status", {}).get("phase")
        if not self._is_on_fake_node(pod):
            return
        if kind == DELETED:
            self._close(uid, time.time())
            self._terminating.discard(uid)
            self._remove.append((time.time() + KEEP_DELETED_SECONDS, self._directory(pod), uid))
            return
        if phase in ("Running", "Succeeded", "Failed") and uid not in self._pods:
            self._open(pod)
        if phase in ("Succeeded", "Failed"):
            self._close(uid, _finished_at(pod) or time.time())
        elif phase == "Running" and "deletionTimestamp" in pod["metadata"] and uid not in self._terminating:
            self._terminating.add(uid)
            for log in self._pods[uid]:
                log.append(cri_line(time.time(), "stderr", trainlog.termination_text()))

    def tick(self) -> float:
        """Write what is due; returns how many seconds to wait for the next line, at most 1."""
        now = time.time()
        while self._due and self._due[0][0] <= now:
            _, _, log = heapq.heappop(self._due)
            if log.is_open:
                log.write_until(now)
                self._schedule(log)
        while self._remove and self._remove[0][0] <= now:
            _, directory, uid = self._remove.pop(0)
            self._discard(directory, unless_of_another_than=uid)
            self._pods.pop(uid, None)
        return min(1.0, max(0.0, self._due[0][0] - time.time())) if self._due else 1.0

    def _open(self, pod: Json) -> None:
        directory, uid = self._directory(pod), pod["metadata"]["uid"]
        owner = directory / "uid"
        if not owner.exists() or owner.read_text() != uid:  # An earlier pod of the same name.
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir(parents=True)
            owner.write_text(uid)
        logs = []
        for number, status in enumerate(pod["status"].get("containerStatuses", [])):
            log = ContainerLog(
                directory=directory / status["name"],
                started=_started_at(status),
                lines=trainlog.run_lines(_run(pod, number)),
            )
            log.directory.mkdir(exist_ok=True)
            _skip_written(log)
            log.append("")  # The file is there from the start.
            log.write_until(min(time.time(), _finished_at(pod) or math.inf))
            self._schedule(log)
            logs.append(log)
        for status in pod["status"].get("initContainerStatuses", []):
            _write_init_log(directory / status["name"], status)
        self._pods[uid] = logs

    def _close(self, uid: str, moment: float) -> None:
        for log in self._pods.get(uid, ()):
            if log.is_open:
                if uid not in self._terminating:
                    log.write_until(moment)
                log.close()

    def _schedule(self, log: ContainerLog) -> None:
        if math.isfinite(due := log.due()):
            self._count += 1  # Breaks ties: logs have no order.
            heapq.heappush(self._due, (due, self._count, log))

    def _is_on_fake_node(self, pod: Json) -> bool:
        name = pod["spec"].get("nodeName")
        if not name:
            return False
        if name not in self._fake:
            try:
                node = self._api.get(f"/api/v1/nodes/{name}")
            except ApiError as error:
                print(f"node {name}: {error}", flush=True)
                return nodes.pool_of(name) is not None
            self._fake[name] = nodes.FAKE_ANNOTATION in node["metadata"].get("annotations", {})
        return self._fake[name]

    def _directory(self, pod: Json) -> Path:
        return self._root / str(pod["metadata"]["namespace"]) / str(pod["metadata"]["name"])

    def _discard_all_but(self, uids: set[str]) -> None:
        waiting = {uid for _, _, uid in self._remove}
        for owner in self._root.glob("*/*/uid"):
            if owner.read_text() not in uids | waiting:
                shutil.rmtree(owner.parent, ignore_errors=True)

    def _discard(self, directory: Path, *, unless_of_another_than: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            if (directory / "uid").read_text() == unless_of_another_than:
                shutil.rmtree(directory, ignore_errors=True)


def cri_line(moment: float, stream: str, text: str) -> str:
    """One line in the format of the container runtime interface, stamped with `moment` (seconds since the epoch)."""
    whole = math.floor(moment)
    nanoseconds = min(999_999_999, round((moment - whole) * 1e9))
    stamp = dt.datetime.fromtimestamp(whole, dt.UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{stamp}.{nanoseconds:09d}Z {stream} F {text}\n"


def seconds(duration: str) -> float | None:
    """A Go duration as kwok.yaml reads it ("1m30s", "500ms") in seconds; None when it is none."""
    units = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
    try:
        parts = [float(n) * units[unit] for n, unit in re.findall(r"([0-9.]+)(ms|h|m|s)", duration)]
    except ValueError:
        return None
    return sum(parts) if parts else None


def _run(pod: Json, container: int) -> trainlog.Run:
    annotations = pod["metadata"].get("annotations", {})
    spec = pod["spec"]["containers"][container]
    pool = nodes.pool_of(pod["spec"]["nodeName"])
    gpus = int(spec.get("resources", {}).get("limits", {}).get("nvidia.com/gpu", "0"))
    rank = annotations.get(RANK_ANNOTATION, "")
    rate, code = (
        annotations.get("simulate/log-lines-per-second", ""),
        annotations.get("simulate/exit-code", ""),
    )
    return trainlog.Run(
        seed=f"{pod['metadata']['uid']}/{spec['name']}",
        product=pool.product if pool else "GPU",
        gpus=gpus,
        gpu_memory_gib=pool.gpu_memory_gib if pool else 0,
        rank=int(rank) if rank.isdecimal() else None,
        lines_per_second=min(5000.0, float(rate)) if re.fullmatch(r"\d+(\.\d+)?", rate) else 1.0,
        run_for=seconds(annotations.get("simulate/run-for", "")),
        exit_code=int(code) if code.isdecimal() else 0,
    )


def _started_at(status: Json) -> float:
    """When the container started: kwok.yaml keeps the exact time at the end of containerID."""
    exact = re.search(r"@([^.Z]+)(\.\d+)?Z$", status.get("containerID", ""))
    if exact:
        return dt.datetime.fromisoformat(exact[1] + "+00:00").timestamp() + float(exact[2] or 0)
    state = status.get("state", {})
    started = (state.get("running") or state.get("terminated") or {}).get("startedAt")
    return dt.datetime.fromisoformat(started).timestamp() if started else time.time()


def _finished_at(pod: Json) -> float | None:
    ends = [
        status["state"]["terminated"].get("finishedAt")
        for status in pod["status"].get("containerStatuses", [])
        if "terminated" in status.get("state", {})
    ]
    # Whole seconds, rounded down: one more, or the last words would be cut off.
    return max(dt.datetime.fromisoformat(end).timestamp() for end in ends) + 1 if ends and all(ends) else None


def _skip_written(log: ContainerLog) -> None:
    path = log.directory / "0.log"
    if not path.exists():
        return
    content = path.read_bytes()
    count = content.count(b"\n")
    for _ in range(count):
        next(log.lines, None)
    if (log.directory / "exited").exists():
        log.lines = iter(())


def _write_init_log(directory: Path, status: Json) -> None:
    if not directory.exists():
        directory.mkdir()
        (directory / "0.log").write_text(cri_line(_started_at(status), "stdout", f"{status['name']}: done"))
        (directory / "exited").touch()


def main() -> None:
    """Run until killed."""
    server, pki, root = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    root.mkdir(parents=True, exist_ok=True)
    api = Api(server, pki, user="kwok")
    watch = PodWatch(api)
    logs = PodLogs(api, root)
    watch.start()
    while True:
        wait = logs.tick()
        with contextlib.suppress(queue.Empty):
            logs.handle(*watch.events.get(timeout=wait) if wait > 0 else watch.events.get_nowait())


if __name__ == "__main__":
    main()
