"""Values as people type them, read the same way by the form and the API (pure).

Every parser raises ValueError with a sentence for the person who typed it.
"""

import re
from collections.abc import Mapping

from jobs.argv import CommandError, split_command
from portal.kube.quantity import QuantityError, parse_cpu_milli, parse_gpus, parse_memory_bytes

_DURATION = re.compile(r"(?:(\d+)d)?\s*(?:(\d+)h)?\s*(?:(\d+)m)?\s*(?:(\d+)s)?", re.ASCII | re.IGNORECASE)
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def is_storable(text: str) -> bool:
    """Whether programs, databases and replies can hold a text: no NUL (PostgreSQL, argv), no half surrogate (UTF-8)."""
    return _UNSTORABLE.search(text) is None


def gpus(value: object) -> int:
    """Whole GPUs: 2, "2", "2000m"; nothing means none (RW-057)."""
    try:
        return parse_gpus(value)
    except QuantityError as error:
        raise ValueError(str(error)) from error


def cpu_milli(value: object) -> int:
    """CPU in cores or millicores to millicores: "2", "500m", 0.5."""
    try:
        return parse_cpu_milli(value)
    except QuantityError as error:
        raise ValueError(str(error)) from error


def memory_bytes(value: object) -> int:
    """Memory with a unit to bytes: "16Gi", "500M"."""
    try:
        return parse_memory_bytes(value)
    except QuantityError as error:
        raise ValueError(str(error)) from error


def duration_seconds(value: object) -> int | None:
    """A time span: "2h", "1d 6h", "90m", "45s" or plain seconds; nothing means no limit."""
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise ValueError("Give a time such as 2h, 90m or a number of seconds.")
    text = str(value).strip()
    if not text.isascii() or len(text) > 24:
        raise ValueError("Give a time such as 2h, 90m or a number of seconds.")
    if text.isdecimal():
        return int(text)
    match = _DURATION.fullmatch(text)
    if match is None or not any(match.groups()):
        raise ValueError("Give a time such as 2h, 90m or a number of seconds.")
    days, hours, minutes, seconds = (int(group or 0) for group in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def format_duration(seconds: int | None) -> str:
    """Seconds the way `duration_seconds` reads them back.

    >>> format_duration(5400)
    '1h30m'
    """
    if seconds is None:
        return ""
    parts, rest = [], seconds
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def pairs(text: str) -> dict[str, str]:
    """Lines of NAME=value to a mapping; empty lines and lines that begin with # are left out.

    The value is everything after the first "=", byte for byte. Raises ValueError naming the line.
    """
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, separator, value = line.partition("=")
        if not separator:
            raise ValueError(f"Line {number}: write NAME=value.")
        if name.strip() in found:
            raise ValueError(f"Line {number}: “{name.strip()}” is given twice.")
        found[name.strip()] = value
    return found


def scalar_mapping(value: object) -> dict[str, str]:
    """A JSON object of scalars to strings, as environments are given: true is "true", 0.001 is "0.001" (RW-019)."""
    if not isinstance(value, Mapping):
        raise ValueError("Give an object of names and values.")
    found = {}
    for name, each in value.items():
        if each is None or isinstance(each, (Mapping, list)):
            raise ValueError(f"“{name}”: give a text, a number or true/false.")
        found[str(name)] = str(each).lower() if isinstance(each, bool) else str(each)
    return found


def command_line(text: str) -> list[str]:
    """One typed command line to arguments."""
    try:
        return split_command(text)
    except CommandError as error:
        raise ValueError(str(error)) from error
