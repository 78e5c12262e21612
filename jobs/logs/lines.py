"""A container's output, from the bytes of a log answer to records that can be stored (pure).

Used by the collector's readers. The log API is asked with `timestamps=true`, so each line comes as
`<stamp> <text>\\n`. A *record* is one stored line in canonical bytes:

    30 bytes   stamp, UTC, always nine digits: 2026-01-01T12:00:05.100000000Z
    1 byte     b" ": the program ended this line with a line feed; b"+": it did not (a piece, or the last words)
    the rest   what the program wrote, never a line feed

Records compare as bytes in the order of their stamps, and two records are equal exactly when stamp, text and
ending are: that is what makes overlap removal after a reconnect (`Overlap`) a comparison of lists.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

STAMP_BYTES = 30
NO_STAMP = b"0001-01-01T00:00:00.000000000Z"  # for a line that came without one, before any that had one
WHOLE, PIECE = b" ", b"+"

# The container runtime stores a longer line in pieces of this size (CRI log format, containerd's default).
RUNTIME_PIECE = 16 * 1024
# Longer lines are stored in pieces, so that one endless line cannot take the memory of a process.
LINE_LIMIT = 1024 * 1024
# A progress bar that is redrawn for ever is shown in pieces as it grows, not only after a mebibyte.
REDRAW_LIMIT = 256 * 1024
# An inner stamp of an old kubelet (RW-043) is later than the line's own by the time between two pieces.
INNER_STAMP_WINDOW = timedelta(minutes=5)
# stdout and stderr are stamped by two readers on the node: neighbours may stand in the wrong order by moments.
RESUME_MARGIN = timedelta(seconds=1)

_LONGEST_STAMP = 36
_STAMP = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)(?: |\Z)")
_CANONICAL = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z ")


def stamp_of(record: bytes) -> str:
    """The record's time in UTC with nine digits; empty when the line came without one."""
    stamp = record[:STAMP_BYTES]
    return "" if stamp == NO_STAMP else stamp.decode("ascii")


def text_of(record: bytes) -> bytes:
    """What the program wrote, without the line feed."""
    return record[STAMP_BYTES + 1 :]


def is_whole(record: bytes) -> bool:
    """Whether the program ended the line with a line feed after this record."""
    return record[STAMP_BYTES : STAMP_BYTES + 1] == WHOLE


def raw_of(record: bytes) -> bytes:
    """The record's part of the output, byte for byte as the program wrote it."""
    return text_of(record) + (b"\n" if is_whole(record) else b"")


def resume_from(last_stamp: str) -> datetime | None:
    """The `sinceTime` for reading on after a line with this stamp; None for from the beginning.

    A whole second, because the server truncates to seconds (metav1.Time), and from the server's own stamp, never
    from our clock (RW-062). The overlap this brings is removed by `Overlap`.
    """
    if not last_stamp:
        return None
    second = datetime.strptime(last_stamp[:19], "%Y-%m-%dT%H:%M:%S").replace(tzinfo=UTC)
    return second - RESUME_MARGIN


def stamp_at(moment: datetime) -> bytes:
    """The smallest stamp at or after `moment` (whole seconds), for comparing with records."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S").encode() + b".000000000Z"


class Splitter:
    """Cuts one log answer, fed in arbitrary pieces, into records. The result does not depend on the cuts.

    With `is_resumed`, a first line without a stamp is dropped: it is the rest of a long line whose beginning is
    older than the time asked from (the kubelet stamps only the first piece), and was stored whole before.
    """

    def __init__(self, *, is_resumed: bool = False) -> None:
        self._rest = bytearray()
        self._long: _LongLine | None = None
        self._last_stamp = NO_STAMP
        self._drops_fragment = is_resumed

    def feed(self, data: bytes) -> list[bytes]:
        """Take the next bytes of the answer and give the records they complete."""
        last = data.rfind(b"\n")
        if last < 0:
            return self._extend(data)
        records: list[bytes] = []
        start = 0
        if self._long is not None:
            start = data.find(b"\n") + 1
            records += self._long.add(data[: start - 1])
            records += self._long.end(WHOLE)
            self._long = None
        if start <= last:
            whole = bytes(self._rest) + data[start:last]
            self._rest.clear()
            records += self._lines(whole.split(b"\n"))
        return records + self._extend(data[last + 1 :])

    def finish(self) -> list[bytes]:
        """The last words, when the output ended without a line feed. Only for an answer known to be whole."""
        if self._long is not None:
            records = self._long.end(PIECE)
            self._long = None
            return records
        if not self._rest:
            return []
        line = bytes(self._rest)
        self._rest.clear()
        return self._slow(line, PIECE)

    def _lines(self, lines: list[bytes]) -> list[bytes]:
        """Records of complete lines. The usual ones already are records: that path must stay cheap."""
        if max(map(len, lines)) <= RUNTIME_PIECE and all(map(_CANONICAL.match, lines)):
            self._drops_fragment = False
            self._last_stamp = lines[-1][:STAMP_BYTES]
            return lines
        return [record for line in lines for record in self._slow(line, WHOLE)]

    def _slow(self, line: bytes, ending: bytes) -> list[bytes]:
        long_line = self._open(line)
        return [] if long_line is None else long_line.end(ending)

    def _extend(self, data: bytes) -> list[bytes]:
        """Keep the beginning of a line; of a very long one, give what can be given."""
        if self._long is not None:
            return self._long.add(data)
        self._rest += data
        if len(self._rest) <= RUNTIME_PIECE + _LONGEST_STAMP:
            return []
        start = bytes(self._rest)
        self._rest.clear()
        self._long = self._open(start) or _LongLine(NO_STAMP, is_dropped=True)
        return self._long.add(b"")

    def _open(self, line: bytes) -> "_LongLine | None":
        """Begin a line with its stamp; None for a fragment that is to be dropped."""
        drops, self._drops_fragment = self._drops_fragment, False
        found = _STAMP.match(line)
        stamp = None if found is None else _canonical(found)
        if found is None or stamp is None:
            if drops:
                return None
            return _LongLine(self._last_stamp, line)
        self._last_stamp = stamp
        return _LongLine(stamp, line[found.end() :])


class _LongLine:
    """One line as it grows: takes out the stamps old kubelets put between pieces, cuts what has no end."""

    def __init__(self, stamp: bytes, start: bytes = b"", *, is_dropped: bool = False) -> None:
        self._stamp = stamp
        self._is_dropped = is_dropped
        self._raw = bytearray(start)
        self._text = bytearray()
        self._length = 0  # of the line's text so far, cut pieces included
        self._has_inner_stamps = True  # until one piece comes without
        self._is_checked = True  # the boundary at `_length` has been looked at

    def add(self, data: bytes) -> list[bytes]:
        if self._is_dropped:
            return []
        self._raw += data
        self._clean(is_final=False)
        return self._cut()

    def end(self, ending: bytes) -> list[bytes]:
        if self._is_dropped:
            return []
        self._clean(is_final=True)
        return [*self._cut(), self._record(len(self._text), ending)]

    def _clean(self, *, is_final: bool) -> None:
        """Move raw bytes to the text, without a stamp at each 16 KiB boundary (RW-043 b)."""
        while self._raw:
            if not self._is_checked:
                if len(self._raw) < _LONGEST_STAMP and not is_final:
                    return  # too little to tell
                self._drop_inner_stamp()
                self._is_checked = True
                continue
            room = len(self._raw)
            if self._has_inner_stamps:
                room = min(room, RUNTIME_PIECE - self._length % RUNTIME_PIECE)
            self._text += self._raw[:room]
            del self._raw[:room]
            self._length += room
            self._is_checked = not (self._has_inner_stamps and self._length % RUNTIME_PIECE == 0)

    def _drop_inner_stamp(self) -> None:
        found = _STAMP.match(bytes(self._raw[:_LONGEST_STAMP]))
        stamp = None if found is None else _canonical(found)
        if found is None or stamp is None or not _follows(self._stamp, stamp):
            self._has_inner_stamps = False  # not such a kubelet: nothing of this line may be taken out
        else:
            del self._raw[: found.end()]

    def _cut(self) -> list[bytes]:
        """Pieces of a line that outgrew the limits; where they are cut depends on the text alone."""
        pieces = []
        while len(self._text) > REDRAW_LIMIT:
            # The byte after the carriage return is known here, and is no line feed.
            at = self._text.rfind(b"\r", 0, REDRAW_LIMIT - 1) + 1
            if not at and len(self._text) <= LINE_LIMIT:
                break
            pieces.append(self._record(at or _character_start(self._text, LINE_LIMIT), PIECE))
        return pieces

    def _record(self, length: int, ending: bytes) -> bytes:
        record = self._stamp + ending + bytes(self._text[:length])
        del self._text[:length]
        return record


class Overlap:
    """Drops from a resumed answer what is stored already, by stamp, text and position (RW-062).

    `stored` are the stored records not older than the time asked from, in order. The server filters the same
    append-only file by time, line by line, so its answer begins with exactly these, or, when the node has rotated the
    file meanwhile, with a later one of them, or with none.
    """

    def __init__(self, stored: Sequence[bytes]) -> None:
        self._stored = list(stored)
        self._start = 0
        self._next: int | None = None  # position in `stored` of the record that should come now
        self.is_settled = not self._stored
        self.is_missed = False  # nothing of what is stored came again: lines may be missing in between

    def take(self, records: list[bytes]) -> list[bytes]:
        """The records of this part of the answer that are new."""
        if self.is_settled:
            return records
        for index, record in enumerate(records):
            new = self._match(record)
            if self.has_settled():
                return new + records[index + 1 :]
        return []

    def has_settled(self) -> bool:
        """Whether all that still comes is new."""
        return self.is_settled

    def _match(self, record: bytes) -> list[bytes]:
        """Compare one record; what is new is given when that settles where the overlap ends."""
        if self._next is None:
            if record not in self._stored:
                self.is_settled = self.is_missed = True
                return [record]
            self._start = self._stored.index(record)
            self._next = self._start
        if self._stored[self._next] != record:
            return self._realign(record)
        self._next += 1
        self.is_settled = self._next == len(self._stored)
        return []

    def _realign(self, record: bytes) -> list[bytes]:
        """Equal lines let the comparison start too early: find the next place where all that came fits."""
        came = [*self._stored[self._start : self._next], record]
        for start in range(self._start + 1, len(self._stored)):
            rest = self._stored[start : start + len(came)]
            if rest != came[: len(rest)]:
                continue
            if start + len(came) < len(self._stored):
                self._start, self._next = start, start + len(came)
                return []
            self.is_settled = True
            return came[len(rest) :]
        self.is_settled = True
        return [record]


def _canonical(found: re.Match[bytes]) -> bytes | None:
    """A matched stamp as 30 bytes in UTC; None when it is no possible time."""
    second, fraction, zone = found.group(1), found.group(2) or b"", found.group(3)
    if zone != b"Z":
        try:
            moment = datetime.fromisoformat((second + zone).decode("ascii")).astimezone(UTC)
        except (ValueError, OverflowError):
            return None
        second = moment.strftime("%Y-%m-%dT%H:%M:%S").encode("ascii")
    return second + b"." + fraction.ljust(9, b"0") + b"Z"


def _follows(first: bytes, second: bytes) -> bool:
    """Whether the second stamp can be that of a later piece of the line with the first."""
    try:
        begun, continued = (
            datetime.fromisoformat(each[:19].decode("ascii") + "+00:00") for each in (first, second)
        )
    except ValueError:
        return False
    return first <= second and continued - begun <= INNER_STAMP_WINDOW


def _character_start(text: bytearray, position: int) -> int:
    """The position or, inside a UTF-8 character, the start of that character."""
    for start in range(position, position - 4, -1):
        if text[start] & 0xC0 != 0x80:
            return start
    return position
