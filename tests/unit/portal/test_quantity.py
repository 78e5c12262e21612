"""Quantities: RW-057."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.kube import quantity
from portal.kube.quantity import QuantityError


@pytest.mark.parametrize(
    ("value", "gpus"),
    [("2000m", 2), ("2", 2), (2, 2), ("1e0", 1), (1.0, 1), ("0", 0), ("", 0), (None, 0), (0, 0)],
)
def test_rw057_whole_gpus_are_read_in_every_notation(value: object, gpus: int) -> None:
    assert quantity.parse_gpus(value) == gpus


@pytest.mark.parametrize(
    "value",
    ["0.5", "1500m", "-1", "two", 1e400, 0.5, True, "1_000", "0x1", "1e99", "１", "NaN", "1 2", [], "1" * 40],
)
def test_rw057_fractions_and_nonsense_are_refused_never_rounded(value: object) -> None:
    with pytest.raises(QuantityError):
        quantity.parse_gpus(value)


@pytest.mark.parametrize(
    ("text", "count"),
    [("1.5Gi", 1610612736), ("500M", 500_000_000), ("1e3", 1000), ("128974848", 128974848), ("1k", 1000)],
)
def test_memory_is_read_with_every_suffix(text: str, count: int) -> None:
    assert quantity.parse_memory_bytes(text) == count


@given(st.integers(0, 2**50))
def test_what_is_written_is_read_back(count: int) -> None:
    assert quantity.parse_memory_bytes(quantity.format_memory(count)) == count
    assert quantity.parse_cpu_milli(quantity.format_cpu(count)) == count


@given(st.text(max_size=40))
def test_any_text_is_a_number_or_a_clear_error(text: str) -> None:
    with contextlib.suppress(QuantityError):
        assert quantity.parse_gpus(text) >= 0


def test_equal_quantities_are_the_same_in_any_notation() -> None:
    assert quantity.same_quantity("1", "1000m")
    assert quantity.same_quantity("1Gi", "1024Mi")
    assert not quantity.same_quantity("1", "2")
    assert not quantity.same_quantity("x", "x")
