"""Splitting log answers into records, and removing what a reconnect repeats."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.logs.lines import (
    LINE_LIMIT,
    NO_STAMP,
    REDRAW_LIMIT,
    RUNTIME_PIECE,
    Overlap,
    Splitter,
    is_whole,
    raw_of,
    resume_from,
    stamp_at,
    stamp_of,
    text_of,
)

pytestmark = pytest.mark.unit

T1 = b"2026-01-01T12:00:05.100000000Z"
T2 = b"2026-01-01T12:00:05.100250000Z"
T3 = b"2026-01-01T12:00:07.000000000Z"


def split(*pieces: bytes, is_whole_answer: bool = True, is_resumed: bool = False) -> list[bytes]:
    splitter = Splitter(is_resumed=is_resumed)
    records = [record for piece in pieces for record in splitter.feed(piece)]
    return records + splitter.finish() if is_whole_answer else records


def raw(records: Sequence[bytes]) -> bytes:
    return b"".join(raw_of(record) for record in records)


def test_rw_043_a_an_18000_character_line_is_one_line() -> None:
    records = split(T1 + b" " + b"x" * 18000 + b"\n")
    assert records == [T1 + b" " + b"x" * 18000]


def test_rw_043_b_stamps_between_the_pieces_of_an_old_kubelet_are_taken_out() -> None:
    sent = T1 + b" " + b"x" * 16384 + T2 + b" " + b"x" * 1616 + b"\n" + T3 + b" next\n"
    expected = [T1 + b" " + b"x" * 18000, T3 + b" next"]
    for cut in (0, 31, 16384, 16384 + 31, 16384 + 40, 16384 + 62, 17000, len(sent)):
        assert split(sent[:cut], sent[cut:]) == expected


def test_rw_043_b_a_line_cut_in_the_middle_leaves_the_resume_position_before_it() -> None:
    sent = T1 + b" first\n" + T1 + b" " + b"x" * 16384 + T2 + b" " + b"x" * 100
    records = split(sent, is_whole_answer=False)
    assert [stamp_of(record) for record in records] == [T1.decode()]
    assert resume_from(stamp_of(records[-1])) == datetime(2026, 1, 1, 12, 0, 4, tzinfo=UTC)


def test_rw_043_c_the_programs_own_time_stays() -> None:
    records = split(T3 + b" 2026-01-01T00:00:00Z started\n")
    assert [(stamp_of(each), text_of(each)) for each in records] == [
        (T3.decode(), b"2026-01-01T00:00:00Z started")
    ]


def test_a_time_that_a_program_writes_elsewhere_in_a_long_line_stays() -> None:
    text = b"y" * 16000 + T2 + b" " + b"y" * 20000 + T2 + b" end"
    assert split(T1 + b" " + text + b"\n") == [T1 + b" " + text]


def test_rw_047_progress_bars_keep_their_bytes() -> None:
    written = b"ep 1:  10%|#    |\rep 1:  50%|##   |\rep 1: 100%|#####|\n", b"saved ckpt\r\n"
    records = split(*(T1 + b" " + line for line in written))
    assert len(records) == 2
    assert raw(records) == b"".join(written)


def test_rw_047_a_bar_without_line_feeds_does_not_grow_memory() -> None:
    splitter = Splitter()
    splitter.feed(T1 + b" ")
    bar = b"".join(b"\rstep %09d of 999999999" % step for step in range(200_000))
    records: list[bytes] = []
    for start in range(0, len(bar), 4096):
        records += splitter.feed(bar[start : start + 4096])
    held = len(bar) - len(raw(records))
    assert held <= REDRAW_LIMIT + RUNTIME_PIECE
    assert all(text_of(record).endswith(b"\r") and not is_whole(record) for record in records)
    records += splitter.finish()
    assert raw(records) == bar


def test_an_endless_line_is_stored_in_pieces_of_at_most_a_mebibyte() -> None:
    text = "äö".encode() * LINE_LIMIT
    records = split(T1 + b" x" + text + b"\n")
    assert [is_whole(record) for record in records] == [False, False, False, False, True]
    assert max(len(text_of(record)) for record in records) <= LINE_LIMIT
    assert all(text_of(record).decode() for record in records), "no character is cut in two"
    assert raw(records) == b"x" + text + b"\n"


def test_the_last_line_is_kept_when_no_line_feed_ends_it() -> None:
    records = split(T1 + b" one\n" + T2 + b" Segmentation fault")
    assert raw(records) == b"one\nSegmentation fault"


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (b"2026-01-01T12:00:05Z a", "2026-01-01T12:00:05.000000000Z"),
        (b"2026-01-01T12:00:05.1Z a", "2026-01-01T12:00:05.100000000Z"),
        (b"2026-01-01T14:00:05.123456789+02:00 a", "2026-01-01T12:00:05.123456789Z"),
        (b"2026-01-01T14:00:05+99:00 a", ""),
        (b"no stamp at all", ""),
    ],
)
def test_stamps_of_every_shape_become_utc_with_nine_digits(sent: bytes, expected: str) -> None:
    assert [stamp_of(record) for record in split(sent + b"\n")] == [expected]


def test_a_line_without_stamp_takes_that_of_the_line_before() -> None:
    records = split(b"lost\n" + T1 + b" a\nb\n")
    assert records == [NO_STAMP + b" lost", T1 + b" a", T1 + b" b"]


def test_invalid_utf8_and_nul_bytes_are_kept() -> None:
    written = b"\xff\xfe\x00 \xc3(\n"
    assert raw(split(T1 + b" " + written)) == written


def test_a_resumed_answer_may_begin_inside_an_older_line() -> None:
    sent = b"x" * 40000 + b"\n" + T3 + b" next\n"
    for cut in (10, 17000, 40000, 40001):
        assert split(sent[:cut], sent[cut:], is_resumed=True) == [T3 + b" next"]


# Reconnects ------------------------------------------------------------------------------------------------------


def line(time: str, text: str) -> bytes:
    return f"2026-01-01T12:00:{time}Z {text}\n".encode()


class Node:
    """Answers as a kubelet does: line by line, not older than `since`, which it truncates to seconds."""

    def __init__(self, lines: Sequence[bytes], forgotten: int = 0) -> None:
        self.lines = lines
        self.forgotten = forgotten  # rotated away: the first so many lines

    def read(self, since: datetime | None) -> bytes:
        from_stamp = b"" if since is None else stamp_at(since.replace(microsecond=0))
        return b"".join(each for each in self.lines[self.forgotten :] if each >= from_stamp)


def resumed(stored: list[bytes]) -> tuple[datetime | None, Overlap, Splitter]:
    """What the collector does before each answer: ask from the last stored stamp, compare with what is stored."""
    since = resume_from(stamp_of(stored[-1])) if stored else None
    overlapping = [record for record in stored if since is None or record >= stamp_at(since)]
    return since, Overlap(overlapping), Splitter(is_resumed=since is not None)


def test_rw_062_nothing_is_lost_or_repeated_when_the_connection_drops() -> None:
    lines = [
        line("05.100000000", "a"),
        line("05.500000000", "tick"),
        line("05.700000000", "tick"),
        line("05.900000000", "b"),
    ]
    stored = split(*lines[:2], is_whole_answer=False)
    # Whatever our clock says, two minutes ahead or behind, plays no part in it.
    since, overlap, splitter = resumed(stored)
    assert since == datetime(2026, 1, 1, 12, 0, 4, tzinfo=UTC)
    answer = Node(lines).read(since)
    stored += overlap.take(splitter.feed(answer))
    assert [text_of(record) for record in stored] == [b"a", b"tick", b"tick", b"b"]
    assert not overlap.is_missed


def test_lines_that_two_readers_on_the_node_stamped_in_the_wrong_order_survive() -> None:
    lines = [line("06.001000000", "out"), line("05.999000000", "err"), line("06.002000000", "out 2")]
    stored = split(lines[0], is_whole_answer=False)
    since, overlap, splitter = resumed(stored)
    stored += overlap.take(splitter.feed(Node(lines).read(since)))
    assert [text_of(record) for record in stored] == [b"out", b"err", b"out 2"]


def test_rotated_lines_are_noticed() -> None:
    lines = [line(f"05.{number:09d}", str(number)) for number in range(10)]
    stored = split(*lines[:3], is_whole_answer=False)
    for forgotten, is_missed in ((2, False), (3, True), (6, True)):
        since, overlap, splitter = resumed(stored)
        new = overlap.take(splitter.feed(Node(lines, forgotten).read(since)))
        assert [text_of(each) for each in new] == [b"%d" % number for number in range(max(3, forgotten), 10)]
        assert overlap.is_missed == is_missed


def test_equal_lines_after_rotation_are_not_taken_for_new_ones() -> None:
    x, y, z = line("05.000000000", "x"), line("05.000000001", "y"), line("05.000000002", "z")
    stored = split(x, x, y, is_whole_answer=False)
    since, overlap, splitter = resumed(stored)
    new = overlap.take(splitter.feed(Node([x, x, y, z], 1).read(since)))
    assert [text_of(each) for each in new] == [b"z"]


TEXTS = st.one_of(
    st.binary(max_size=12).map(lambda text: text.replace(b"\n", b"")),
    st.sampled_from([b"", b"tick", T1 + b" inner", b"\r10%\r20%\r"]),
    st.integers(16370, 16400).map(lambda size: b"z" * size),
    st.integers(32700, 33000).map(lambda size: b"z" * size),
)


@st.composite
def outputs(draw: st.DrawFn) -> list[bytes]:
    """Lines as a node stores them: stamps mostly rise, often repeat, and sometimes step back a little."""
    moment = datetime(2026, 1, 1, 12, tzinfo=UTC)
    lines = []
    for text in draw(st.lists(TEXTS, max_size=25)):
        moment += timedelta(milliseconds=draw(st.sampled_from([0, 0, 1, 300, 999, 5000])))
        jitter = timedelta(milliseconds=draw(st.sampled_from([0, 0, 0, 2])))
        stamp = (moment - jitter).strftime("%Y-%m-%dT%H:%M:%S.%f000Z").encode()
        lines.append(stamp + b" " + text + b"\n")
    return lines


def pieces(data: bytes, cuts: Sequence[int]) -> Iterator[bytes]:
    places = sorted({cut % (len(data) + 1) for cut in cuts})
    for start, end in zip([0, *places], [*places, len(data)], strict=True):
        yield data[start:end]


@given(outputs(), st.lists(st.integers(0, 10**6), max_size=8))
def test_the_cuts_of_the_byte_stream_do_not_matter(lines: list[bytes], cuts: list[int]) -> None:
    sent = b"".join(lines)
    assert split(*pieces(sent, cuts)) == split(sent)
    assert raw(split(sent)) == b"".join(each[31:] for each in lines)


@given(st.lists(st.integers(0, 3 * 10**6), max_size=12), st.binary(max_size=3), st.integers(0, 1))
@settings(max_examples=25)
def test_the_cuts_of_an_endless_line_do_not_matter(cuts: list[int], unit: bytes, inner_stamps: int) -> None:
    text = (unit.replace(b"\n", b"\r") or b"-") * (LINE_LIMIT + 70_000)
    sent = text
    if inner_stamps:
        sent = (T2 + b" ").join(text[at : at + RUNTIME_PIECE] for at in range(0, len(text), RUNTIME_PIECE))
    sent = T1 + b" " + sent + b"\n" + T3 + b" next\n"
    records = split(*pieces(sent, cuts))
    assert records == split(sent)
    assert raw(records) == text + b"\nnext\n"


@given(
    outputs(),
    st.lists(st.tuples(st.integers(0, 10**6), st.lists(st.integers(0, 10**6), max_size=3)), max_size=6),
)
def test_random_reconnects_never_lose_or_repeat(
    lines: list[bytes], drops: list[tuple[int, list[int]]]
) -> None:
    node = Node(lines)
    stored: list[bytes] = []
    for length, cuts in drops:
        since, overlap, splitter = resumed(stored)
        answer = node.read(since)
        answer = answer[: length % (len(answer) + 1)]
        for piece in pieces(answer, cuts):
            stored += overlap.take(splitter.feed(piece))
    since, overlap, splitter = resumed(stored)
    stored += overlap.take(splitter.feed(node.read(since)))
    stored += overlap.take(splitter.finish())
    assert stored == split(*lines)
