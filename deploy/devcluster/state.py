"""What an instance remembers between `up` and `down`: ports, processes, options, in `state.json`; used by all modules.

An instance is a directory. Its lock keeps two `up` or `down` from working on it at once.
"""

import dataclasses
import fcntl
import hashlib
import json
import os
import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROJECT_ROOT = Path(__file__).resolve().parents[2]
# Sockets and mounts of the real nodes: a socket's path has at most 107 characters (Linux unix(7)).
RUN = Path("/run/berth")
PORT_NAMES = (
    "etcd",
    "etcd-peer",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kwok",
    "nodelogs",
    "kubelet",
    "kubelet-health",
)


class DevClusterError(Exception):
    """The development cluster cannot do what was asked; the message says why and what to do."""


@dataclass(frozen=True)
class Oidc:
    """An identity provider whose ID tokens the API server accepts.

    The user name is the claim `sub`, the groups are the claim `groups`, both behind the prefix `oidc:`.
    `issuer` is the exact `iss` of the tokens (https, no trailing slash); `ca_file` signs the provider's certificate.
    """

    issuer: str
    audience: str
    ca_file: Path


@dataclass(frozen=True)
class Process:
    """A process we started. `started` is its start time in clock ticks since boot: a pid alone may be reused."""

    pid: int
    started: int


@dataclass
class State:
    """The contents of state.json. `subnet` numbers the real node's bridge network (10.`subnet`.0.0/24)."""

    name: str
    ports: dict[str, int]
    processes: dict[str, Process] = field(default_factory=dict)
    oidc: Oidc | None = None
    fake_nodes: bool = True
    real_node: bool = False
    subnet: int | None = None
    binaries: dict[str, str] = field(default_factory=dict)

    def save(self, directory: Path) -> None:
        """Write state.json in one step, so that a reader never sees half of it."""
        text = json.dumps(dataclasses.asdict(self), indent=1, default=str)
        temporary = directory / f"state.json.{os.getpid()}"
        temporary.write_text(text)
        temporary.replace(directory / "state.json")


def default_directory(name: str) -> Path:
    """Where the instance `name` lives unless told otherwise. Raises DevClusterError for a name unfit for a path."""
    if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?", name):
        raise DevClusterError(f"name: {name!r} must be 1 to 40 lower-case letters, digits and hyphens")
    return PROJECT_ROOT / ".berth" / "devcluster" / name


def run_name(directory: Path) -> str:
    """A short name for the instance in `directory`, no other instance's: of its folder in RUN, its control group."""
    return f"berth-{hashlib.sha256(str(directory).encode()).hexdigest()[:10]}"


def load(directory: Path) -> State | None:
    """Read state.json, or None when there is no such instance."""
    try:
        raw: dict[str, Any] = json.loads((directory / "state.json").read_text())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise DevClusterError(
            f"{directory / 'state.json'} is damaged ({error}); remove the directory"
        ) from error
    raw["processes"] = {name: Process(**process) for name, process in raw["processes"].items()}
    if raw["oidc"]:
        raw["oidc"] = Oidc(raw["oidc"]["issuer"], raw["oidc"]["audience"], Path(raw["oidc"]["ca_file"]))
    return State(**raw)


def free_ports() -> dict[str, int]:
    """A free loopback port for each part; all are held open until the last is known, so no two are equal."""
    with ExitStack() as stack:
        ports = {}
        for name in PORT_NAMES:
            listener = stack.enter_context(socket.socket())
            listener.bind(("127.0.0.1", 0))
            ports[name] = int(listener.getsockname()[1])
        return ports


def are_free(ports: dict[str, int]) -> bool:
    """Whether every one of `ports` can be bound on loopback now."""
    for port in ports.values():
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind(("127.0.0.1", port))
            except OSError:
                return False
    return True


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on the file `path`; waits for its holder, and ends with the process."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
