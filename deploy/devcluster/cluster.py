"""Bring an instance up and down, and the handle through which tests and the demo use it; exported by the package."""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from deploy.devcluster import binaries, certificates, controlplane, nodes, processes, realnode
from deploy.devcluster.api import Api, ApiError
from deploy.devcluster.state import (
    PROJECT_ROOT,
    DevClusterError,
    Oidc,
    State,
    are_free,
    default_directory,
    free_ports,
    load,
    locked,
)

RBAC = PROJECT_ROOT / "deploy" / "rbac"
SYSTEM_NAMESPACE = "berth-system"
TOKEN_DURATION = "8760h"
START_TIMEOUT_SECONDS = 90.0
KUBECTL_TIMEOUT_SECONDS = 120


@dataclass(frozen=True)
class DevCluster:
    """A running instance. `directory` holds its data, logs and kubeconfigs; `pids` are those of its processes."""

    name: str
    directory: Path
    server: str
    ca_file: Path
    audit_log: Path
    pids: dict[str, int]

    def kubeconfig(self, who: str = "admin") -> Path:
        """Kubeconfig of `who`: admin, or one of the portal's own identities worker, observe, collect."""
        path = self.directory / f"{who}.kubeconfig"
        if who not in ("admin", *controlplane.IDENTITIES) or not path.exists():
            raise DevClusterError(f"who: {who!r} has no kubeconfig in {self.directory}")
        return path

    def kubectl(
        self,
        *args: str,
        who: str = "admin",
        token: str | None = None,
        check: bool = True,
        input: str | None = None,  # noqa: A002 (the name subprocess gives it)
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl as `who`, or as the bearer of `token`; up to 120 s, `input` goes to its standard input.

        With `check`, a refusal raises DevClusterError with kubectl's own words.
        """
        state = _state(self.directory)
        with contextlib.ExitStack() as stack:
            if token is None:
                kubeconfig = self.kubeconfig(who)
            else:  # In a file, not on the command line: other users of the machine see command lines.
                scratch = stack.enter_context(tempfile.TemporaryDirectory(dir=self.directory))
                kubeconfig = Path(scratch, "kubeconfig")
                controlplane.write_kubeconfig(
                    kubeconfig, server=self.server, ca_file=self.ca_file, user={"token": token}
                )
            answer = subprocess.run(
                [state.binaries["kubectl"], f"--kubeconfig={kubeconfig}", *args],
                capture_output=True,
                timeout=KUBECTL_TIMEOUT_SECONDS,
                check=False,
                input=None if input is None else input.encode(),
            )
        # Decoded here: Python's text mode would turn the carriage returns of a log into line ends.
        result = subprocess.CompletedProcess(
            answer.args, answer.returncode, answer.stdout.decode(), answer.stderr.decode()
        )
        if check and result.returncode != 0:
            raise DevClusterError(f"kubectl {' '.join(args)}: {result.stderr.strip()}")
        return result


@dataclass(frozen=True)
class Status:
    """What `status` found. `running` has each component; `ready_nodes` is empty while the API server is away."""

    name: str
    directory: Path
    server: str
    running: dict[str, bool]
    is_ready: bool
    ready_nodes: tuple[str, ...]


def up(
    name: str = "dev",
    *,
    directory: Path | None = None,
    oidc: Oidc | None = None,
    fake_nodes: bool = True,
    real_node: bool = False,
    lives_with: int | None = None,
    progress: Callable[[str], None] = print,
) -> DevCluster:
    """Start the instance `name`, or whatever of it does not run; returns when it is ready for use.

    Data and ports are kept from the last time. `oidc`, once given, is remembered. With `lives_with`, the instance
    goes down when that process ends, however it ends. Raises DevClusterError.
    """
    directory = (directory or default_directory(name)).resolve()
    if real_node:
        realnode.require(directory)
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    paths = binaries.ensure(real_node=real_node, progress=progress)
    with locked(directory / "lock"):
        started = time.monotonic()
        state = load(directory) or State(name=name, ports=free_ports())
        if state.real_node and not real_node:
            _end_real_node(state, directory)
        state.oidc, state.fake_nodes, state.real_node = oidc or state.oidc, fake_nodes, real_node
        state.binaries = {key: str(path) for key, path in paths.items()}
        if not _running(state) and not are_free(state.ports):
            state.ports = free_ports()
        certificates.ensure(directory / "pki")
        controlplane.write_configuration(state, directory)
        if real_node:
            realnode.prepare(state, directory)
        state.save(directory)
        _start_missing(state, directory, progress)
        _prepare(state, directory, progress)
        if lives_with is not None:
            _start_guard(state, directory, lives_with)
        progress(
            f"cluster {name} is ready after {time.monotonic() - started:.1f} s at {controlplane.server(state)}"
        )
        return _handle(state, directory)


def attach(name: str = "dev", *, directory: Path | None = None) -> DevCluster | None:
    """The instance `name` when it is running and ready, else None."""
    directory = (directory or default_directory(name)).resolve()
    found = status(name, directory=directory)
    return _handle(_state(directory), directory) if found and found.is_ready else None


def status(name: str = "dev", *, directory: Path | None = None) -> Status | None:
    """What of the instance runs; None when there is none of this name."""
    directory = (directory or default_directory(name)).resolve()
    state = load(directory)
    if state is None:
        return None
    running = {
        part: processes.is_running(state.processes.get(part)) for part in _components(state, directory)
    }
    api, is_ready = Api(controlplane.server(state), directory / "pki"), False
    ready: tuple[str, ...] = ()
    if running["kube-apiserver"]:
        with contextlib.suppress(ApiError):
            api.get("/readyz")
            ready = tuple(sorted(nodes.ready_nodes(api)))
            is_ready = all(running.values())
    return Status(state.name, directory, controlplane.server(state), running, is_ready, ready)


def down(
    name: str = "dev",
    *,
    directory: Path | None = None,
    purge: bool = False,
    progress: Callable[[str], None] = print,
) -> None:
    """Stop the instance's processes, and no others; with `purge` remove its directory and data too."""
    directory = (directory or default_directory(name)).resolve()
    state = load(directory)
    if state is None:
        progress(f"cluster {name}: nothing to stop")
        return
    with locked(directory / "lock"):
        state = load(directory) or state
        parts = list(state.processes)
        # The last started goes first; etcd stops last, so that nothing complains to a log for long.
        for part in reversed(parts):
            if state.processes[part].pid != os.getpid():
                processes.stop(state.processes[part])
        state.processes = {}
        state.save(directory)
        realnode.remove(directory)
    if purge:
        shutil.rmtree(directory, ignore_errors=True)
    progress(f"cluster {name} is stopped" + (", its data is removed" if purge else ""))


def set_oidc(cluster: DevCluster, oidc: Oidc | None) -> None:
    """Change whose ID tokens the API server accepts; without restart, it reads the file again within about 15 s."""
    with locked(cluster.directory / "lock"):
        state = _state(cluster.directory)
        state.oidc = oidc
        state.save(cluster.directory)
        controlplane.write_authentication(oidc, cluster.directory)


def kill_component(cluster: DevCluster, component: str) -> None:
    """End a component at once by SIGKILL, as a crash would."""
    process = _state(cluster.directory).processes.get(component)
    if process is None:
        raise DevClusterError(f"component: there is no {component!r} in cluster {cluster.name}")
    processes.kill(process)


def start_component(cluster: DevCluster, component: str) -> DevCluster:
    """Start a component that has ended, on the same port with the same data, and wait until the API server is ready."""
    with locked(cluster.directory / "lock"):
        state = _state(cluster.directory)
        _start(state, cluster.directory, component)
        _wait_ready(state, cluster.directory)
        if component == "kubelet":
            realnode.finish(state, cluster.directory, Api(cluster.server, cluster.directory / "pki"))
        return _handle(state, cluster.directory)


def _handle(state: State, directory: Path) -> DevCluster:
    return DevCluster(
        name=state.name,
        directory=directory,
        server=controlplane.server(state),
        ca_file=directory / "pki" / "ca.crt",
        audit_log=directory / "audit.log",
        pids={part: process.pid for part, process in state.processes.items()},
    )


def _state(directory: Path) -> State:
    state = load(directory)
    if state is None:
        raise DevClusterError(f"there is no cluster in {directory}")
    return state


def _running(state: State) -> list[str]:
    return [part for part, process in state.processes.items() if processes.is_running(process)]


def _components(state: State, directory: Path) -> dict[str, controlplane.Component]:
    """All processes of the instance, in the order in which they are started."""
    return controlplane.components(state, directory) | realnode.components(state, directory)


def _start_missing(state: State, directory: Path, progress: Callable[[str], None]) -> None:
    parts = list(_components(state, directory))
    for number, part in enumerate(parts, 1):
        if not processes.is_running(state.processes.get(part)):
            progress(f"starting {part} ({number} of {len(parts)})")
            _start(state, directory, part)
        if part == "kube-apiserver":
            _wait_ready(state, directory)
        elif part == "containerd":
            realnode.import_images(state, directory)


def _start(state: State, directory: Path, part: str) -> None:
    component = _components(state, directory).get(part)
    if component is None:
        raise DevClusterError(f"component: there is no {part!r} in cluster {state.name}")
    if processes.is_running(state.processes.get(part)):
        return
    log_file = directory / "logs" / f"{part}.log"
    state.processes[part] = processes.start(
        component.argv, log_file=log_file, environment=component.environment
    )
    state.save(directory)


def _wait_ready(state: State, directory: Path) -> None:
    """Wait for /readyz; the API server ends itself when etcd does not answer, so an ended process is an error."""
    api = Api(controlplane.server(state), directory / "pki")
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    while True:
        with contextlib.suppress(ApiError):
            api.get("/readyz")
            return
        for part in ("etcd", "kube-apiserver"):
            if not processes.is_running(state.processes.get(part)):
                raise DevClusterError(f"{part} ended:\n{processes.tail(directory / 'logs' / f'{part}.log')}")
        if time.monotonic() > deadline:
            raise DevClusterError(f"the API server is not ready after {START_TIMEOUT_SECONDS:.0f} s")
        time.sleep(0.1)


def _prepare(state: State, directory: Path, progress: Callable[[str], None]) -> None:
    """Nodes, the portal's identities and their kubeconfigs; repeats harmlessly."""
    api = Api(controlplane.server(state), directory / "pki")
    cluster = _handle(state, directory)
    try:
        if state.fake_nodes:
            nodes.ensure(api, kubelet_port=state.ports["nodelogs"])
        cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(RBAC / "namespace.yaml"))
        cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(RBAC))
        for who in controlplane.IDENTITIES:
            token = cluster.kubectl(
                "create",
                "token",
                f"berth-{who}",
                f"--namespace={SYSTEM_NAMESPACE}",
                f"--duration={TOKEN_DURATION}",
            ).stdout.strip()
            controlplane.write_kubeconfig(
                directory / f"{who}.kubeconfig",
                server=cluster.server,
                ca_file=cluster.ca_file,
                user={"token": token},
            )
        wanted = set(nodes.node_names()) if state.fake_nodes else set()
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        while missing := wanted - nodes.ready_nodes(api):
            if time.monotonic() > deadline:
                raise DevClusterError(
                    f"nodes not ready after {START_TIMEOUT_SECONDS:.0f} s: {sorted(missing)}"
                )
            time.sleep(0.2)
        if state.real_node:
            realnode.finish(state, directory, api)
        else:
            realnode.forget(api)
    except ApiError as error:
        raise DevClusterError(f"preparing the cluster: {error}") from error


def _end_real_node(state: State, directory: Path) -> None:
    """This time it is not wanted."""
    for part in ("kubelet", "containerd"):
        if process := state.processes.pop(part, None):
            processes.stop(process)
    realnode.remove(directory)


def _start_guard(state: State, directory: Path, pid: int) -> None:
    """A process that waits for `pid` to end and then takes the instance down."""
    state.processes["guard"] = processes.start(
        [sys.executable, "-m", "deploy.devcluster.guard", str(pid), state.name, str(directory)],
        log_file=directory / "logs" / "guard.log",
        environment={"PYTHONPATH": str(PROJECT_ROOT)},
    )
    state.save(directory)
