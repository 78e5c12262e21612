"""django-q2's broker on our database, woken by what is written instead of by a timer; named in settings.Q_CLUSTER.

PostgreSQL: LISTEN/NOTIFY, and SKIP LOCKED so that several clusters do not fight over one row. SQLite: a look at
`PRAGMA data_version`, which changes when another connection has committed. A bell that rings while the same bell is
still waiting is not written twice.
"""

import logging
import os
import signal
import time
from datetime import timedelta
from typing import Any

from django.db import Error, connection, transaction
from django.utils import timezone
from django_q.brokers.orm import ORM
from django_q.conf import Conf
from django_q.models import OrmQ

log = logging.getLogger(__name__)
CHANNEL = "berth_bell"
LONGEST_WAIT_SECONDS = 1.0
LOOK_EVERY_SECONDS = 0.02


class Broker(ORM):  # type: ignore[misc]  # the library has no types
    """Tasks as rows; see the module."""

    _data_version: int | None = None
    _is_listening = False

    def enqueue(self, task: str) -> Any:
        """Write the task in the caller's transaction and wake a waiting cluster."""
        pk = super().enqueue(task)
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute(f"NOTIFY {CHANNEL}")
        return pk

    def dequeue(self) -> list[tuple[int, str]] | None:
        """The next tasks, or None after waiting a little. Never raises for a database that is busy or away."""
        _end_with_supervisor()
        try:
            found = self._take()
            if not found:
                self._wait()
            return found or None
        except Error:
            # The library would sleep ten seconds and end the process over one locked database.
            log.exception("the queue cannot be read; trying again")
            connection.close()
            self._is_listening = False
            time.sleep(0.5)
            return None

    def _take(self) -> list[tuple[int, str]]:
        now = timezone.now()
        waiting = OrmQ.objects.filter(key=self.list_key, lock__lte=now).order_by("id")
        if connection.vendor == "sqlite" and not waiting.exists():
            return []  # without taking the write lock
        with transaction.atomic():
            rows = (
                list(waiting.select_for_update(skip_locked=True)[: Conf.BULK])
                if (connection.vendor == "postgresql")
                else list(waiting[: Conf.BULK])
            )
            later = now + timedelta(seconds=Conf.RETRY)
            OrmQ.objects.filter(pk__in=[row.pk for row in rows]).update(lock=later)
        return [(row.pk, row.payload) for row in rows]

    def _wait(self) -> None:
        if connection.vendor == "postgresql":
            self._wait_for_notify()
        else:
            self._wait_for_commit()

    def _wait_for_notify(self) -> None:
        connection.ensure_connection()
        raw: Any = connection.connection
        if not self._is_listening:
            raw.execute(f"LISTEN {CHANNEL}")
            self._is_listening = True
            return  # look once more: a bell may have rung before we listened
        for _notice in raw.notifies(timeout=LONGEST_WAIT_SECONDS, stop_after=1):
            pass

    def _wait_for_commit(self) -> None:
        deadline = time.monotonic() + LONGEST_WAIT_SECONDS
        while time.monotonic() < deadline:
            with connection.cursor() as cursor:
                version = cursor.execute("PRAGMA data_version").fetchone()[0]
            if version != self._data_version:
                self._data_version = version
                return
            time.sleep(LOOK_EVERY_SECONDS)


def _end_with_supervisor() -> None:
    """A cluster whose supervisor was killed stops in order: the next supervisor starts one of its own."""
    supervisor = os.environ.get("QCLUSTER_SUPERVISOR", "")
    if supervisor and not os.path.exists(f"/proc/{supervisor}"):
        os.kill(os.getpgrp(), signal.SIGTERM)  # the cluster's first process leads the group
        time.sleep(1)
