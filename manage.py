#!/usr/bin/env python
"""Django's command line."""

import os
import sys

from django.core.management import execute_from_command_line

from portal.env import EnvironmentErrors

PROCESSES = ("worker", "observe", "collect")


def main() -> None:
    """Run a command; a wrong setting ends it with its name instead of a traceback."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    if len(sys.argv) > 1 and sys.argv[1] in PROCESSES:
        os.environ.setdefault("BERTH_PROCESS", sys.argv[1])
    try:
        execute_from_command_line(sys.argv)
    except EnvironmentErrors as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
