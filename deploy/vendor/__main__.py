"""`python -m deploy.vendor`: fetch the locked browser assets, write `static/vendor/` and `static/icons.svg`.

The files are committed, so neither an installation nor a test needs npm. `--check` compares the committed
files with `static/vendor/SHA256SUMS` and touches no network.
"""

import argparse
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
STATIC = HERE.parent.parent / "static"
VENDOR = STATIC / "vendor"
SUMS = VENDOR / "SHA256SUMS"
NPM_SECONDS = 300

# Package -> (folder name, files to take). Only what a page loads: no source maps, no ES5 twins, no plug-ins.
ASSETS: dict[str, tuple[str, tuple[str, ...]]] = {
    "@tabler/core": ("tabler", ("dist/css/tabler.min.css",)),
    "htmx.org": ("htmx", ("dist/htmx.min.js",)),
    "uplot": ("uplot", ("dist/uPlot.iife.min.js", "dist/uPlot.min.css")),
}
# Whitenoise's manifest storage follows these comments and fails on maps that are not there.
_SOURCE_MAP = re.compile(rb"\s*(?:/\*[#@]\s*sourceMappingURL=[^*]*\*/|//[#@]\s*sourceMappingURL=\S*)")
_PATHS = re.compile(r"<svg[^>]*>(.*)</svg>", re.DOTALL)
_BACKGROUND = re.compile(r'\s*<path stroke="none" d="M0 0h24v24H0z" fill="none"\s*/>')


def changed_files() -> list[str]:
    """Vendored files that are missing, unlisted or differ from SHA256SUMS; empty when all is as committed."""
    lines = (line.split("  ", 1) for line in SUMS.read_text().splitlines())
    listed = {name: digest for digest, name in lines}
    present = _digests()
    return sorted(name for name in listed.keys() | present.keys() if listed.get(name) != present.get(name))


def _digests() -> dict[str, str]:
    files = [path for path in VENDOR.rglob("*") if path.is_file() and path != SUMS]
    files.append(STATIC / "icons.svg")
    return {
        path.relative_to(STATIC).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files
    }


def _install(folder: Path) -> Path:
    """Run `npm ci` on the committed lock file in `folder`; return its node_modules."""
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, folder / name)
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    subprocess.run(command, cwd=folder, check=True, timeout=NPM_SECONDS)
    return folder / "node_modules"


def _copy(modules: Path) -> None:
    if VENDOR.exists():
        shutil.rmtree(VENDOR)
    for package, (folder, files) in ASSETS.items():
        source = modules / package
        target = VENDOR / folder / str(json.loads((source / "package.json").read_text())["version"])
        target.mkdir(parents=True)
        for name in files:
            cleaned = _SOURCE_MAP.sub(b"", (source / name).read_bytes()).rstrip() + b"\n"
            (target / Path(name).name).write_bytes(cleaned)
        _copy_licence(source, folder, target)


def _copy_licence(source: Path, folder: str, target: Path) -> None:
    """The package's own licence file, or ours from `licences/` where the package ships none."""
    own = HERE / "licences" / f"{folder}.txt"
    shipped = source / "LICENSE"
    shutil.copy(shipped if shipped.exists() else own, target / "LICENSE")


def _write_sprite(modules: Path) -> None:
    """One `<symbol>` per name in icons.txt, drawn in the colour of the text around it."""
    names = sorted({line.strip() for line in (HERE / "icons.txt").read_text().splitlines() if line.strip()})
    symbols = []
    for name in names:
        drawing = modules / "@tabler/icons/icons/outline" / f"{name}.svg"
        if not drawing.exists():
            raise SystemExit(f"icons.txt: there is no outline icon called {name!r}")
        found = _PATHS.search(drawing.read_text())
        paths = " ".join(_BACKGROUND.sub("", found.group(1) if found else "").split())
        symbols.append(f'<symbol id="{name}" viewBox="0 0 24 24">{paths}</symbol>')
    credit = "<!-- Tabler Icons, MIT licence, Copyright (c) 2020-2026 Paweł Kuna -->"
    body = "\n".join(symbols)
    (STATIC / "icons.svg").write_text(f'<svg xmlns="http://www.w3.org/2000/svg">\n{credit}\n{body}\n</svg>\n')


def main() -> int:
    """Entry point; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m deploy.vendor", description=__doc__)
    parser.add_argument("--check", action="store_true", help="only compare the files with SHA256SUMS")
    if parser.parse_args().check:
        changed = changed_files()
        for name in changed:
            print(f"differs from SHA256SUMS: {name}", file=sys.stderr)
        return 1 if changed else 0
    if shutil.which("npm") is None:
        print("npm is needed to fetch the assets; the committed files stay as they are", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        modules = _install(Path(folder))
        _copy(modules)
        _write_sprite(modules)
    SUMS.write_text("".join(f"{digest}  {name}\n" for name, digest in sorted(_digests().items())))
    print(f"wrote {SUMS.relative_to(STATIC.parent)} and the files it lists")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
