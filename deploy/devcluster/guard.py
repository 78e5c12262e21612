"""Takes an instance down when another process ends: `python -m deploy.devcluster.guard PID NAME DIRECTORY`.

Started by cluster.py for `lives_with`, so that no cluster outlives the test run that made it, even after SIGKILL.
"""

import os
import select
import sys
from pathlib import Path

from deploy.devcluster.cluster import down


def main() -> None:
    """Wait for the process, then take the instance down."""
    pid, name, directory = int(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        pass
    else:
        select.select([descriptor], [], [])
    down(name, directory=directory)


if __name__ == "__main__":
    main()
