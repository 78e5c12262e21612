"""Ends and removes what a real node leaves behind when its kubelet and containerd are gone; used by realnode.py.

Containers outlive containerd, and ours has to go even after a crash, so nothing here asks it: a container's process is
known by the instance's control group, a shim by the instance's socket in its arguments.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from deploy.devcluster.state import RUN, DevClusterError, run_name

PATIENCE_SECONDS = 15.0
# Fixed in containerd, the network plugins' library and kubelet, for all instances; the entries are ours alone.
SHIM_SOCKETS = Path("/run/containerd/s")
NETWORK_RESULTS = Path("/var/lib/cni/results")
LOG_LINKS = Path("/var/log/containers")


def make_control_group(directory: Path) -> str:
    """The control group below which all of the instance's pods live, made if missing. Raises DevClusterError."""
    group = run_name(directory)
    for hierarchy in _mounts(kind=("cgroup", "cgroup2")):
        try:
            (hierarchy / group).mkdir(exist_ok=True)
        except OSError as error:
            raise DevClusterError(f"the real node's control group: {error}") from error
    return f"/{group}"


def end_processes(directory: Path) -> None:
    """End the instance's containers and shims. Raises DevClusterError when one stays.

    Containers first: their shims then collect them. By descriptor, so that a pid is never another's.
    """
    group, run = run_name(directory), RUN / run_name(directory)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        found = list(_processes(group, run))
        if not found:
            return
        if time.monotonic() > deadline:
            raise DevClusterError(f"processes of the real node do not end: {[pid for pid, _ in found]}")
        has_containers = any(not is_shim for _, is_shim in found)
        for pid, is_shim in found:
            if is_shim and has_containers:
                continue
            with contextlib.suppress(ProcessLookupError):
                descriptor = os.pidfd_open(pid)
                try:
                    if (pid, is_shim) in _processes(group, run, (pid,)):
                        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                finally:
                    os.close(descriptor)
        time.sleep(0.05)


def remove(directory: Path) -> None:
    """Unmount what is below `directory`, and remove what lies outside it. Raises DevClusterError when a mount stays."""
    run = RUN / run_name(directory)
    _unmount((directory, run))
    _remove_control_groups(run_name(directory))
    _remove_entries(directory, run)
    shutil.rmtree(run, ignore_errors=True)


def _processes(group: str, run: Path, pids: tuple[int, ...] | None = None) -> Iterator[tuple[int, bool]]:
    """Processes of the instance's containers, and (True) of what runs its containers, of all or of `pids`."""
    for pid in pids or [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]:
        try:
            proc = Path("/proc", str(pid))
            arguments = proc.joinpath("cmdline").read_bytes().split(b"\0")
            groups = proc.joinpath("cgroup").read_text()
            has_ended = proc.joinpath("stat").read_bytes().rsplit(b")", 1)[1].split()[0] in (b"Z", b"X")
        except OSError:
            continue
        if has_ended:
            continue  # Only its parent has not noticed.
        program = os.path.basename(arguments[0])
        inside = f"{run}/".encode()
        if program.startswith((b"containerd-shim", b"runc")) and any(a.startswith(inside) for a in arguments):
            yield pid, True
        elif f":/{group}/" in groups:
            yield pid, False


def _unmount(places: tuple[Path, ...]) -> None:
    """Unmount everything below `places`, the innermost first."""
    for _ in range(3):  # A mount may lie over another.
        points = [point for point in _mounts() if any(point.is_relative_to(place) for place in places)]
        if not points:
            return
        # Lazily: a namespace of processes that have just ended may still hold it.
        subprocess.run(
            ["umount", "--lazy", *reversed([str(point) for point in points])],
            capture_output=True,
            timeout=60,
            check=False,
        )
    if points := [point for point in _mounts() if any(point.is_relative_to(place) for place in places)]:
        raise DevClusterError(f"cannot unmount {', '.join(map(str, points))}")


def _mounts(*, kind: tuple[str, ...] = ()) -> Iterator[Path]:
    """Mount points in the order in which they were mounted, of the file systems `kind` if given (proc(5))."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields, _, source = line.partition(" - ")
        if not kind or source.split(" ", 1)[0] in kind:
            point = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), fields.split(" ")[4])
            yield Path(point)


def _remove_control_groups(group: str) -> None:
    """Remove the emptied groups, the innermost first; the kernel may still be busy with their last processes."""
    for hierarchy in _mounts(kind=("cgroup", "cgroup2")):
        top = hierarchy / group
        deadline = time.monotonic() + 2.0
        while top.exists():
            for folder, _, _ in os.walk(top, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(folder)
            if time.monotonic() > deadline:
                break  # An empty group does no harm, and the next start uses it.
            time.sleep(0.02)


def _remove_entries(directory: Path, run: Path) -> None:
    bundles = run / "state" / "io.containerd.runtime.v2.task" / "k8s.io"
    for bundle in bundles.iterdir() if bundles.is_dir() else ():
        with contextlib.suppress(OSError):
            socket = Path(bundle.joinpath("address").read_text().strip().removeprefix("unix://"))
            if socket.parent == SHIM_SOCKETS:
                socket.unlink(missing_ok=True)
        for result in NETWORK_RESULTS.glob(f"*{bundle.name}*"):
            result.unlink(missing_ok=True)
    for link in LOG_LINKS.glob("*.log"):
        with contextlib.suppress(OSError):
            if Path(os.readlink(link)).is_relative_to(directory):
                link.unlink()
