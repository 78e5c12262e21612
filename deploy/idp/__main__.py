"""`python -m deploy.idp token USER | groups USER [GROUP …]`: a token for REST and kubectl; move people between groups.

Acts on the provider of the running demo, or on the one that service.py names in the environment.
"""

import os
import sys
from pathlib import Path

import django
from django.core.management import call_command

from deploy.devcluster.state import PROJECT_ROOT
from deploy.idp.service import IdpError, attach

DEMO = PROJECT_ROOT / ".berth" / "demo" / "idp"


def main(argv: list[str]) -> int:
    """Run one command; 0 when it did what was asked."""
    if not argv or argv[0] not in ("token", "groups", "prepare") or len(argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    if "IDP_DIRECTORY" not in os.environ:
        return _on_running(Path(DEMO), argv)
    os.environ["DJANGO_SETTINGS_MODULE"] = "deploy.idp.settings"
    django.setup()
    from deploy.idp import seed, tokens  # noqa: PLC0415 (they need the settings)

    if argv[0] == "prepare":
        call_command("migrate", verbosity=0)
        seed.seed(redirect_uris=argv[1:], client_secret=os.environ["IDP_CLIENT_SECRET"])
    elif not seed.is_known(argv[1]):
        return _unknown(argv[1])
    elif argv[0] == "groups":
        seed.set_groups(argv[1], argv[2:])
    else:
        print(tokens.mint(argv[1]))
    return 0


def _unknown(username: str) -> int:
    print(f"there is nobody called {username!r}", file=sys.stderr)
    return 1


def _on_running(directory: Path, argv: list[str]) -> int:
    try:
        provider = attach(directory)
        if argv[0] == "token":
            print(provider.mint(argv[1]))
        else:
            provider.set_groups(argv[1], argv[2:])
    except IdpError as error:
        print(f"idp: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
