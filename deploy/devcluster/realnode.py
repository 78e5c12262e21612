"""This machine as a node with containerd and kubelet, so that real containers run; used by cluster.py. Needs root.

Everything it makes lies in the instance's directory or under /run/berth, in a control group and on a bridge of its
own, so that several instances run side by side. What kubelet changes on any machine it changes here too: kernel
settings (kubelet's protectKernelDefaults), /var/lib/kubelet/device-plugins, /var/log/containers.
"""

import calendar
import json
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

from deploy.devcluster import bridge, certificates, images, leftovers, processes
from deploy.devcluster.api import Api, ApiError
from deploy.devcluster.controlplane import Component, server, write_kubeconfig
from deploy.devcluster.state import RUN, DevClusterError, Process, State, run_name

NODE = "real-0"
POOL = "real"
# There is no device: Kubernetes counts what the node claims to have, which is enough for scheduling and quota.
GPUS = 2
NETWORK_PLUGINS = Path("/usr/lib/cni")
START_TIMEOUT_SECONDS = 60.0
SOCKET_PATH_LIMIT = 107
# Where a user's PATH may lack root's programs.
PROGRAM_PATH = f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin"
_UNUSED_PLUGINS = (
    "io.containerd.snapshotter.v1.aufs",
    "io.containerd.snapshotter.v1.btrfs",
    "io.containerd.snapshotter.v1.devmapper",
    "io.containerd.snapshotter.v1.zfs",
    "io.containerd.internal.v1.opt",
    "io.containerd.tracing.processor.v1.otlp",
)


def obstacle() -> str:
    """Why this machine cannot be a node now; empty when it can."""
    if os.geteuid() != 0:
        return "the real node needs root"
    programs = {"containerd": "containerd", "ctr": "containerd", "runc": "runc", "ip": "iproute2"}
    missing = [package for program, package in programs.items() if _find(program) is None]
    if not all((NETWORK_PLUGINS / plugin).exists() for plugin in ("bridge", "host-local", "loopback")):
        missing.append("containernetworking-plugins")
    if images.find_busybox() is None:
        missing.append("busybox-static")
    if missing:
        return f"the real node needs these Debian packages: {' '.join(dict.fromkeys(missing))}"
    return ""


def require(directory: Path) -> None:
    """Raise DevClusterError when the instance in `directory` cannot have a real node on this machine."""
    if reason := obstacle():
        raise DevClusterError(reason)
    longest = directory / "kubelet" / "pod-resources" / "kubelet.sock"
    if len(str(longest)) > SOCKET_PATH_LIMIT:
        raise DevClusterError(
            f"directory: {directory} is too long for kubelet's sockets; choose a shorter one"
        )


def components(state: State, directory: Path) -> dict[str, Component]:
    """The real node's processes in the order in which they are started; empty without one."""
    if not state.real_node:
        return {}
    etc = directory / "etc"
    commands = {
        "containerd": [str(_find("containerd")), f"--config={etc / 'containerd.toml'}", "--log-level=warn"],
        "kubelet": [
            state.binaries["kubelet"],
            f"--config={etc / 'kubelet.json'}",
            f"--kubeconfig={etc / 'kubelet.kubeconfig'}",
            f"--root-dir={directory / 'kubelet'}",
            f"--cert-dir={directory / 'kubelet' / 'pki'}",
            f"--hostname-override={NODE}",
            f"--node-ip={bridge.address(state.subnet or 0)}",
            f"--node-labels=gpu.model={POOL},node.kubernetes.io/instance-type={POOL}",
        ],
    }
    return {name: Component(argv, {"PATH": PROGRAM_PATH}) for name, argv in commands.items()}


def prepare(state: State, directory: Path) -> None:
    """Bridge, control group, certificates and configuration files, before the processes start; repeats harmlessly."""
    run = RUN / run_name(directory)
    run.mkdir(parents=True, exist_ok=True, mode=0o700)
    state.subnet = bridge.ensure(state.subnet, run_name(directory))
    state.save(directory)
    pki, etc = directory / "pki", directory / "etc"
    if not (pki / "node-client.crt").exists():
        # The user that the API server's Node authorizer knows as this node (Kubernetes documentation, "Node").
        subject = certificates.Subject(f"system:node:{NODE}", groups=("system:nodes",))
        certificates.issue(pki, "node-client", subject)
    serving = f"node-serving-{state.subnet}"
    if not (pki / f"{serving}.crt").exists():
        hosts = (bridge.address(state.subnet), NODE)
        certificates.issue(pki, serving, certificates.Subject(f"node-{NODE}", hosts=hosts))
    write_kubeconfig(
        etc / "kubelet.kubeconfig",
        server=server(state),
        ca_file=pki / "ca.crt",
        user={
            "client-certificate": str(pki / "node-client.crt"),
            "client-key": str(pki / "node-client.key"),
        },
    )
    (etc / "cni").mkdir(exist_ok=True)
    _write_json(etc / "cni" / "10-bridge.conflist", _network(state.subnet, run))
    (etc / "containerd.toml").write_text(_containerd(directory, run))
    control_group = leftovers.make_control_group(directory)
    _write_json(
        etc / "kubelet.json", _kubelet(state, directory, serving=serving, control_group=control_group)
    )


def import_images(state: State, directory: Path) -> None:
    """Wait until containerd answers and give it the images. Raises DevClusterError."""
    address = str(RUN / run_name(directory) / "containerd.sock")
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    while not _accepts(address):
        if not processes.is_running(state.processes.get("containerd")) or time.monotonic() > deadline:
            tail = processes.tail(directory / "logs" / "containerd.log")
            raise DevClusterError(f"containerd does not answer:\n{tail}")
        time.sleep(0.05)
    archive = directory / "etc" / "images.tar"
    images.write_archive(archive)
    result = subprocess.run(
        [str(_find("ctr")), "--address", address, "--namespace", "k8s.io", "images", "import", archive],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    archive.unlink()
    if result.returncode:
        raise DevClusterError(f"importing the real node's images: {result.stderr.strip()}")


def finish(state: State, directory: Path, api: Api) -> None:
    """Wait until this kubelet reports ready, then give the node its GPUs. Raises DevClusterError and ApiError."""
    kubelet = state.processes["kubelet"]
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    # A kubelet takes away extended resources without a device plugin once, when it registers: not before then.
    while not _is_ready_since(api, _started_at(kubelet)):
        if not processes.is_running(kubelet):
            raise DevClusterError(f"kubelet ended:\n{processes.tail(directory / 'logs' / 'kubelet.log')}")
        if time.monotonic() > deadline:
            raise DevClusterError(f"the node {NODE} is not ready after {START_TIMEOUT_SECONDS:.0f} s")
        time.sleep(0.1)
    gpus = {"nvidia.com/gpu": str(GPUS)}
    api.request(
        "PATCH",
        f"/api/v1/nodes/{NODE}/status",
        {"status": {"capacity": gpus, "allocatable": gpus}},
        content_type="application/strategic-merge-patch+json",
    )


def forget(api: Api) -> None:
    """Remove the Node object of an earlier start, so that nothing waits for a node that does not come back."""
    try:
        api.get(f"/api/v1/nodes/{NODE}")
        api.request("DELETE", f"/api/v1/nodes/{NODE}")
    except ApiError as error:
        if error.status != 404:
            raise


def remove(directory: Path) -> None:
    """After the processes have ended: containers, mounts, network, control group. Raises DevClusterError."""
    if not (RUN / run_name(directory)).exists():
        return
    leftovers.end_processes(directory)
    bridge.remove(run_name(directory))
    leftovers.remove(directory)  # Last: it removes the folder that tells that there is something to remove.


def _network(subnet: int, run: Path) -> dict[str, Any]:
    """The bridge and host-local plugins' configuration: an address each, and no gateway."""
    return {
        "cniVersion": "0.4.0",
        "name": run.name,
        "plugins": [
            {
                "type": "bridge",
                "bridge": bridge.name(subnet),
                "ipam": {
                    "type": "host-local",
                    "dataDir": str(run / "addresses"),
                    "ranges": [[{"subnet": bridge.network(subnet), "gateway": bridge.address(subnet)}]],
                },
            }
        ],
    }


def _containerd(directory: Path, run: Path) -> str:
    # A JSON string is a TOML string, too.
    return f"""\
version = 2
root = {json.dumps(str(directory / "containerd"))}
state = {json.dumps(str(run / "state"))}
disabled_plugins = {json.dumps(_UNUSED_PLUGINS)}
[grpc]
address = {json.dumps(str(run / "containerd.sock"))}
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = {json.dumps(images.PAUSE)}
netns_mounts_under_state_dir = true
# Where lowering oom_score_adj is refused even to root, runc dies of it.
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = {json.dumps(str(NETWORK_PLUGINS))}
conf_dir = {json.dumps(str(directory / "etc" / "cni"))}
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
BinaryName = {json.dumps(str(_find("runc")))}
Root = {json.dumps(str(run / "runc"))}
SystemdCgroup = false
"""


def _kubelet(state: State, directory: Path, *, serving: str, control_group: str) -> dict[str, Any]:
    pki = directory / "pki"
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": bridge.address(state.subnet or 0),
        "port": state.ports["kubelet"],
        "healthzBindAddress": "127.0.0.1",
        "healthzPort": state.ports["kubelet-health"],
        "tlsCertFile": str(pki / f"{serving}.crt"),
        "tlsPrivateKeyFile": str(pki / f"{serving}.key"),
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": False},
            "x509": {"clientCAFile": str(pki / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "containerRuntimeEndpoint": f"unix://{RUN / run_name(directory) / 'containerd.sock'}",
        "cgroupDriver": "cgroupfs",
        # Without a group of its own, a kubelet ends the pods of another that it does not know.
        "cgroupRoot": control_group,
        "failCgroupV1": False,
        "failSwapOn": False,
        "localStorageCapacityIsolation": False,
        "oomScoreAdj": 0,
        "makeIPTablesUtilChains": False,
        "podLogsDir": str(directory / "containers"),
        "volumePluginDir": str(directory / "kubelet" / "volume-plugins"),
        # A developer's disk may be full by a server's measure, and images cannot be fetched again.
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "0%", "imagefs.available": "0%"},
    }


def _is_ready_since(api: Api, moment: float) -> bool:
    try:
        conditions = api.get(f"/api/v1/nodes/{NODE}")["status"].get("conditions", [])
    except ApiError as error:
        if error.status == 404:
            return False
        raise
    return any(
        each["type"] == "Ready"
        and each["status"] == "True"
        and calendar.timegm(time.strptime(each["lastHeartbeatTime"], "%Y-%m-%dT%H:%M:%SZ")) >= int(moment)
        for each in conditions
    )


def _started_at(process: Process) -> float:
    """When a process was started, in seconds since 1970."""
    since_boot = process.started / os.sysconf("SC_CLK_TCK")
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + since_boot


def _accepts(address: str) -> bool:
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(address)
        except OSError:
            return False
        return True


def _find(program: str) -> str | None:
    return shutil.which(program, path=PROGRAM_PATH)


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=1))
