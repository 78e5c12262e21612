"""News for open pages: `announce` writes that a topic changed, `stream` tells it to one browser as server-sent events.

One thread per web process tails the table and hands each piece to the streams that may hear it. A page that misses
something (overflow, reconnect) is told to look at everything once.
"""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection
from dataclasses import dataclass, field

from asgiref.sync import sync_to_async
from django.db import Error, connection
from django.utils import timezone

from portal.models import Change

log = logging.getLogger(__name__)
LOOK_EVERY_SECONDS = 0.15
QUIET_SECONDS = 15.0  # a comment keeps proxies from closing a silent stream
STREAM_SECONDS = 600.0  # then the browser connects again
RIGHTS_SECONDS = 10.0
BACKLOG = 200


def announce(topic: str, *, team_id: int | None = None) -> None:
    """Tell open pages, when the transaction commits, that `topic` changed; with `team_id` only those who may see it."""
    Change.objects.create(topic=topic, team_id=team_id, at=timezone.now())


@dataclass(eq=False)
class Listener:
    """One open page: its topics, and whose news it may hear (None for everybody's)."""

    topics: frozenset[str]
    team_ids: frozenset[int] | None
    loop: asyncio.AbstractEventLoop
    queue: "asyncio.Queue[str]" = field(default_factory=lambda: asyncio.Queue(BACKLOG))

    def hears(self, topic: str, team_id: int | None) -> bool:
        """Whether this page wants to and may hear the news."""
        return topic in self.topics and (team_id is None or self.team_ids is None or team_id in self.team_ids)

    def put(self, topic: str) -> None:
        """Hand over from the hub's thread; a full backlog becomes one `resync`."""
        with contextlib.suppress(RuntimeError):  # the loop is closing
            self.loop.call_soon_threadsafe(self._put, topic)

    def _put(self, topic: str) -> None:
        if self.queue.full():
            while not self.queue.empty():
                self.queue.get_nowait()
            topic = ""
        self.queue.put_nowait(topic)


class Hub:
    """Tails the changes for all streams of this process; its thread starts with the first of them."""

    def __init__(self) -> None:
        self._listeners: set[Listener] = set()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def add(self, listener: Listener) -> None:
        """From now on `listener` hears news."""
        with self._lock:
            self._listeners.add(listener)
            if self._thread is None:
                self._thread = threading.Thread(target=self._tail, name="live-hub", daemon=True)
                self._thread.start()

    def remove(self, listener: Listener) -> None:
        """The page is gone."""
        with self._lock:
            self._listeners.discard(listener)

    def _tail(self) -> None:
        last: int | None = None
        while True:
            try:
                newest = Change.objects.order_by("-id").values_list("id", flat=True).first() or 0
                if last is None or newest < last:
                    last = newest
                if newest > last:
                    # Rows of transactions that commit late may have smaller ids; the page's own slow poll heals that.
                    self._tell([*Change.objects.filter(id__gt=last).values_list("topic", "team_id")])
                    last = newest
            except Error:
                log.exception("news cannot be read; trying again")
                connection.close()
                time.sleep(1)
            time.sleep(LOOK_EVERY_SECONDS)

    def _tell(self, news: list[tuple[str, int | None]]) -> None:
        with self._lock:
            listeners = [*self._listeners]
        for topic, team_id in dict.fromkeys(news):
            for listener in listeners:
                if listener.hears(topic, team_id):
                    listener.put(topic)


hub = Hub()


async def while_allowed(
    events: AsyncGenerator[str, None], is_allowed: Callable[[], bool], *, every: float = RIGHTS_SECONDS
) -> AsyncIterator[str]:
    """A long answer for as long as its reader may have it; `is_allowed` is asked anew every so many seconds.

    Then it ends, and the browser, which connects again, is told why. `events` must not be silent for longer than
    that: a quiet stream says so now and then.
    """
    asked = time.monotonic()
    async with contextlib.aclosing(events):
        async for event in events:
            if time.monotonic() - asked >= every:
                if not await sync_to_async(_ask)(is_allowed):
                    return
                asked = time.monotonic()
            yield event


def _ask(is_allowed: Callable[[], bool]) -> bool:
    try:
        return is_allowed()
    finally:
        connection.close()


async def signed_out() -> AsyncIterator[str]:
    """The whole stream for somebody whose session is over: the page says so and asks no further."""
    yield "event: signed-out\ndata: \n\n"


def give_back_connection() -> None:
    """Close this thread's database connection. A function: `connection` means the one of the thread that asks."""
    connection.close()


async def stream(topics: Collection[str], team_ids: Collection[int] | None) -> AsyncGenerator[str, None]:
    """Server-sent events for one page: `change` with the topic, `resync` when all may have changed."""
    listener = Listener(
        frozenset(topics), None if team_ids is None else frozenset(team_ids), asyncio.get_running_loop()
    )
    hub.add(listener)
    try:
        yield "retry: 1000\n: connected\n\n"
        end = time.monotonic() + STREAM_SECONDS
        while time.monotonic() < end:
            try:
                topic = await asyncio.wait_for(listener.queue.get(), QUIET_SECONDS)
            except TimeoutError:
                yield ": quiet\n\n"
                continue
            yield f"event: change\ndata: {topic}\n\n" if topic else "event: resync\ndata: all\n\n"
    finally:
        hub.remove(listener)
