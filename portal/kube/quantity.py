"""Kubernetes quantities to whole numbers and back (pure). Never rounded silently, never a crash on odd input (RW-057).

Notation from the Kubernetes documentation, "Quantity": a decimal number with a binary (Ki, Mi, …) or decimal (m, k,
M, …) suffix or an exponent.
"""

import re
from decimal import Decimal, InvalidOperation

_NUMBER = re.compile(
    r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+))(?P<suffix>[KMGTPE]i|[numkMGTPE]|[eE][+-]?\d{1,2})?", re.ASCII
)
_SUFFIXES = {
    "": Decimal(1), "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"),
    "k": Decimal(10**3), "M": Decimal(10**6), "G": Decimal(10**9),
    "T": Decimal(10**12), "P": Decimal(10**15), "E": Decimal(10**18),
    "Ki": Decimal(2**10), "Mi": Decimal(2**20), "Gi": Decimal(2**30),
    "Ti": Decimal(2**40), "Pi": Decimal(2**50), "Ei": Decimal(2**60),
}  # fmt: skip
_LONGEST = 32
_BINARY = ((2**40, "Ti"), (2**30, "Gi"), (2**20, "Mi"), (2**10, "Ki"))
LARGEST = 2**53  # whole numbers above it do not survive a browser


class QuantityError(ValueError):
    """A quantity that cannot be read or is not allowed; the message is for the person who typed it."""


def parse(value: object) -> Decimal:
    """Any quantity as an exact number. Raises QuantityError."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise QuantityError("Give a number such as 2, 500m or 16Gi.")
    text = repr(value) if isinstance(value, float) else str(value).strip()
    match = _NUMBER.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        raise QuantityError(f"“{text[:_LONGEST]}” is no quantity; give a number such as 2, 500m or 16Gi.")
    suffix = match["suffix"] or ""
    try:
        number = Decimal(match["number"])
        return (
            number.scaleb(int(suffix[1:]))
            if suffix[:1] in "eE" and suffix[1:] and suffix not in _SUFFIXES
            else (number * _SUFFIXES[suffix])
        )
    except InvalidOperation as error:
        raise QuantityError(f"“{text}” is no quantity.") from error


def parse_gpus(value: object) -> int:
    """Whole devices: 2, "2", "2000m", "1e0", 1.0; "", None and 0 mean none. Fractions are refused (RW-057)."""
    if value is None or value == "":
        return 0
    number = parse(value)
    if number != number.to_integral_value():
        raise QuantityError("GPUs are whole devices; give a whole number.")
    return _bounded(number)


def parse_cpu_milli(value: object) -> int:
    """CPU in thousandths of a core; finer amounts are refused."""
    number = parse(value) * 1000
    if number != number.to_integral_value():
        raise QuantityError("CPU is given in steps of 1m (a thousandth of a core).")
    return _bounded(number)


def parse_memory_bytes(value: object) -> int:
    """Memory in bytes; fractions of a byte are refused."""
    number = parse(value)
    if number != number.to_integral_value():
        raise QuantityError("Memory is given in whole bytes.")
    return _bounded(number)


def format_cpu(milli: int) -> str:
    """1500 → "1500m", 2000 → "2"."""
    return f"{milli}m" if milli % 1000 else str(milli // 1000)


def format_memory(count: int) -> str:
    """Bytes with the largest binary suffix that loses nothing: 17179869184 → "16Gi"."""
    for size, suffix in _BINARY:
        if count and count % size == 0:
            return f"{count // size}{suffix}"
    return str(count)


def same_quantity(one: object, other: object) -> bool:
    """Whether two values are equal quantities, as "1" and "1000m" are; the API server rewrites them."""
    try:
        return parse(one) == parse(other)
    except QuantityError:
        return False


def _bounded(number: Decimal) -> int:
    if number < 0:
        raise QuantityError("Must not be negative.")
    if number > LARGEST:
        raise QuantityError("Is larger than anything there is.")
    return int(number)
