"""The command lines and configuration files of etcd and the Kubernetes components; used by cluster.py.

Everything is derived from the state: written anew at each start, so files never contradict the ports.
"""

import base64
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploy.devcluster.state import PROJECT_ROOT, Oidc, State

HERE = Path(__file__).parent
IDENTITIES = ("worker", "observe", "collect")
# Nothing here is on a cloud, and pod addresses come from kwok or the bridge.
CONTROLLERS = (
    "*,-node-ipam-controller,-node-route-controller,-service-lb-controller,-cloud-node-lifecycle-controller"
)


@dataclass(frozen=True)
class Component:
    """How to start one process: its command and what its environment has besides ours."""

    argv: list[str]
    environment: dict[str, str]


def components(state: State, directory: Path) -> dict[str, Component]:
    """All of the instance's processes but the real node's, in the order in which they are started."""
    commands = {
        "etcd": _etcd(state, directory),
        "kube-apiserver": _api_server(state, directory),
        "kube-controller-manager": _controller_manager(state, directory),
        "kube-scheduler": _scheduler(state, directory),
    }
    if state.fake_nodes:
        commands |= {
            "kwok": _kwok(state, directory),
            "nodelogs": _nodelogs(state, directory),
            "podlogs": [
                sys.executable, "-m", "deploy.devcluster.podlogs",
                server(state), str(directory / "pki"), str(directory / "pod-logs"),
            ],
        }  # fmt: skip
    # kwok's stages compute with times that end in Z; Python must find this package from anywhere.
    environment = {"TZ": "UTC", "PYTHONPATH": str(PROJECT_ROOT), **_no_proxy()}
    return {
        name: Component(
            [state.binaries.get(name, name), *argv] if name != "podlogs" else argv,
            environment,
        )
        for name, argv in commands.items()
    }


def server(state: State) -> str:
    """The API server's address."""
    return f"https://127.0.0.1:{state.ports['kube-apiserver']}"


def write_configuration(state: State, directory: Path) -> None:
    """Write the configuration files that the command lines name, and the certificate-based kubeconfigs."""
    etc = directory / "etc"
    etc.mkdir(parents=True, exist_ok=True)
    write_authentication(state.oidc, directory)
    pki = directory / "pki"
    for user in ("admin", "kwok", "kube-controller-manager", "kube-scheduler"):
        target = directory / "admin.kubeconfig" if user == "admin" else etc / f"{user}.kubeconfig"
        key = {"client-certificate": str(pki / f"{user}.crt"), "client-key": str(pki / f"{user}.key")}
        write_kubeconfig(target, server=server(state), ca_file=pki / "ca.crt", user=key)
    _write_json(
        etc / "kube-scheduler.json",
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {
                "kubeconfig": str(etc / "kube-scheduler.kubeconfig"),
                "qps": 500,
                "burst": 1000,
            },
        },
    )


def write_authentication(oidc: Oidc | None, directory: Path) -> None:
    """Write the API server's authentication configuration, which it reads again by itself when it changes."""
    providers = []
    if oidc:
        providers.append(
            {
                "issuer": {
                    "url": oidc.issuer,
                    "audiences": [oidc.audience],
                    "certificateAuthority": oidc.ca_file.read_text(),
                },
                "claimMappings": {
                    "username": {"claim": "sub", "prefix": "oidc:"},
                    "groups": {"claim": "groups", "prefix": "oidc:"},
                },
            }
        )
    _write_json(
        directory / "etc" / "authentication.json",
        {
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "AuthenticationConfiguration",
            "jwt": providers,
            "anonymous": {
                "enabled": True,
                "conditions": [{"path": path} for path in ("/livez", "/readyz", "/healthz")],
            },
        },
    )


def write_kubeconfig(path: Path, *, server: str, ca_file: Path, user: dict[str, str]) -> None:
    """Write a kubeconfig with one context (JSON, which is YAML). The authority is inlined: the file can be moved."""
    authority = base64.b64encode(ca_file.read_bytes()).decode()
    _write_json(
        path,
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": "devcluster", "cluster": {"server": server, "certificate-authority-data": authority}}
            ],
            "users": [{"name": "user", "user": user}],
            "contexts": [{"name": "devcluster", "context": {"cluster": "devcluster", "user": "user"}}],
            "current-context": "devcluster",
        },
    )


def _no_proxy() -> dict[str, str]:
    """A proxy that the environment names is not for the real node's address, where the API server asks for logs."""
    given = os.environ.get("NO_PROXY") or os.environ.get("no_proxy")
    value = ",".join(filter(None, [given, "127.0.0.0/8", "10.0.0.0/8"]))
    return {"NO_PROXY": value, "no_proxy": value}


def _etcd(state: State, directory: Path) -> list[str]:
    pki, client = directory / "pki", f"https://127.0.0.1:{state.ports['etcd']}"
    peer = f"https://127.0.0.1:{state.ports['etcd-peer']}"
    return [
        f"--name=devcluster-{state.name}",
        f"--data-dir={directory / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        # The port may be another at the next start; a member that is alone never dials it.
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=devcluster-{state.name}={peer}",
        f"--cert-file={pki / 'etcd.crt'}",
        f"--key-file={pki / 'etcd.key'}",
        f"--trusted-ca-file={pki / 'etcd-ca.crt'}",
        "--client-cert-auth",
        f"--peer-cert-file={pki / 'etcd.crt'}",
        f"--peer-key-file={pki / 'etcd.key'}",
        f"--peer-trusted-ca-file={pki / 'etcd-ca.crt'}",
        "--peer-client-cert-auth",
        "--unsafe-no-fsync",  # Data of a development cluster need not survive a power cut.
        "--auto-compaction-retention=30m",
        "--logger=zap",
        "--log-level=warn",
    ]


def _api_server(state: State, directory: Path) -> list[str]:
    pki = directory / "pki"
    return [
        f"--etcd-servers=https://127.0.0.1:{state.ports['etcd']}",
        f"--etcd-cafile={pki / 'etcd-ca.crt'}",
        f"--etcd-certfile={pki / 'etcd-client.crt'}",
        f"--etcd-keyfile={pki / 'etcd-client.key'}",
        "--bind-address=127.0.0.1",
        f"--secure-port={state.ports['kube-apiserver']}",
        # A loopback address as endpoint of the service `kubernetes` is refused every 10 s otherwise.
        "--advertise-address=127.0.0.1",
        "--endpoint-reconciler-type=none",
        f"--cert-dir={directory / 'etc'}",
        f"--tls-cert-file={pki / 'kube-apiserver.crt'}",
        f"--tls-private-key-file={pki / 'kube-apiserver.key'}",
        f"--client-ca-file={pki / 'ca.crt'}",
        f"--authentication-config={directory / 'etc' / 'authentication.json'}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={pki / 'service-account.pub'}",
        f"--service-account-signing-key-file={pki / 'service-account.key'}",
        "--service-cluster-ip-range=10.0.0.0/24",
        f"--kubelet-certificate-authority={pki / 'ca.crt'}",
        f"--kubelet-client-certificate={pki / 'kubelet-client.crt'}",
        f"--kubelet-client-key={pki / 'kubelet-client.key'}",
        # Node names do not resolve here.
        "--kubelet-preferred-address-types=InternalIP,Hostname",
        f"--audit-policy-file={HERE / 'audit-policy.yaml'}",
        f"--audit-log-path={directory / 'audit.log'}",
        "--audit-log-maxsize=100",
        "--audit-log-maxbackup=2",
        "--profiling=false",
    ]


def _controller_manager(state: State, directory: Path) -> list[str]:
    pki = directory / "pki"
    return [
        f"--kubeconfig={directory / 'etc' / 'kube-controller-manager.kubeconfig'}",
        "--bind-address=127.0.0.1",
        f"--secure-port={state.ports['kube-controller-manager']}",
        f"--cert-dir={directory / 'etc'}",
        f"--service-account-private-key-file={pki / 'service-account.key'}",
        f"--root-ca-file={pki / 'ca.crt'}",
        "--use-service-account-credentials=true",
        "--leader-elect=false",
        f"--controllers={CONTROLLERS}",
        "--concurrent-job-syncs=10",
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
        "--profiling=false",
    ]


def _scheduler(state: State, directory: Path) -> list[str]:
    return [
        f"--config={directory / 'etc' / 'kube-scheduler.json'}",
        "--bind-address=127.0.0.1",
        f"--secure-port={state.ports['kube-scheduler']}",
        f"--cert-dir={directory / 'etc'}",
    ]


def _kwok(state: State, directory: Path) -> list[str]:
    return [
        f"--kubeconfig={directory / 'etc' / 'kwok.kubeconfig'}",
        f"--config={HERE / 'kwok.yaml'}",
        "--manage-all-nodes=false",
        "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
        "--node-ip=127.0.0.1",
        "--cidr=10.192.0.0/10",  # Apart from the services and the real node.
        # What kwok writes into the nodes: the logs are served by nodelogs, which passes the rest on to kwok.
        f"--node-port={state.ports['nodelogs']}",
        f"--server-address=127.0.0.1:{state.ports['kwok']}",
        # Without leases the nodes become NotReady about every minute.
        "--node-lease-duration-seconds=40",
    ]


def _nodelogs(state: State, directory: Path) -> list[str]:
    pki = directory / "pki"
    return [
        f"--listen=127.0.0.1:{state.ports['nodelogs']}",
        f"--root={directory / 'pod-logs'}",
        f"--tls-cert-file={pki / 'nodelogs.crt'}",
        f"--tls-private-key-file={pki / 'nodelogs.key'}",
        f"--client-ca-file={pki / 'ca.crt'}",
        f"--forward=http://127.0.0.1:{state.ports['kwok']}",
    ]


def _write_json(path: Path, value: dict[str, Any]) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as handle:
        json.dump(value, handle, indent=1)
    temporary.replace(path)
