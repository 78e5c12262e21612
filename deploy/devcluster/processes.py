"""Start processes that outlive us, know them again, and end exactly those; used by cluster.py and realnode.py."""

import contextlib
import os
import signal
import time
from pathlib import Path

from deploy.devcluster.state import DevClusterError, Process


def start(argv: list[str], *, log_file: Path, environment: dict[str, str] | None = None) -> Process:
    """Start `argv` in a session of its own, with its output appended to `log_file`.

    posix_spawn rather than subprocess: nothing here waits for the child, and it must survive us.
    """
    log_file.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    try:
        pid = os.posix_spawn(
            argv[0],
            argv,
            {**os.environ, **(environment or {})},
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(log_file), flags, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
        )
    except OSError as error:
        raise DevClusterError(f"cannot start {argv[0]}: {error.strerror}") from error
    return Process(pid=pid, started=_start_time(pid) or 0)


def is_running(process: Process | None) -> bool:
    """Whether this very process (not another one under its pid) still runs."""
    if process is None:
        return False
    with contextlib.suppress(
        ChildProcessError
    ):  # A dead child of ours stays a zombie until it is waited for.
        os.waitpid(process.pid, os.WNOHANG)
    return _start_time(process.pid) == process.started


def stop(process: Process, *, patience_seconds: float = 15.0) -> None:
    """Ask the process to end; kill it when it has not within `patience_seconds`."""
    send(process, signal.SIGTERM)
    if not wait_ended(process, patience_seconds):
        kill(process)


def kill(process: Process) -> None:
    """End the process at once, as a crash would."""
    send(process, signal.SIGKILL)
    wait_ended(process, 5.0)


def send(process: Process, number: int) -> None:
    """Send a signal, unless the process is gone or its pid is another's."""
    if is_running(process):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, number)


def wait_ended(process: Process, seconds: float) -> bool:
    """Wait up to `seconds` for the process to be gone; says whether it is."""
    deadline = time.monotonic() + seconds
    while is_running(process):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def tail(log_file: Path, lines: int = 12) -> str:
    """The last lines of a log, for error messages."""
    try:
        return "\n".join(log_file.read_text(errors="replace").splitlines()[-lines:])
    except OSError:
        return ""


def _start_time(pid: int) -> int | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = text.rsplit(")", 1)[1].split()  # The command's name may hold blanks and parentheses.
    return None if fields[0] in "ZX" else int(fields[19])
