"""What a row is, the numbers in it, and the table. Pure."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

HEADINGS = ("what", "Berth", "beside", "theirs", "ratio", "difference", "aim", "met")


@dataclass(frozen=True)
class Row:
    """One comparison. `ours` and `theirs` are in `unit`; `beside` says what theirs is, empty for an absolute aim."""

    name: str
    ours: float
    unit: str
    aim: str
    is_met: bool
    beside: str = ""
    theirs: float | None = None
    samples: dict[str, Sequence[float]] = field(default_factory=dict)
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """Ours over theirs."""
        return self.ours / self.theirs if self.theirs else None

    @property
    def difference(self) -> float | None:
        """Ours less theirs, in `unit`."""
        return self.ours - self.theirs if self.theirs is not None else None


def median(values: Sequence[float]) -> float:
    """The middle one."""
    return statistics.median(values)


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that `percent` of all values do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def table(rows: Sequence[Row]) -> str:
    """The rows as text, one line each, then their notes."""
    cells = [HEADINGS, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(HEADINGS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in cells]
    lines.insert(1, "  ".join("-" * width for width in widths))
    notes = [f"{row.name}: {row.note}" for row in rows if row.note]
    return "\n".join(line.rstrip() for line in [*lines, "", *notes])


def as_json(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The rows with every sample, for comparing runs."""
    return [asdict(row) | {"ratio": row.ratio, "difference": row.difference} for row in rows]


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.name,
        _amount(row.ours, row.unit),
        row.beside or "-",
        _amount(row.theirs, row.unit) if row.theirs is not None else "-",
        f"{row.ratio:.2f}" if row.ratio is not None else "-",
        _amount(row.difference, row.unit, sign="+") if row.difference is not None else "-",
        row.aim,
        "yes" if row.is_met else "NO",
    )


def _amount(value: float, unit: str, *, sign: str = "") -> str:
    """A number with as many decimals as mean something in its unit."""
    decimals = {"s": 2, "%": 2}.get(unit, 0)
    return f"{value:{sign}.{decimals}f} {unit}".strip()
