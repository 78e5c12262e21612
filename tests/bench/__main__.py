"""`python -m tests.bench`: see the package. Ends with 0 even when an aim is missed; the table says so."""

import argparse
import importlib
import json
import os
import signal
import socket
import sys
import time
from pathlib import Path
from subprocess import SubprocessError
from typing import Any

import django

from deploy.demo.client import RefusedError, wait_for
from deploy.demo.stack import Stack, StackError, reset
from deploy.devcluster.api import ApiError
from deploy.devcluster.state import PROJECT_ROOT
from tests.bench.rows import Row, as_json, table

# In this order: the checks of tenancy want a cluster in which nothing else happens.
PARTS = ("tenancy", "submit", "logs")
# What ends a part: the others still run. OSError and SubprocessError include lost connections and time-outs.
CANNOT_RUN = (StackError, RefusedError, ApiError, OSError, SubprocessError, RuntimeError, AssertionError)


def main() -> int:
    """Run the parts that were asked for; 0 when all of them could be run."""
    options = _options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the processes below are ended too
    begun = time.monotonic()
    directory = Path("/tmp", f"berth-bench-{os.getpid()}")  # short: the paths of sockets are limited
    _choose_port(directory)
    stack = Stack(directory, say=_say)
    rows: list[Row] = []
    failed: list[str] = []
    try:
        _start(stack)
        for part in options.parts:
            try:
                rows += _run(part, stack, options)
            except CANNOT_RUN as error:
                failed.append(f"{part} could not be run: {error}")
    finally:
        stack.stop()
    seconds = time.monotonic() - begun
    _write(options.output, rows, seconds=seconds, failed=failed)
    print(f"\n{table(rows)}\n\n{seconds:.0f} s; every sample is in {options.output}")
    for text in failed:
        print(text, file=sys.stderr)
    if not failed:
        reset(directory)  # otherwise the logs in it say why
    return 1 if failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--teams", type=int, default=100, help="teams of each round (default 100)")
    parser.add_argument("--rounds", type=int, default=3, help="repetitions of reconcile (default 3)")
    parser.add_argument("--samples", type=int, default=20, help="submissions each way (default 20)")
    parser.add_argument("--lines", type=int, default=300, help="log lines to compare (default 300)")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="only these parts")
    parser.add_argument("--output", type=Path, default=PROJECT_ROOT / ".berth" / "bench.json")
    return parser.parse_args()


def _choose_port(directory: Path) -> None:
    """Any free port: at the usual one a demo that starts meanwhile would answer in our place."""
    directory.mkdir(mode=0o700)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        (directory / "stack.json").write_text(json.dumps({"port": str(listener.getsockname()[1])}))


def _start(stack: Stack) -> None:
    """The product and its cluster, and this process as another client of the product's database."""
    stack.start()
    stack.wait_cluster()
    wait_for("the portal", lambda: stack.client().get("/healthz"))
    os.environ.update(stack.environment())
    django.setup()


def _run(part: str, stack: Stack, options: argparse.Namespace) -> list[Row]:
    # Models can be imported only now that Django knows which database.
    module: Any = importlib.import_module(f"tests.bench.{part}")
    importlib.import_module("tests.bench.ready").wait_ready()
    chosen: dict[str, dict[str, Any]] = {
        "tenancy": {"teams": options.teams, "rounds": options.rounds},
        "submit": {"samples": options.samples},
        "logs": {"lines": options.lines},
    }
    rows: list[Row] = module.rows(stack, say=_say, **chosen[part])
    return rows


def _write(path: Path, rows: list[Row], *, seconds: float, failed: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    found = {"seconds": seconds, "processors": os.cpu_count(), "failed": failed, "rows": as_json(rows)}
    path.write_text(json.dumps(found, indent=1))


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
