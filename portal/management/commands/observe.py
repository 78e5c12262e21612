"""`manage.py observe`: watches nodes, pods and jobs and writes down what it sees. One of several leads, by lease."""

import logging
import os
import signal
import socket
import threading
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import Error, close_old_connections, connection
from django.utils import timezone

from jobs import observe
from portal import health, lease
from portal.kube import objects
from portal.kube.client import Cluster
from portal.kube.errors import ClusterError
from portal.kube.informer import Handlers, Informer
from portal.queue import ring

log = logging.getLogger(__name__)
LEASE_SECONDS = 15
LEASE = "observe"
WATCHED: tuple[tuple[tuple[str, str, Any], Callable[..., None], Callable[..., None]], ...] = (
    (("v1", "Node", objects.Node), observe.replace_nodes, observe.change_nodes),
    (("v1", "Pod", objects.Pod), observe.replace_pods, observe.change_pods),
    (("batch/v1", "Job", objects.Job), observe.replace_jobs, observe.change_jobs),
)


class Command(BaseCommand):
    """See the module."""

    help = "Observe the cluster: pods and nodes into the database."

    def handle(self, *args: Any, **options: Any) -> None:
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        holder = f"{socket.gethostname()}-{os.getpid()}"
        while not stop.is_set():
            if _lead(holder):
                _observe_while_leading(holder, stop)
            stop.wait(1.0)
        lease.release(LEASE, holder)


def _lead(holder: str) -> bool:
    try:
        return lease.take(LEASE, holder, now=timezone.now(), seconds=LEASE_SECONDS) is not None
    except Error:
        log.exception("the lease cannot be read; trying again")
        connection.close()
        return False


def _observe_while_leading(holder: str, stop: threading.Event) -> None:
    """Run the informers until the lease is lost or we are to stop."""
    try:
        cluster = Cluster.connect(settings.BERTH_KUBECONFIG)
    except ClusterError as error:
        _failed(str(error))
        stop.wait(1.0)
        return
    over = threading.Event()
    informers: list[Informer[Any]] = [
        Informer(cluster, *what, _handlers(replace, change), over) for what, replace, change in WATCHED
    ]
    for informer in informers:
        informer.start()
    while not stop.wait(LEASE_SECONDS / 5) and _lead(holder):
        pass
    over.set()
    cluster.close()


def _handlers(replace: Callable[..., None], change: Callable[..., None]) -> Handlers[Any]:
    return Handlers(
        replace=lambda items: _stored(replace, items),
        change=lambda changes: _stored(change, changes),
        reached=_reached,
        failed=_failed,
    )


def _stored(write: Callable[..., None], values: Any) -> None:
    close_old_connections()
    write(values, now=timezone.now())


def _reached() -> None:
    if health.beat(health.CLUSTER, now=timezone.now()):
        ring("jobs.tasks.cluster_came_back")
        ring("tenants.tasks.cluster_came_back")


def _failed(error: str) -> None:
    try:
        health.fail(health.CLUSTER, error, now=timezone.now())
    except Error:
        connection.close()
