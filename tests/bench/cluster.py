"""The cluster as the rows see it: raw requests, kubectl, processor time, writes. Imports nothing of the product."""

import base64
import http.client
import json
import os
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from deploy.devcluster import DevCluster, controlplane
from deploy.devcluster.state import load

CONNECTIONS = 8
QUIET_SHARE = 0.15  # of one core: what the control plane uses at rest on a small machine
QUIET_PATIENCE_SECONDS = 45.0
WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
Request = tuple[str, bytes]  # path with query, body


class RawLoop:
    """Server-side applies over kept connections and nothing else: what the API server can do at most."""

    def __init__(self, kubeconfig: Path) -> None:
        config = json.loads(kubeconfig.read_text())
        server = config["clusters"][0]["cluster"]
        authority = base64.b64decode(server["certificate-authority-data"]).decode()
        self._address = urlsplit(server["server"]).netloc
        self._context = ssl.create_default_context(cadata=authority)
        self._headers = {
            "Authorization": f"Bearer {config['users'][0]['user']['token']}",
            "Content-Type": "application/apply-patch+yaml",
            "Accept": "application/json",
        }

    def apply(self, waves: Iterable[Sequence[Request]]) -> None:
        """Send each wave over all connections, the next one when it is done. Raises RuntimeError on a refusal."""
        own = threading.local()
        opened: list[http.client.HTTPSConnection] = []

        def send(request: Request) -> None:
            if not hasattr(own, "connection"):
                own.connection = http.client.HTTPSConnection(self._address, context=self._context, timeout=60)
                opened.append(own.connection)
            own.connection.request("PATCH", request[0], request[1], self._headers)
            response = own.connection.getresponse()
            answer = response.read()
            if response.status >= 400:
                raise RuntimeError(f"PATCH {request[0]}: {answer[:300].decode(errors='replace')}")

        with ThreadPoolExecutor(CONNECTIONS) as threads:
            for wave in waves:
                list(threads.map(send, wave))
        for connection in opened:
            connection.close()


class Kubectl:
    """kubectl under one identity, as a person at a terminal has it: discovery cached, one process per command."""

    def __init__(self, cluster: DevCluster, kubeconfig: Path) -> None:
        state = load(cluster.directory)
        assert state is not None, "the cluster has no state"
        self.environment = os.environ | {"KUBECACHEDIR": str(cluster.directory / "kubectl-cache")}
        self._argv = [state.binaries["kubectl"], f"--kubeconfig={kubeconfig}"]

    def run(self, *arguments: str) -> None:
        """One command to its end. Raises RuntimeError with kubectl's words."""
        result = subprocess.run(
            [*self._argv, *arguments],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            check=False,
            timeout=600,
        )
        if result.returncode:
            raise RuntimeError(f"kubectl {arguments[0]}: {result.stderr.decode(errors='replace')[-600:]}")

    def start(self, *arguments: str) -> "subprocess.Popen[bytes]":
        """A command that goes on; its output is a pipe."""
        return subprocess.Popen(
            [*self._argv, *arguments],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )


def kubectl_with_token(cluster: DevCluster, token: str) -> Kubectl:
    """kubectl for somebody who signed in at the provider."""
    kubeconfig = cluster.directory / "person.kubeconfig"
    controlplane.write_kubeconfig(
        kubeconfig, server=cluster.server, ca_file=cluster.ca_file, user={"token": token}
    )
    kubeconfig.chmod(0o600)
    return Kubectl(cluster, kubeconfig)


def wait_quiet(cluster: DevCluster) -> None:
    """Wait until the control plane has digested what came before, so that the next one does not pay for it."""
    pids = [pid for part, pid in cluster.pids.items() if part.startswith(("kube-", "etcd"))]
    deadline = time.monotonic() + QUIET_PATIENCE_SECONDS
    while time.monotonic() < deadline:
        before, started = sum(map(cpu_seconds, pids)), time.monotonic()
        time.sleep(0.5)
        if (sum(map(cpu_seconds, pids)) - before) / (time.monotonic() - started) < QUIET_SHARE * len(pids):
            return


def cpu_seconds(pid: int) -> float:
    """Processor time a process has used, with children that have ended; 0 when it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(int(ticks) for ticks in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def family_cpu_seconds(pid: int) -> float:
    """The same of a process and all its descendants."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, ValueError):
                continue
            children.setdefault(parent, []).append(int(entry.name))
    total, family = 0.0, [pid]
    while family:
        member = family.pop()
        total += cpu_seconds(member)
        family += children.get(member, [])
    return total


def writes_since(audit_log: Path, offset: int) -> list[str]:
    """What Berth's identities wrote since `offset` bytes into the API server's own log."""
    if audit_log.stat().st_size < offset:
        raise RuntimeError("the audit log was begun anew meanwhile: its writes cannot be counted")
    with audit_log.open() as log:
        log.seek(offset)
        events: list[dict[str, Any]] = [json.loads(line) for line in log if line.rstrip().endswith("}")]
    return [
        f"{event['verb']} {event['requestURI']}"
        for event in events
        if event["user"]["username"].startswith("system:serviceaccount:berth-system:")
        and event["verb"] in WRITES
    ]


def timed(work: Callable[[], None]) -> float:
    """Wall seconds of one call."""
    started = time.monotonic()
    work()
    return time.monotonic() - started
