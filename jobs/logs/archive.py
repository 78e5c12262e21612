"""Stored log lines: append as compressed chunks, read by line number, search. Used by the collector and the log views.

The number of stored lines lives in the stream's row. A chunk is written under the holder's epoch and in the same
transaction as that number, so two readers of one stream can never both append.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import zstandard
from django.db import transaction
from django.db.models import F, Q

from jobs.logs.lines import is_whole, raw_of, stamp_at, stamp_of, text_of
from jobs.models import LogChunk, LogStream
from portal.live import announce

MAX_LINES_AT_ONCE = 2000
MAX_BYTES_AT_ONCE = 4 * 1024 * 1024
SEARCH_LINES = 50_000  # looked through by one request; the browser asks on
SHOWN_CHARACTERS = 64 * 1024  # of one line on a page; the raw download has all of it
LEVEL = 3


@dataclass(frozen=True)
class Line:
    """One line as pages show it: number from 0, stamp, text; `is_piece` when the line goes on in the next one."""

    number: int
    stamp: str
    text: str
    is_piece: bool


def hold(pk: int, holder: str, *, now: datetime, seconds: int) -> int | None:
    """Become the one who reads this stream; the epoch to write under, or None while another one does."""
    free = Q(held_until=None) | Q(held_until__lt=now) | Q(holder=holder)
    done = LogStream.objects.filter(free, pk=pk, is_complete=False).update(
        holder=holder, held_until=now + timedelta(seconds=seconds), epoch=F("epoch") + 1
    )
    if not done:
        return None
    return LogStream.objects.filter(pk=pk, holder=holder).values_list("epoch", flat=True).first()


def keep(pk: int, epoch: int, *, now: datetime, seconds: int) -> bool:
    """Stay the holder; False when somebody else took over."""
    rows = LogStream.objects.filter(pk=pk, epoch=epoch)
    return bool(rows.update(held_until=now + timedelta(seconds=seconds)))


def append(pk: int, epoch: int, records: Sequence[bytes], *, now: datetime, gap: str = "") -> bool:
    """Store records after those that are there; `gap` notes that lines may be missing before them.

    False, and nothing stored, when the epoch is no longer ours.
    """
    if not records:
        return True
    joined = b"\n".join(records)
    stamps = [stamp for record in records if (stamp := stamp_of(record))]
    with transaction.atomic():
        if not LogStream.objects.filter(pk=pk, epoch=epoch).update(epoch=epoch):
            return False
        stream = LogStream.objects.select_related("pod").get(pk=pk)
        last = max([*stamps, stream.last_stamp])
        LogChunk.objects.create(
            stream=stream,
            first_line=stream.lines,
            line_count=len(records),
            first_stamp=min(stamps, default=""),
            last_stamp=max(stamps, default=""),
            raw_bytes=len(joined),
            data=zstandard.ZstdCompressor(level=LEVEL).compress(joined),
            created_at=now,
        )
        gaps = [*stream.gaps, {"line": stream.lines, "note": gap}] if gap else stream.gaps
        LogStream.objects.filter(pk=pk).update(
            lines=F("lines") + len(records),
            stored_bytes=F("stored_bytes") + sum(len(raw_of(record)) for record in records),
            last_stamp=last,
            gaps=gaps,
            failures=0,
            note="",
            is_followed_to_end=False,
        )
        if stream.pod.job_id:
            announce(f"log:{pk}", team_id=stream.pod.team_id)
    return True


def complete(pk: int, epoch: int, *, note: str = "") -> None:
    """The output was read to its end (or can no longer be read, as `note` says)."""
    LogStream.objects.filter(pk=pk, epoch=epoch).update(
        is_complete=True, note=note, holder="", held_until=None, retry_at=None
    )


def let_go(
    pk: int,
    epoch: int,
    *,
    note: str = "",
    retry_at: datetime | None = None,
    failed: bool = False,
    followed_to_end: bool = False,
) -> None:
    """Stop reading for now; `followed_to_end` when the answer ended by itself."""
    changes: dict[str, object] = {"holder": "", "held_until": None, "retry_at": retry_at}
    if failed:
        changes |= {"failures": F("failures") + 1, "note": note}
    if followed_to_end:
        changes["is_followed_to_end"] = True
    LogStream.objects.filter(pk=pk, epoch=epoch).update(**changes)


def records_since(pk: int, since: datetime) -> list[bytes]:
    """Stored records not older than `since`, in order: what a resumed answer will bring again."""
    bound = stamp_at(since)
    chunks = LogChunk.objects.filter(stream_id=pk, last_stamp__gte=bound.decode()).order_by("first_line")
    return [record for chunk in chunks for record in _records(chunk) if record[: len(bound)] >= bound]


def read(stream: LogStream, first: int, count: int) -> list[Line]:
    """Lines `first` … of a stream, at most `count` and not more than fits into one answer."""
    count = min(count, MAX_LINES_AT_ONCE)
    lines: list[Line] = []
    size = 0
    for number, record in _from(stream, first, first + count):
        text = text_of(record).decode("utf-8", "replace")
        lines.append(Line(number, stamp_of(record), text[:SHOWN_CHARACTERS], not is_whole(record)))
        size += len(text)
        if size > MAX_BYTES_AT_ONCE:
            break
    return lines


def search(stream: LogStream, text: str, start: int, *, backwards: bool) -> tuple[list[int], int | None]:
    """The nearest line at or after `start` (or before it) that contains the text, and where to go on; case-blind."""
    needle = text.lower()
    low, high = (max(0, start - SEARCH_LINES + 1), start + 1) if backwards else (start, start + SEARCH_LINES)
    hits = [
        number
        for number, record in _from(stream, low, high)
        if needle in text_of(record).decode("utf-8", "replace").lower()
    ]
    if backwards:
        return hits[-1:], (low - 1 if low > 0 else None)
    return hits[:1], (high if high < stream.lines else None)


def raw(stream: LogStream) -> Iterator[bytes]:
    """The whole output, byte for byte as the program wrote it."""
    for chunk in LogChunk.objects.filter(stream=stream).order_by("first_line").iterator(chunk_size=8):
        yield b"".join(raw_of(record) for record in _records(chunk))


def tail(stream: LogStream, count: int) -> list[str]:
    """The last lines as text, for pages without JavaScript."""
    return [line.text for line in read(stream, max(0, stream.lines - count), count)]


def _from(stream: LogStream, first: int, end: int) -> Iterator[tuple[int, bytes]]:
    chunks = LogChunk.objects.filter(stream=stream, first_line__lt=end).order_by("first_line")
    for chunk in chunks.filter(first_line__gt=first - F("line_count")):
        for offset, record in enumerate(_records(chunk)):
            number = chunk.first_line + offset
            if first <= number < end:
                yield number, record


def _records(chunk: LogChunk) -> list[bytes]:
    return zstandard.ZstdDecompressor().decompress(bytes(chunk.data), chunk.raw_bytes).split(b"\n")
