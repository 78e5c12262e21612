"""Start and end the provider, mint ID tokens, change groups; called by the demo and the tests.

It runs in processes of its own: a Django process has one set of settings.
"""

import json
import os
import secrets
import socket
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from deploy.devcluster import certificates, processes
from deploy.devcluster.state import PROJECT_ROOT, Process

START_TIMEOUT_SECONDS = 60.0
COMMAND_TIMEOUT_SECONDS = 60.0


class IdpError(Exception):
    """The provider cannot do what was asked; the message says why."""


@dataclass(frozen=True)
class Idp:
    """A provider: who it says it is, who signs its certificate, and the portal's client."""

    directory: Path
    issuer: str
    ca_file: Path
    client_id: str
    client_secret: str
    process: Process

    def mint(self, username: str) -> str:
        """An ID token for somebody, as after a sign-in."""
        return self._command("token", username).strip()

    def set_groups(self, username: str, groups: Sequence[str]) -> None:
        """Put somebody into exactly these groups; tokens made from now on say so."""
        self._command("groups", username, *groups)

    def _command(self, *argv: str) -> str:
        return _command(self.directory, self.issuer, *argv)


def start(directory: Path, *, redirect_uris: Sequence[str]) -> Idp:
    """Start the provider that lives in `directory`, or take the running one; it ends when our process ends.

    Address, keys and people are kept from the last time. `redirect_uris` are where the portal may be sent back to.
    """
    directory = directory.resolve()
    kept = _load(directory)
    if kept is not None and processes.is_running(kept.process):
        return kept
    _prepare(directory)
    port = _port(kept)
    issuer = f"https://127.0.0.1:{port}"
    client_secret = kept.client_secret if kept else secrets.token_urlsafe(32)
    _command(directory, issuer, "prepare", *redirect_uris, client_secret=client_secret)
    pki = directory / "pki"
    process = processes.start(
        [
            *("/usr/bin/setpriv", "--pdeathsig", "TERM"),
            *(sys.executable, "-m", "uvicorn", "deploy.idp.wsgi:application", "--interface", "wsgi"),
            *("--host", "127.0.0.1", "--port", str(port), "--log-level", "warning", "--lifespan", "off"),
            *("--ssl-keyfile", str(pki / "idp.key"), "--ssl-certfile", str(pki / "idp.crt")),
        ],
        log_file=directory / "idp.log",
        environment=_environment(directory, issuer) | {"PYTHONPATH": str(PROJECT_ROOT)},
    )
    found = Idp(directory, issuer, pki / "ca.crt", "berth-portal", client_secret, process)
    _save(found)
    _wait(found)
    return found


def attach(directory: Path) -> Idp:
    """The provider that runs in `directory`. Raises IdpError when none does."""
    found = _load(directory.resolve())
    if found is None or not processes.is_running(found.process):
        raise IdpError("the identity provider is not running")
    return found


def stop(provider: Idp) -> None:
    """End the provider's process; its data stays."""
    processes.stop(provider.process)


def _prepare(directory: Path) -> None:
    """Keys and certificates that are not there yet."""
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    pki = directory / "pki"
    pki.mkdir(exist_ok=True, mode=0o700)
    if not (pki / "idp.crt").exists():
        certificates.make_authority(pki, "ca")
        certificates.issue(pki, "idp", certificates.Subject("demo provider", hosts=certificates.LOOPBACK))
    if not (directory / "secret").exists():
        _write(directory / "secret", secrets.token_urlsafe(48))
    if not (directory / "signing.key").exists():
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        _write(directory / "signing.key", pem.decode())


def _port(kept: Idp | None) -> int:
    """The last port while it is free, else any free one."""
    wanted = int(kept.issuer.rsplit(":", 1)[1]) if kept else 0
    for port in (wanted, 0):
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(listener.getsockname()[1])
    raise IdpError("there is no free port on the loopback address")


def _environment(directory: Path, issuer: str) -> dict[str, str]:
    return {
        "IDP_DIRECTORY": str(directory),
        "IDP_ISSUER": issuer,
        "DJANGO_SETTINGS_MODULE": "deploy.idp.settings",
    }


def _command(directory: Path, issuer: str, *argv: str, client_secret: str = "") -> str:
    environment = os.environ | _environment(directory, issuer) | {"IDP_CLIENT_SECRET": client_secret}
    result = subprocess.run(
        [sys.executable, "-m", "deploy.idp", *argv],
        cwd=PROJECT_ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=COMMAND_TIMEOUT_SECONDS,
        check=False,
    )
    if result.returncode:
        raise IdpError(f"{argv[0]}: {result.stderr.strip()[-1000:]}")
    return result.stdout


def _wait(provider: Idp) -> None:
    context = ssl.create_default_context(cafile=str(provider.ca_file))
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
    )
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    while True:
        try:
            with opener.open(f"{provider.issuer}/.well-known/openid-configuration", timeout=5):
                return
        except OSError as error:
            if not processes.is_running(provider.process) or time.monotonic() > deadline:
                last = processes.tail(provider.directory / "idp.log")
                raise IdpError(f"the identity provider does not answer ({error}):\n{last}") from error
            time.sleep(0.1)


def _load(directory: Path) -> Idp | None:
    try:
        raw = json.loads((directory / "idp.json").read_text())
    except FileNotFoundError:
        return None
    paths = {name: Path(raw[name]) for name in ("directory", "ca_file")}
    return Idp(**raw | paths | {"process": Process(**raw["process"])})


def _save(provider: Idp) -> None:
    _write(provider.directory / "idp.json", json.dumps(asdict(provider), default=str))


def _write(path: Path, content: str) -> None:
    path.touch(mode=0o600)
    path.write_text(content)
