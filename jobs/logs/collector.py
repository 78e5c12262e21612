"""Reads the output of every container from the API server and stores it; run by `manage.py collect`.

One thread per stream that runs, a handful for those that ended. Streams are shared between collectors by holding
them; a reader that dies leaves a hold that expires, and the next one resumes from the last stored stamp (RW-062).
"""

import logging
import math
import queue
import threading
import time
from collections.abc import Iterator
from datetime import timedelta

from django.db import Error, close_old_connections, connection
from django.db.models import Q
from django.utils import timezone

from jobs.logs import archive
from jobs.logs.lines import Overlap, Splitter, resume_from
from jobs.logs.streams import ENDED, RUNNING
from jobs.models import LogStream
from portal import health
from portal.kube.client import Cluster
from portal.kube.errors import BadRequest, ClusterError, ClusterUnreachable, NotFound

log = logging.getLogger(__name__)
MAX_READERS = 500
LOOK_EVERY_SECONDS = 0.25
HOLD_SECONDS = 15
FLUSH_SECONDS = 0.2
FLUSH_BYTES = 512 * 1024
LONGEST_WAIT_SECONDS = 1.0  # for a piece; then a look whether to stop or to renew the hold
# A following read wakes up this often, to renew its hold and to see that the run ended.
SILENCE_SECONDS = 20.0
LONGEST_RETRY_SECONDS = 60
GIVE_UP_AFTER = 6
GAP = "Lines may be missing here: the node had rotated its log before it could be read on."
END = object()


def run(cluster: Cluster, holder: str, stop: threading.Event) -> None:
    """Read everything there is to read until `stop` is set."""
    readers: dict[int, threading.Thread] = {}
    while not stop.wait(LOOK_EVERY_SECONDS):
        try:
            readers = {pk: reader for pk, reader in readers.items() if reader.is_alive()}
            for pk in _open_streams(MAX_READERS - len(readers), skip=[*readers]):
                readers[pk] = threading.Thread(target=_read, args=(cluster, pk, holder, stop), daemon=True)
                readers[pk].start()
            health.beat("collect", now=timezone.now())
        except Error:
            log.exception("streams cannot be listed; trying again")
            connection.close()
    for reader in readers.values():
        reader.join(timeout=5)


def _open_streams(room: int, *, skip: list[int]) -> list[int]:
    now = timezone.now()
    due = Q(retry_at=None) | Q(retry_at__lte=now)
    free = Q(held_until=None) | Q(held_until__lt=now)
    rows = LogStream.objects.filter(due, free, is_complete=False, run_state__in=(RUNNING, ENDED))
    return [*rows.exclude(pk__in=skip).order_by("id").values_list("id", flat=True)[: max(0, room)]]


def _read(cluster: Cluster, pk: int, holder: str, stop: threading.Event) -> None:
    """A reader's thread: hold, read until the end or an error, let go."""
    try:
        epoch = archive.hold(pk, holder, now=timezone.now(), seconds=HOLD_SECONDS)
        if epoch is not None:
            _Reader(cluster, pk, epoch, stop).run()
    except Exception:
        log.exception("log stream %s: reading failed; trying again", pk)
    finally:
        connection.close()


class _Reader:
    """Reads one stream once, from where it stands."""

    def __init__(self, cluster: Cluster, pk: int, epoch: int, stop: threading.Event) -> None:
        self._cluster, self._epoch, self._stop = cluster, epoch, stop
        self._stream = LogStream.objects.select_related("pod").get(pk=pk)

    def run(self) -> None:
        """Read; afterwards the stream is complete, or has a time for the next try."""
        stream, pk = self._stream, self._stream.pk
        # Whether the run had ended before we asked: only then is the end of the answer the end of the output.
        had_ended = stream.run_state == ENDED
        try:
            self._copy(follow=not had_ended)
        except NotFound:
            note = "The pod was removed before its output could be read to the end."
            archive.complete(pk, self._epoch, note="" if stream.is_followed_to_end else note)
        except BadRequest as error:  # not started yet, or the node no longer has this run
            self._try_again(str(error), gives_up=had_ended)
        except ClusterUnreachable as error:
            if not self._stop.is_set():
                self._pause_or_fail(str(error), had_ended=had_ended)
        except ClusterError as error:
            self._try_again(str(error), gives_up=False)
        else:
            if had_ended and not self._stop.is_set():
                archive.complete(pk, self._epoch)
            else:
                # Observation will say that the run ended; then the rest is read, if the pod is still there.
                archive.let_go(pk, self._epoch, followed_to_end=not self._stop.is_set())

    def _pause_or_fail(self, error: str, *, had_ended: bool) -> None:
        """Silence on a followed log is ordinary: ask again at once. Anything else waits a little."""
        if not had_ended and "timed out" in error.lower():
            archive.let_go(self._stream.pk, self._epoch)
        else:
            self._try_again(error, gives_up=False)

    def _try_again(self, error: str, *, gives_up: bool) -> None:
        stream = self._stream
        if gives_up and stream.failures >= GIVE_UP_AFTER:
            archive.complete(stream.pk, self._epoch, note=f"The output could not be read: {error}")
            return
        pause = min(2 ** min(stream.failures, 10) * 0.5, LONGEST_RETRY_SECONDS)
        later = timezone.now() + timedelta(seconds=pause)
        archive.let_go(stream.pk, self._epoch, note=error, retry_at=later, failed=True)

    def _copy(self, *, follow: bool) -> None:
        """One answer of the log API into the archive."""
        stream, pod = self._stream, self._stream.pod
        since = resume_from(stream.last_stamp)
        stored = archive.records_since(stream.pk, since) if since is not None else []
        splitter, overlap = Splitter(is_resumed=since is not None), Overlap(stored)
        current = next((c for c in pod.containers if c["name"] == stream.container), {})
        is_previous = stream.restart < int(str(current.get("restarts") or 0))
        with self._cluster.read_log(
            namespace=pod.namespace,
            pod=pod.name,
            container=stream.container,
            since=since,
            follow=follow,
            previous=is_previous,
            read_seconds=SILENCE_SECONDS,
        ) as pieces:
            for records, is_end in self._batches(pieces, splitter):
                fresh = overlap.take(records)
                if is_end and not follow:
                    fresh += overlap.take(splitter.finish())
                if fresh:
                    gap = GAP if overlap.is_missed else ""
                    overlap.is_missed = False
                    self._store(fresh, gap)
                if self._stop.is_set():
                    return

    def _store(self, records: list[bytes], gap: str) -> None:
        if not archive.append(self._stream.pk, self._epoch, records, now=timezone.now(), gap=gap):
            raise _TakenOverError

    def _batches(self, pieces: Iterator[bytes], splitter: Splitter) -> Iterator[tuple[list[bytes], bool]]:
        """Records gathered for a moment, so that a talkative program costs few transactions; after a pause, at once.

        The pieces are read by a thread of their own: nothing else can end a wait for the next one.
        """
        arrived: queue.Queue[object] = queue.Queue(maxsize=64)
        threading.Thread(target=_pump, args=(pieces, arrived), daemon=True).start()
        kept, flushed = time.monotonic(), -math.inf
        records: list[bytes] = []
        size = 0
        while True:
            now = time.monotonic()
            if now - kept > HOLD_SECONDS / 3:
                close_old_connections()
                if not archive.keep(self._stream.pk, self._epoch, now=timezone.now(), seconds=HOLD_SECONDS):
                    raise _TakenOverError
                kept = now
            wait = max(0.01, flushed + FLUSH_SECONDS - now) if records else LONGEST_WAIT_SECONDS
            try:
                piece = arrived.get(timeout=wait)
            except queue.Empty:
                piece = b""
            if isinstance(piece, Exception):
                if records:
                    yield records, False
                raise piece
            if isinstance(piece, bytes) and piece:
                records += splitter.feed(piece)
                size += len(piece)
            is_time = size > FLUSH_BYTES or time.monotonic() - flushed > FLUSH_SECONDS
            if piece is END or (records and is_time):
                yield records, piece is END
                records, size, flushed = [], 0, time.monotonic()
            if piece is END or self._stop.is_set():
                return


class _TakenOverError(Exception):
    """Another collector reads this stream now."""


def _pump(pieces: Iterator[bytes], arrived: "queue.Queue[object]") -> None:
    try:
        for piece in pieces:
            arrived.put(piece)
        arrived.put(END)
    except Exception as error:  # handed on to the reader, which knows what to do with it
        arrived.put(error)
