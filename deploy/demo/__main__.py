"""`python -m deploy.demo run|scenario|kubectl|check|reset`, from the project's root; see the Makefile."""

import argparse
import shlex
import signal
import sys
import threading
from pathlib import Path

from deploy import devcluster, idp
from deploy.demo import check, scenario
from deploy.demo.client import Client, wait_for
from deploy.demo.stack import Stack, StackError, reset, running_at
from deploy.devcluster.state import PROJECT_ROOT, DevClusterError

HOME = PROJECT_ROOT / ".berth" / "demo"
CHECK = PROJECT_ROOT / ".berth" / "check"
SIGN_INS = """\
Sign in with the user name as password:
  alice    developer of Vision       anna    its lead          vera    its viewer
  bob      developer of Language     charlie developer of Robotics
  dana     platform admin            oscar   operator          audrey  auditor
  erin     in no group
"""


def main() -> int:
    """Run one command; 0 when it did what was asked."""
    parser = argparse.ArgumentParser(prog="python -m deploy.demo", description=__doc__)
    parser.add_argument("command", choices=["run", "scenario", "kubectl", "check", "reset"])
    parser.add_argument(
        "--real-node", action="store_true", help="add this machine as a real node (needs root)"
    )
    parser.add_argument("--directory", type=Path, help="where the data lives")
    parser.add_argument("--as", dest="who", default="alice", help="whose ID token kubectl sends")
    parser.add_argument("--arguments", default="auth whoami", help="kubectl's arguments, as one text")
    options = parser.parse_args()
    try:
        return _run_command(options)
    except (StackError, DevClusterError, idp.IdpError, TimeoutError, AssertionError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _run_command(options: argparse.Namespace) -> int:
    home = options.directory or (CHECK if options.command == "check" else HOME)
    if options.command == "run":
        _run(home, real_node=options.real_node)
    elif options.command == "check":
        check.run(home, real_node=options.real_node)
    elif options.command == "scenario":
        url = running_at(home)
        provider = idp.attach(home / "idp")
        scenario.play(*(Client(url, token=provider.mint(name)) for name in ("alice", "bob", "charlie")))
    elif options.command == "kubectl":
        return _kubectl(home, options.who, shlex.split(options.arguments))
    else:
        reset(home)
        print("the demo's data is removed")
    return 0


def _kubectl(home: Path, who: str, arguments: list[str]) -> int:
    cluster = devcluster.attach("dev", directory=home / "cluster")
    if cluster is None:
        raise StackError("the demo's cluster is not up")
    result = cluster.kubectl(*arguments, token=idp.attach(home / "idp").mint(who), check=False)
    print(result.stdout, end="")
    print(result.stderr, end="", file=sys.stderr)
    return result.returncode


def _run(home: Path, *, real_node: bool) -> None:
    over = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: over.set())
    stack = Stack(home, say=lambda text: print(text, flush=True), real_node=real_node)
    try:
        stack.start()
        portal = Client(stack.url)
        wait_for("the portal", lambda: portal.get("/healthz"), seconds=90)
        print(
            f"\nBerth is at {stack.url}\n\n{SIGN_INS}\nIts data and logs are kept in {home}. Ctrl-C ends it.\n"
        )
        while not over.wait(1.0):
            stack.tend()
    finally:
        print("\nstopping", flush=True)
        stack.stop()


if __name__ == "__main__":
    sys.exit(main())
