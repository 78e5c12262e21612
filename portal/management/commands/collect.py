"""`manage.py collect`: follows the output of every container into the archive. Any number may run."""

import os
import signal
import socket
import threading
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from jobs.logs import collector
from portal.kube.client import Cluster
from portal.kube.errors import ClusterError


class Command(BaseCommand):
    """See the module."""

    help = "Collect container logs."

    def handle(self, *args: Any, **options: Any) -> None:
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        while not stop.is_set():
            try:
                cluster = Cluster.connect(settings.BERTH_KUBECONFIG, connections=collector.MAX_READERS + 16)
            except ClusterError:
                stop.wait(1.0)  # not there yet
                continue
            collector.run(cluster, f"{socket.gethostname()}-{os.getpid()}", stop)
