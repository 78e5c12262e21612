"""The command line: `python -m deploy.devcluster up|down|status|kubeconfig|build`, from the project's root."""

import argparse
import sys
from pathlib import Path

from deploy.devcluster import binaries, cluster
from deploy.devcluster.controlplane import IDENTITIES
from deploy.devcluster.state import DevClusterError, Oidc


def main(argv: list[str] | None = None) -> int:
    """Run one command; 0 when it did what was asked, 1 when not, with the reason on standard error."""
    options = _parser().parse_args(argv)
    try:
        return int(options.run(options))
    except DevClusterError as error:
        print(f"devcluster: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _up(options: argparse.Namespace) -> int:
    oidc = None
    given = (options.oidc_issuer, options.oidc_audience, options.oidc_ca_file)
    if any(given):
        if not all(given):
            raise DevClusterError("--oidc-issuer, --oidc-audience and --oidc-ca-file go together")
        oidc = Oidc(*given)
    cluster.up(
        options.name,
        directory=options.directory,
        oidc=oidc,
        fake_nodes=not options.no_fake_nodes,
        real_node=options.real_node,
        progress=_say,
    )
    return 0


def _down(options: argparse.Namespace) -> int:
    cluster.down(options.name, directory=options.directory, purge=options.purge, progress=_say)
    return 0


def _status(options: argparse.Namespace) -> int:
    found = cluster.status(options.name, directory=options.directory)
    if found is None:
        print(f"cluster {options.name}: there is none")
        return 1
    print(
        f"cluster {found.name}: {'ready' if found.is_ready else 'not ready'}, {found.server}, {found.directory}"
    )
    for part, is_running in found.running.items():
        print(f"  {part}: {'running' if is_running else 'stopped'}")
    print(f"  nodes ready: {len(found.ready_nodes)}")
    return 0 if found.is_ready else 1


def _kubeconfig(options: argparse.Namespace) -> int:
    attached = cluster.attach(options.name, directory=options.directory)
    if attached is None:
        raise DevClusterError(f"cluster {options.name} is not running")
    print(attached.kubeconfig(options.who))
    return 0


def _build(options: argparse.Namespace) -> int:
    paths = binaries.ensure(real_node=True, progress=_say, everything_from_source=options.all)
    for name, path in sorted(paths.items()):
        print(f"{name}: {path}")
    return 0


def _say(message: str) -> None:
    print(message, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m deploy.devcluster", description=cluster.__doc__)
    commands = parser.add_subparsers(required=True, metavar="up|down|status|kubeconfig|build")
    instance = argparse.ArgumentParser(add_help=False)
    instance.add_argument("--name", default="dev", help="which instance (default: dev)")
    instance.add_argument("--directory", type=Path, help="where it lives (default: .berth/devcluster/NAME)")

    up = commands.add_parser("up", parents=[instance], help="start, or whatever does not run of it")
    up.add_argument("--real-node", action="store_true", help="add this machine as a real node (needs root)")
    up.add_argument("--no-fake-nodes", action="store_true", help="no simulated GPU nodes")
    up.add_argument("--oidc-issuer", help="accept ID tokens of this issuer, exactly as in their `iss`")
    up.add_argument("--oidc-audience", help="... for this audience")
    up.add_argument("--oidc-ca-file", type=Path, help="... whose certificate this file signs")
    up.set_defaults(run=_up)

    down = commands.add_parser("down", parents=[instance], help="stop")
    down.add_argument("--purge", action="store_true", help="remove the data too")
    down.set_defaults(run=_down)

    commands.add_parser("status", parents=[instance], help="what runs").set_defaults(run=_status)

    kubeconfig = commands.add_parser("kubeconfig", parents=[instance], help="print the path of a kubeconfig")
    kubeconfig.add_argument("--who", default="admin", choices=["admin", *IDENTITIES])
    kubeconfig.set_defaults(run=_kubeconfig)

    build = commands.add_parser("build", help="build all programs into the cache and print where they are")
    build.add_argument("--all", action="store_true", help="also those that are installed on this machine")
    build.set_defaults(run=_build)
    return parser


if __name__ == "__main__":
    sys.exit(main())
