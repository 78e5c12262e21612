"""`manage.py worker`: runs tasks, and keeps whoever runs them alive."""

import signal
import threading
from typing import Any

from django.core.management.base import BaseCommand

from portal import supervisor

SWEEPS = ("tenants.tasks.sweep", "jobs.tasks.sweep", "portal.supervisor.prune_changes")


class Command(BaseCommand):
    """See the module."""

    help = "Run background tasks: every write to the cluster is one."

    def handle(self, *args: Any, **options: Any) -> None:
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        supervisor.run(stop, sweeps=SWEEPS)
