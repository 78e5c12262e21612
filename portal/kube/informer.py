"""List, then watch, one kind of object for as long as its caller likes; used by `manage.py observe`.

Bookmarks keep the version current. After 410, and on a timer, everything is listed again and handed over whole, so
that a deletion nobody reported is seen. Anything else that goes wrong is retried after a pause with jitter that grows.
"""

import logging
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from portal.kube import objects
from portal.kube.client import Cluster
from portal.kube.errors import ClusterError, ClusterUnreachable, Gone

log = logging.getLogger(__name__)
T = TypeVar("T", objects.Pod, objects.Node, objects.Job)

WATCH_SECONDS = 60  # one request; short enough that a half-open connection is noticed
RELIST_SECONDS = 600.0
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 15.0


@dataclass(frozen=True)
class Change(Generic[T]):
    """One watch event: type ADDED, MODIFIED or DELETED."""

    type: str
    object: T


class _Raw(objects.Struct, frozen=True):
    type: str = ""
    object: msgspec.Raw = msgspec.Raw(b"{}")


class _Status(objects.Struct, frozen=True):
    code: int = 0
    message: str = ""


@dataclass(frozen=True)
class Handlers(Generic[T]):
    """What an informer calls, always from its own thread: the whole list, batches of changes, and how it goes.

    `reached` is called after every answer of the cluster, bookmarks included; `failed` with the reason when there was
    none. An exception of `replace` or `change` is treated as a lost watch: everything is listed again.
    """

    replace: Callable[[Sequence[T]], None]
    change: Callable[[Sequence[Change[T]]], None]
    reached: Callable[[], None]
    failed: Callable[[str], None]


class Informer(threading.Thread, Generic[T]):
    """A thread that keeps its handlers informed about one kind until `stop` is set."""

    def __init__(
        self,
        cluster: Cluster,
        api_version: str,
        kind: str,
        into: type[T],
        handlers: Handlers[T],
        stop: threading.Event,
    ) -> None:
        super().__init__(name=f"informer-{kind.lower()}", daemon=True)
        self._cluster, self._api_version, self._kind = cluster, api_version, kind
        self._into: type[T] = into
        self._handlers: Handlers[T] = handlers
        self._stop_event = stop

    def run(self) -> None:
        """List and watch; never returns before `stop` is set, never raises."""
        pause = FIRST_PAUSE
        while not self._stop_event.is_set():
            try:
                version = self._list()
                pause = FIRST_PAUSE
                self._watch_until_relist(version)
            except Gone:
                log.info("%s: version too old, listing again", self._kind)
            except ClusterError as error:
                self._handlers.failed(str(error))
                self._stop_event.wait(pause * (0.5 + random.random() / 2))  # noqa: S311 (jitter)
                pause = min(pause * 2, LONGEST_PAUSE)
            except Exception:
                log.exception("%s: a handler failed, listing again", self._kind)
                self._handlers.failed("Observations could not be stored.")
                self._stop_event.wait(pause)
                pause = min(pause * 2, LONGEST_PAUSE)

    def _list(self) -> str:
        listing = self._cluster.list(self._api_version, self._kind, type=self._into)
        self._handlers.replace(listing.items)
        self._handlers.reached()
        return listing.resource_version

    def _watch_until_relist(self, version: str) -> None:
        relist_at = time.monotonic() + RELIST_SECONDS * (0.9 + random.random() / 5)  # noqa: S311 (jitter)
        while not self._stop_event.is_set() and time.monotonic() < relist_at:
            try:
                version = self._watch(version)
            except ClusterUnreachable as error:
                # A watch that breaks off is ordinary; only a failing list says that the cluster is away.
                log.debug("%s: watch ended: %s", self._kind, error)
                self._cluster.version()

    def _watch(self, version: str) -> str:
        """One request; returns the version to go on from."""
        with self._cluster.watch(
            self._api_version, self._kind, resource_version=version, seconds=WATCH_SECONDS
        ) as batches:
            self._handlers.reached()
            for lines in batches:
                changes = []
                for line in lines:
                    event = objects.decode(line, _Raw)
                    if event.type == "ERROR":
                        _raise(objects.decode(bytes(event.object), _Status))
                    item = objects.decode(bytes(event.object), self._into)
                    version = item.metadata.resource_version
                    if event.type != "BOOKMARK":
                        changes.append(Change(event.type, item))
                if changes:
                    self._handlers.change(changes)
                self._handlers.reached()
                if self._stop_event.is_set():
                    break
        return version


def _raise(status: _Status) -> None:
    raise Gone(status.message) if status.code == 410 else ClusterUnreachable(status.message)
