"""The real node's images, made from this machine's busybox without a registry; used by realnode.py.

An archive as `docker save` writes it (Docker image specification 1.2, "Combined image JSON and filesystem changeset
format"), which containerd imports. Both images share one layer.
"""

import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

from deploy.devcluster.state import DevClusterError

TRAIN = "berth/train:demo"
PAUSE = "berth/pause:demo"
_FILES = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
}
_FOLDERS = {"bin": 0o755, "etc": 0o755, "root": 0o700, "tmp": 0o1777, "workspace": 0o1777, "outputs": 0o1777}


def find_busybox() -> Path | None:
    """A busybox that needs no other file (Debian: busybox-static), or None."""
    for candidate in (shutil.which("busybox"), "/bin/busybox", "/usr/bin/busybox"):
        # A program that is linked dynamically names its loader (…/ld-linux… or …/ld-musl…) near the start.
        if candidate and os.access(candidate, os.X_OK) and b"/ld-" not in _head(Path(candidate)):
            return Path(candidate)
    return None


def write_archive(path: Path) -> None:
    """Write the archive with both images. The same busybox makes the same bytes. Raises DevClusterError."""
    busybox = find_busybox()
    if busybox is None:
        raise DevClusterError("busybox: install the Debian package busybox-static")
    layer = _layer(busybox)
    configurations = {
        TRAIN: _configuration(layer, {"Cmd": ["sh"], "WorkingDir": "/workspace"}),
        PAUSE: _configuration(layer, {"Entrypoint": ["sleep", "infinity"]}),
    }
    manifest = []
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with tarfile.open(temporary, "w") as archive:
        _add(archive, "layer.tar", layer)
        for tag, content in configurations.items():
            name = f"{hashlib.sha256(content).hexdigest()}.json"
            _add(archive, name, content)
            manifest.append({"Config": name, "RepoTags": [tag], "Layers": ["layer.tar"]})
        _add(archive, "manifest.json", json.dumps(manifest).encode())
    temporary.replace(path)


def _head(program: Path) -> bytes:
    with program.open("rb") as handle:
        return handle.read(4096)


def _layer(busybox: Path) -> bytes:
    applets = subprocess.run([busybox, "--list"], capture_output=True, text=True, timeout=15, check=True)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as layer:
        for name, mode in _FOLDERS.items():
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, mode
            layer.addfile(folder)
        _add(layer, "bin/busybox", busybox.read_bytes(), mode=0o755)
        for name in sorted(set(applets.stdout.split()) - {"busybox"}):
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            layer.addfile(link)
        for name, text in _FILES.items():
            _add(layer, name, text.encode())
    return buffer.getvalue()


def _configuration(layer: bytes, config: dict[str, Any]) -> bytes:
    architecture = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
    image = {
        "architecture": architecture,
        "os": "linux",
        "config": {"Env": ["PATH=/bin"], **config},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }
    return json.dumps(image).encode()


def _add(archive: tarfile.TarFile, name: str, content: bytes, *, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    archive.addfile(entry, io.BytesIO(content))
