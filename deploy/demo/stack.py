"""Every process of the product, started, watched and ended; used by the demo, the checks and the end-to-end tests.

A stack is a directory: database, provider, cluster, logs, and `stack.json` with what has to stay the same between
runs. Nothing here imports the product: it is run as its operator would run it.
"""

import contextlib
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from deploy import devcluster, idp
from deploy.demo.client import Client
from deploy.devcluster import processes
from deploy.devcluster.state import PROJECT_ROOT

PARTS = ("web", "worker", "observe", "collect")
PREFERRED_PORT = 8000
STOP_PATIENCE_SECONDS = 15.0
LONGEST_PAUSE_SECONDS = 10.0


class StackError(Exception):
    """The stack cannot do what was asked; the message says why."""


@dataclass
class _Part:
    """A process of the product and when to start it again after it ended."""

    process: subprocess.Popen[bytes]
    started: float
    failures: int = 0
    again_at: float | None = None


class Stack:
    """The product in `directory`. Its processes end with the process that made it, however that ends.

    Start it from the main thread: the kernel ties the life of the parts to the thread that started them.
    """

    def __init__(
        self,
        directory: Path,
        *,
        say: Callable[[str], None] = print,
        settings: dict[str, str] | None = None,
        real_node: bool = False,
    ) -> None:
        self.directory = directory.resolve()
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._say = say
        self._settings = settings or {}
        self._real_node = real_node
        self._parts: dict[str, _Part] = {}
        self._cluster_thread: threading.Thread | None = None
        self.cluster: devcluster.DevCluster | None = None
        self.cluster_error = ""
        kept = self._load()
        self.port = _usable_port(kept.get("port"))
        self._secret = kept.get("secret") or secrets.token_urlsafe(48)
        self.provider: idp.Idp | None = None
        self._save()

    @property
    def url(self) -> str:
        """Where the portal answers."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def idp(self) -> "idp.Idp":
        """The running identity provider."""
        if self.provider is None:
            raise StackError("the identity provider is not started")
        return self.provider

    def start(self) -> None:
        """Provider, database, demo data and the four processes; the cluster comes up meanwhile (`wait_cluster`)."""
        self.start_provider()
        self._cluster_thread = threading.Thread(target=self._bring_up_cluster, daemon=True)
        self._cluster_thread.start()
        self.manage("migrate", "--verbosity=0")
        self.manage("demo", *(["--real-node"] if self._real_node else []))
        if _answers(self.port):
            raise StackError(f"port {self.port} was taken by another program meanwhile; start again")
        self.start_all()
        self._save()

    def start_provider(self) -> None:
        """Start the identity provider, where it was before."""
        self.provider = idp.start(
            self.directory / "idp",
            redirect_uris=[f"{self.url}/oidc/callback/", f"{self.url}/signed-out/"],
        )

    def stop_provider(self) -> None:
        """End the identity provider, if it runs."""
        if self.provider is not None:
            idp.stop(self.provider)
            self.provider = None

    def start_all(self) -> None:
        """Start every process of the product that does not run."""
        for part in PARTS:
            self.start_part(part)

    def client(self, username: str = "") -> Client:
        """Somebody at this portal, with an ID token of `username` when given."""
        return Client(self.url, token=self.idp.mint(username) if username else "")

    def _bring_up_cluster(self) -> None:
        oidc = devcluster.Oidc(self.idp.issuer, self.idp.client_id, Path(self.idp.ca_file))
        try:
            self.cluster = devcluster.up(
                "dev",
                directory=self.directory / "cluster",
                oidc=oidc,
                real_node=self._real_node,
                lives_with=os.getpid(),
                progress=lambda text: self._say(f"cluster: {text}"),
            )
        except (devcluster.DevClusterError, OSError, subprocess.SubprocessError) as error:
            self.cluster_error = str(error)
            self._say(f"cluster: {error}")

    def wait_cluster(self, timeout_seconds: float = 3600.0) -> devcluster.DevCluster:
        """The cluster, once it is up. Raises StackError when it cannot be."""
        assert self._cluster_thread is not None, "call start first"
        self._cluster_thread.join(timeout_seconds)
        if self.cluster is None:
            raise StackError(f"the cluster did not come up: {self.cluster_error or 'it takes too long'}")
        return self.cluster

    def environment(self, process: str = "") -> dict[str, str]:
        """The settings of one process, as an operator would give them; each has its own identity in the cluster."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith("BERTH_")}
        settings = {
            "BERTH_PROCESS": process,
            "BERTH_SECRET_KEY": self._secret,
            "BERTH_EXTERNAL_URL": self.url,
            "BERTH_DATABASE_URL": f"sqlite://{self.directory / 'berth.sqlite3'}",
            "BERTH_OIDC_ISSUER": self.idp.issuer,
            "BERTH_OIDC_CA_FILE": str(self.idp.ca_file),
            "BERTH_OIDC_CLIENT_ID": self.idp.client_id,
            "BERTH_OIDC_CLIENT_SECRET": self.idp.client_secret or "",
            "DJANGO_SETTINGS_MODULE": "portal.settings",
            "PYTHONUNBUFFERED": "1",
        }
        if process in ("worker", "observe", "collect"):
            settings["BERTH_KUBECONFIG"] = str(self.directory / "cluster" / f"{process}.kubeconfig")
        return clean | settings | self._settings

    def manage(self, *argv: str) -> str:
        """Run one management command to its end; its output. Raises StackError with its last words."""
        result = subprocess.run(
            [sys.executable, "manage.py", *argv],
            cwd=PROJECT_ROOT,
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        if result.returncode:
            raise StackError(f"manage.py {argv[0]}: {(result.stderr or result.stdout).strip()[-2000:]}")
        return result.stdout

    def start_part(self, part: str) -> None:
        """Start one process of the product, unless it runs."""
        if part in self._parts and self._parts[part].process.poll() is None:
            return
        failures = self._parts[part].failures if part in self._parts else 0
        with self.log_file(part).open("ab") as log:
            process = subprocess.Popen(
                # The kernel ends the part when we end, whatever ends us (setpriv is in Debian's util-linux).
                ["setpriv", "--pdeathsig", "TERM", *self._command(part)],
                cwd=PROJECT_ROOT,
                env=self.environment(part),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._parts[part] = _Part(process, time.monotonic(), failures)

    def _command(self, part: str) -> list[str]:
        if part != "web":
            return [sys.executable, "manage.py", part]
        return [
            *(sys.executable, "-m", "uvicorn", "portal.asgi:application"),
            *("--host", "127.0.0.1", "--port", str(self.port)),
            *("--timeout-graceful-shutdown", "5", "--no-access-log", "--log-level", "warning"),
        ]

    def log_file(self, part: str) -> Path:
        """Where a part's own output goes."""
        folder = self.directory / "logs"
        folder.mkdir(exist_ok=True)
        return folder / f"{part}.log"

    def pid(self, part: str) -> int:
        """The process id of a part that was started."""
        return self._parts[part].process.pid

    def is_running(self, part: str) -> bool:
        """Whether a part's process runs."""
        return part in self._parts and self._parts[part].process.poll() is None

    def kill_part(self, part: str) -> None:
        """End a part at once, as a crash would."""
        self._parts[part].process.kill()
        self._parts[part].process.wait()

    def tend(self) -> None:
        """Start again what has ended, with growing pauses while it keeps ending; call it about once a second."""
        if self.provider is not None and not processes.is_running(self.provider.process):
            self._say("the identity provider ended; it is started again")
            with contextlib.suppress(idp.IdpError):  # tried again the next time
                self.start_provider()
        now = time.monotonic()
        for name, part in list(self._parts.items()):
            code = part.process.poll()
            if code is None:
                if part.failures and now - part.started > 30:
                    part.failures = 0
                continue
            if part.again_at is None:
                part.failures += 1
                part.again_at = now + min(0.5 * 2**part.failures, LONGEST_PAUSE_SECONDS) - 1.0
                self._say(f"{name} ended ({code}); it is started again. Its log: {self.log_file(name)}")
            if now >= part.again_at:
                self.start_part(name)

    def stop(self) -> None:
        """End everything, the portal's processes first; the data stays."""
        for part in self._parts.values():
            with contextlib.suppress(ProcessLookupError):
                part.process.terminate()
        deadline = time.monotonic() + STOP_PATIENCE_SECONDS
        for part in self._parts.values():
            try:
                part.process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                part.process.kill()
                part.process.wait()
        self._parts = {}
        try:
            devcluster.down("dev", directory=self.directory / "cluster", progress=lambda _text: None)
        finally:
            self.stop_provider()

    def _load(self) -> dict[str, str]:
        try:
            found = json.loads((self.directory / "stack.json").read_text())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def _save(self) -> None:
        path = self.directory / "stack.json"
        path.touch(mode=0o600)
        path.write_text(json.dumps({"port": str(self.port), "secret": self._secret, "pid": os.getpid()}))


def reset(directory: Path) -> None:
    """Remove a stack's data. Raises StackError while another process runs it."""
    with contextlib.suppress(OSError, ValueError, KeyError):
        pid = int(json.loads((directory / "stack.json").read_text())["pid"])
        if pid != os.getpid() and b"deploy.demo" in Path(f"/proc/{pid}/cmdline").read_bytes():
            raise StackError("the demo is running; end it with Ctrl-C first")
    devcluster.down("dev", directory=directory / "cluster", purge=True, progress=lambda _text: None)
    shutil.rmtree(directory, ignore_errors=True)


def running_at(directory: Path) -> str:
    """The address of the demo that runs in `directory`. Raises StackError when none does."""
    try:
        port = int(json.loads((directory / "stack.json").read_text())["port"])
        with socket.create_connection(("127.0.0.1", port), timeout=2):
            return f"http://127.0.0.1:{port}"
    except (OSError, ValueError, KeyError) as error:
        raise StackError("the demo is not running; start it with `make demo`") from error


def _answers(port: int) -> bool:
    """Whether somebody listens there."""
    with socket.socket() as caller:
        caller.settimeout(2)
        return caller.connect_ex(("127.0.0.1", port)) == 0


def _usable_port(kept: str | None) -> int:
    """The port of the last time or the preferred one when it is free, else any."""
    for port in (int(kept) if kept else PREFERRED_PORT, 0):
        with socket.socket() as listener, contextlib.suppress(OSError):
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", port))
            return int(listener.getsockname()[1])
    raise StackError("there is no free port on the loopback address")
