"""Keeps a django-q2 cluster alive; run by `manage.py worker`.

A cluster whose idle worker is killed can stop for good without ending (django-q2 issues 23 and 339). So the cluster
runs in its own process group, a heartbeat task must come through every so often, and a group that misses it is killed
and started anew. The supervisor also rings the sweep, which finds whatever a lost bell missed.
"""

import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from datetime import timedelta

from django.db import Error, connection
from django.utils import timezone

from portal import health
from portal.models import Change
from portal.queue import ring

log = logging.getLogger(__name__)
SWEEP_SECONDS = 5.0
BEAT_SECONDS = 10.0
SILENCE_SECONDS = 60.0
STOP_SECONDS = 15.0
RESTART_SECONDS = 1.0
KEEP_CHANGES = timedelta(minutes=10)


def heartbeat() -> None:
    """The task that proves that tasks run."""
    health.beat(health.WORKER, now=timezone.now())


def prune_changes() -> None:
    """Forget news that no open page can still want."""
    Change.objects.filter(at__lt=timezone.now() - KEEP_CHANGES).delete()


def run(stop: threading.Event, *, sweeps: tuple[str, ...]) -> None:
    """Run a cluster until `stop` is set, and start it again whenever it ends or falls silent."""
    cluster = _start()
    started, next_beat, next_sweep = time.monotonic(), 0.0, 0.0
    try:
        while not stop.wait(0.2):
            now = time.monotonic()
            if cluster.poll() is not None or _is_silent(now - started):
                log.error("the task cluster ended or fell silent; starting it again")
                _kill(cluster)
                stop.wait(RESTART_SECONDS)  # whatever ended it may need a moment too
                cluster, started = _start(), time.monotonic()
            try:
                if now >= next_beat:
                    ring("portal.supervisor.heartbeat")
                    next_beat = now + BEAT_SECONDS
                if now >= next_sweep:
                    for sweep in sweeps:
                        ring(sweep)
                    next_sweep = now + SWEEP_SECONDS
            except Error:
                log.exception("the queue cannot be written; trying again")
                connection.close()
    finally:
        _stop(cluster)


def _start() -> subprocess.Popen[bytes]:
    # Killed with us (PR_SET_PDEATHSIG is not used: the thread that starts may end first); its own group for _kill.
    return subprocess.Popen(
        [sys.executable, sys.argv[0], "qcluster"], start_new_session=True, env=_environment()
    )


def _environment() -> dict[str, str]:
    return {**os.environ, "BERTH_PROCESS": "worker", "QCLUSTER_SUPERVISOR": str(os.getpid())}


def _is_silent(age: float) -> bool:
    if age < SILENCE_SECONDS:
        return False
    try:
        last = health.last_beat(health.WORKER)
    except Error:
        return False  # a database that is away is no reason to kill anybody
    return last is None or (timezone.now() - last).total_seconds() > SILENCE_SECONDS


def _stop(cluster: subprocess.Popen[bytes]) -> None:
    cluster.terminate()
    try:
        cluster.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        log.warning("the task cluster did not stop in time; killing it")
    _kill(cluster)


def _kill(cluster: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(cluster.pid, signal.SIGKILL)
    cluster.wait()
