"""Visible content of a report, for any medium: blocks, columns, rows and their rest, findings and notes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from traceviz.core.units import MINUS, Value, format_change, format_ns, format_ratio, format_value
from traceviz.render.options import DEFAULT_TOP
from traceviz.report import COMPARISON, Bars, Block, Column, Facts, Finding, Grid, Note, Report, Row, Series, Skipped

MACHINE_ONLY = 9
DEVICE_WORK = frozenset(
    {"device_compute", "communication", "parameter_transfer", "copy_d2h", "copy_h2d", "d2h", "h2d", "other_device"}
)
"""Keys of the parts of a bar in which a device works. In all others it waits."""
REST = "other"
"""Key of the small parts of a bar together."""
_LEAST_SHOWN = 3


@dataclass(frozen=True, slots=True)
class ShownRows:
    """The rows on the page, and the number of others, ``hidden``.

    ``rest`` sums the hidden rows and names them, if the table's rows are parts of one whole (it has a bar column).
    Columns that do not add up are ``None`` in it.
    """

    rows: tuple[Row, ...]
    hidden: int
    rest: Row | None


def blocks_for_people(blocks: tuple[Block, ...]) -> list[Block]:
    """Return the blocks, without those for programs."""
    return [block for block in blocks if not (isinstance(block, Facts | Grid | Series) and block.audience == "machine")]


def by_time_at_stake(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Sort findings by the time at stake, largest first; equal ones by severity, then by code."""
    return tuple(sorted(findings, key=lambda finding: (-finding.cost_ns, -finding.severity.rank, finding.code)))


def time_at_stake(finding: Finding) -> str:
    """Return ``8.10 s at stake, 70.9 % of steady steps``; empty if the time is unknown."""
    if finding.cost_ns == 0:
        return ""
    stake = f"{format_ns(finding.cost_ns)} at stake"
    if finding.share is None:
        return stake
    of = f" of {finding.share_of}" if finding.share_of else ""
    return f"{stake}, {format_ratio(finding.share)}{of}"


def times(note: Note) -> str:
    """Return `` (3×)`` for a note of something that happened more than once; else empty."""
    return f" ({note.count:,}×)" if note.count is not None and note.count > 1 else ""


def absence(report: Report) -> str:
    """Return the heading for absent sections: a comparison also omits data that only one side recorded."""
    return "not compared" if report.schema == COMPARISON else "not measured"


def not_measured(skipped: Sequence[Skipped]) -> list[tuple[str, str]]:
    """Return absent sections with their reasons; those with missing tables share one line."""
    absent = [skip.slug for skip in skipped if skip.tables]
    if len(absent) < 2:
        return [(skip.slug, skip.reason) for skip in skipped]
    together = (", ".join(absent), "nothing of the kind is in this capture")
    return [*((skip.slug, skip.reason) for skip in skipped if not skip.tables), together]


def bars_heading(bars: Bars) -> str:
    """Return the title of a stacked bar, and the base of its shares."""
    return ", ".join(part for part in (bars.title, f"share of {bars.whole}" if bars.whole else "") if part)


def shown_columns(grid: Grid) -> tuple[int, ...]:
    """Return the positions of the readable columns."""
    return tuple(index for index, column in enumerate(grid.columns) if column.importance < MACHINE_ONLY)


def shown_rows(grid: Grid, top: int | None) -> ShownRows:
    """Return the leading rows: ``top``, or by default ten without the small ones that the grid folds."""
    if grid.complete:
        return ShownRows(grid.rows, 0, None)
    count = min(DEFAULT_TOP, max(_fold_from(grid), _LEAST_SHOWN)) if top is None else top
    if len(grid.rows) <= count + 1:  # a line for one hidden row would be as long as the row
        return ShownRows(grid.rows, 0, None)
    hidden = grid.rows[count:]
    return ShownRows(grid.rows[:count], len(hidden), _totals(grid, hidden))


def telling_columns(grid: Grid, shown: ShownRows) -> tuple[int, ...]:
    """Return the positions of the readable columns, without unimportant ones that are empty in the rows shown.

    The column that names the rows comes before less important columns of text.
    """
    columns = grid.columns
    present = [
        index
        for index in shown_columns(grid)
        if columns[index].importance == 0 or any(row[index] not in {None, ""} for row in shown.rows)
    ]
    texts = [index for index in present if columns[index].unit == "text"]
    if texts and texts[0] == present[0] and columns[texts[0]].importance > 1:
        named = min(texts, key=lambda index: columns[index].importance)
        present = [named, *(index for index in present if index != named)]
    return tuple(present)


RARE = 4
"""Columns of this importance or more are rarely needed."""


def rare_columns(columns: Sequence[Column]) -> frozenset[int]:
    """Return the positions of rarely needed columns that can be shown on demand; empty if fewer than two are."""
    rare = frozenset(index for index, column in enumerate(columns) if index and column.importance >= RARE)
    return rare if len(rare) > 1 else frozenset()


def cell_text(value: Value, column: Column) -> str:
    """Format a value of a column: a change has its sign, and a difference of shares is in points of percent."""
    if not column.signed:
        return format_value(value, column.unit)
    if is_in_points(column) and isinstance(value, int | float) and not isinstance(value, bool):
        return format_points(value)
    return format_change(value, column.unit)


def is_in_points(column: Column) -> bool:
    """Return whether a column has differences of shares; its heading says so."""
    return column.signed and column.unit == "ratio" and column.label.lower().endswith("points")


def format_points(difference: float) -> str:
    """Format a difference of two shares, ``+3.2``, in points of percent; the heading has the unit."""
    text = f"{abs(difference) * 100:.1f}"
    return text if float(text) == 0 else f"{'+' if difference > 0 else MINUS}{text}"


def _fold_from(grid: Grid) -> int:
    """Return the position of the first of the trailing rows whose bar is below ``grid.fold_below``."""
    bar = next((index for index, column in enumerate(grid.columns) if is_share(column)), None)
    if bar is None or grid.fold_below <= 0:
        return len(grid.rows)
    position = len(grid.rows)
    while position > 0 and number_of(grid.rows[position - 1][bar]) < grid.fold_below:
        position -= 1
    return position


def _totals(grid: Grid, rows: tuple[Row, ...]) -> Row | None:
    if not any(column.bar for column in grid.columns) or not any(column.unit == "text" for column in grid.columns):
        return None
    totals: list[Value] = []
    for index, column in enumerate(grid.columns):
        adds_up = is_share(column) if column.additive is None else column.additive
        values = [row[index] for row in rows] if adds_up else []
        numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
        totals.append(sum(numbers) if numbers else None)
    return tuple(totals)


def is_share(column: Column) -> bool:
    """Return whether a column's bars are shares of one whole."""
    return column.bar and column.unit == "ratio" and not column.signed


def bar_ratios(column: Column, values: Sequence[Value]) -> tuple[float, ...]:
    """Return each value's fill of its bar, -1 to 1: shares as they are, others relative to the column's largest."""
    numbers = [number_of(value) for value in values]
    whole = 1.0 if is_share(column) else max(map(abs, numbers), default=0.0)
    return tuple(number / whole if whole else 0.0 for number in numbers)


def number_of(value: Value) -> float:
    """Return ``value`` for comparing and drawing; anything but a finite number counts as 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return 0.0
    return float(value)
