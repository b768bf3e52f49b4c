"""What of a report people see, whatever the medium: which blocks, columns and rows, and what the rest adds up to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from traceviz.render.options import DEFAULT_TOP
from traceviz.report import Bars, Block, Column, Facts, Grid, Row, Skipped
from traceviz.units import Value

MACHINE_ONLY = 9
_LEAST_SHOWN = 3
_ADDITIVE = frozenset(
    {
        *("bytes", "calls", "dur_ns", "exposed_ns", "self_ns", "host_self_ns", "device_self_ns", "startup_ns"),
        *("steady_ns", "total_ns"),
    }
)


@dataclass(frozen=True, slots=True)
class ShownRows:
    """The rows on the page, and how many others are ``hidden``.

    ``rest`` sums the hidden rows where the table says that its rows are parts of one whole (it has a bar column)
    and names them; columns that do not add up are ``None`` in it.
    """

    rows: tuple[Row, ...]
    hidden: int
    rest: Row | None


def blocks_for_people(blocks: tuple[Block, ...]) -> list[Block]:
    """The blocks without those that only programs read."""
    return [block for block in blocks if not (isinstance(block, Facts | Grid) and block.audience == "machine")]


def not_measured(skipped: Sequence[Skipped]) -> list[tuple[str, str]]:
    """What was not measured and why: sections whose tables the capture does not have share one line."""
    absent = [skip.slug for skip in skipped if skip.tables]
    if len(absent) < 2:
        return [(skip.slug, skip.reason) for skip in skipped]
    together = (", ".join(absent), "nothing of the kind is in this capture")
    return [*((skip.slug, skip.reason) for skip in skipped if not skip.tables), together]


def bars_heading(bars: Bars) -> str:
    """What a stacked bar shows, and what its shares are shares of."""
    return ", ".join(part for part in (bars.title, f"share of {bars.whole}" if bars.whole else "") if part)


def shown_columns(grid: Grid) -> tuple[int, ...]:
    """Positions of the columns that are meant for people."""
    return tuple(index for index, column in enumerate(grid.columns) if column.importance < MACHINE_ONLY)


def shown_rows(grid: Grid, top: int | None) -> ShownRows:
    """The leading rows: ``top`` of them, or by default ten without the small ones that the grid wants folded."""
    count = min(DEFAULT_TOP, max(_fold_from(grid), _LEAST_SHOWN)) if top is None else top
    if len(grid.rows) <= count + 1:  # "one more" would take the line that the row itself needs
        return ShownRows(grid.rows, 0, None)
    hidden = grid.rows[count:]
    return ShownRows(grid.rows[:count], len(hidden), _totals(grid, hidden))


def _fold_from(grid: Grid) -> int:
    """Position of the first of the trailing rows whose bar is below ``grid.fold_below``."""
    bar = next((index for index, column in enumerate(grid.columns) if column.bar), None)
    if bar is None or grid.fold_below <= 0:
        return len(grid.rows)
    position = len(grid.rows)
    while position > 0 and number_of(grid.rows[position - 1][bar]) < grid.fold_below:
        position -= 1
    return position


def _totals(grid: Grid, rows: tuple[Row, ...]) -> Row | None:
    if not any(column.bar for column in grid.columns) or not any(column.unit == "text" for column in grid.columns):
        return None
    return tuple(
        _total([row[index] for row in rows]) if _adds_up(column) else None for index, column in enumerate(grid.columns)
    )


def _adds_up(column: Column) -> bool:
    return column.bar or column.name in _ADDITIVE or column.name.startswith("share_of_")


def _total(values: list[Value]) -> Value:
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    return sum(numbers) if numbers else None


def number_of(value: Value) -> float:
    """``value`` for comparing and drawing; what is no finite number counts as 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return 0.0
    return float(value)
