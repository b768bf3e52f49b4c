"""What figures have in common: finding grids, and naming the trace."""

from __future__ import annotations

import math
from collections.abc import Iterator

from traceviz.report import Grid, Report, Timeline
from traceviz.units import Value


def run_fact(report: Report, key: str) -> Value:
    """A fact about the run; ``None`` where it is not known."""
    return next((fact.value for fact in report.run if fact.key == key), None)


def of_trace(report: Report) -> str:
    """``of slow.pt.trace.json.gz``, for subtitles; empty where no name is known."""
    name = run_fact(report, "source")
    return f"of {name}" if name else ""


def grid_titled(report: Report, slug: str, title: str, *columns: str) -> Grid | None:
    """The grid of this title in a section, where there is one with these columns."""
    return next((grid for grid in report.grids(slug) if grid.title == title and has_columns(grid, *columns)), None)


def has_columns(grid: Grid, *names: str) -> bool:
    """Whether a grid, also of a report that somebody else wrote, has these columns."""
    return {column.name for column in grid.columns}.issuperset(names)


def rows_of(grid: Grid) -> Iterator[dict[str, Value]]:
    """Rows as names to values."""
    names = [column.name for column in grid.columns]
    return (dict(zip(names, row, strict=True)) for row in grid.rows)


def timelines(report: Report, slug: str) -> tuple[Timeline, ...]:
    """Timelines of a section that show anything."""
    return tuple(
        block
        for block in report.blocks(slug)
        if isinstance(block, Timeline) and block.lanes and block.end_ns > block.start_ns
    )


def quantity(value: Value) -> float:
    """A number of a report; zero where it has none, or none that can be drawn."""
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else 0.0


def exact(value: float) -> float:
    """A whole number as an integer, so that it is written without decimals."""
    return int(value) if float(value).is_integer() else value
