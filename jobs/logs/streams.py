"""One row per run of a container: made and kept current from observed pods.

Called by `jobs/actions/observation.py` after each batch of pods, in its transaction. The collector reads a run's
output as soon as its row says that it started. Writes only what observation knows (`run_state`, `exit_code`,
`reason`), and completes streams of containers that never started and never will; all other columns are the
collector's.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jobs.models import LogStream, Pod

WAITING, RUNNING, ENDED = "waiting", "running", "ended"
_ORDER = (WAITING, RUNNING, ENDED)
_POD_ENDED = ("Succeeded", "Failed")
NEVER_STARTED = "This container never started."


@dataclass(frozen=True)
class Run:
    """One run of one container as observed; `restart` counts from 0."""

    pod_id: int
    container: str
    restart: int
    kind: str
    state: str
    exit_code: int | None = None
    reason: str = ""


def ensure_streams(pods: Sequence[Pod], *, now: datetime) -> None:
    """Make the rows of all runs these pods tell of, and move the known ones on. Repeats harmlessly."""
    runs = [run for pod in pods for run in runs_of(pod)]
    if not runs:
        return
    known = _known(runs)
    missing = [run for run in runs if _key(run) not in known]
    if missing:
        # Another observer may insert the same rows at the same moment: the constraint decides, nobody fails.
        LogStream.objects.bulk_create([_row(run, now) for run in missing], ignore_conflicts=True)
    for run in runs:
        stream = known.get(_key(run))
        if stream is not None:
            _move_on(stream, run)


def runs_of(pod: Pod) -> Iterator[Run]:
    """The current run of each container of the pod, and the one before it."""
    is_over = pod.phase in _POD_ENDED or pod.gone_at is not None
    for container in pod.containers:
        name, kind = str(container["name"]), str(container["kind"])
        restarts = _count(container.get("restarts"))
        # Of runs before the previous one the node has nothing left.
        if restarts > 0:
            yield Run(pod.pk, name, restarts - 1, kind, ENDED)
        yield _current_run(pod.pk, name, kind, container, is_over=is_over)


def _current_run(pod_id: int, name: str, kind: str, container: Mapping[str, Any], *, is_over: bool) -> Run:
    restarts = _count(container.get("restarts"))
    state = container.get("state")
    if state == "terminated":
        reason = str(container.get("reason") or "")[:120]
        return Run(pod_id, name, restarts, kind, ENDED, container.get("exit_code"), reason)
    if state == "running":
        return Run(pod_id, name, restarts, kind, ENDED if is_over else RUNNING)
    # Waiting for its first run, or, as in CrashLoopBackOff, for the one after `restarts`, which has ended.
    return Run(pod_id, name, restarts, kind, ENDED if restarts > 0 else WAITING)


def _known(runs: Sequence[Run]) -> dict[tuple[int, str, int], LogStream]:
    rows = LogStream.objects.filter(pod_id__in={run.pod_id for run in runs}).select_related("pod")
    return {(row.pod_id, row.container, row.restart): row for row in rows}


def _key(run: Run) -> tuple[int, str, int]:
    return run.pod_id, run.container, run.restart


def _row(run: Run, now: datetime) -> LogStream:
    return LogStream(
        pod_id=run.pod_id,
        container=run.container,
        restart=run.restart,
        kind=run.kind,
        run_state=run.state,
        exit_code=run.exit_code,
        reason=run.reason,
        created_at=now,
    )


def _move_on(stream: LogStream, run: Run) -> None:
    """Store what is new about a run; it never goes back, for example from ended to running."""
    changes: dict[str, Any] = {}
    if _ORDER.index(run.state) > _ORDER.index(stream.run_state):
        changes["run_state"] = run.state
    if run.exit_code is not None and stream.exit_code is None:
        changes |= {"exit_code": run.exit_code, "reason": run.reason}
    if run.state == WAITING and not stream.is_complete and _is_over(stream.pod):
        changes |= {"is_complete": True, "note": NEVER_STARTED}
    if changes:
        # Look at it now, whatever the collector's back-off was.
        LogStream.objects.filter(pk=stream.pk).update(retry_at=None, **changes)


def _is_over(pod: Pod) -> bool:
    return pod.phase in _POD_ENDED or pod.gone_at is not None


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0
