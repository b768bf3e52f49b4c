"""What figures read from reports: rows of grids by the names of their columns, and numbers that can be drawn."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from traceviz.core.units import Value
from traceviz.report import Column, Grid, Prose, Report, Timeline

Row = Mapping[str, Value]


def grid_with(report: Report, slug: str, *names: str) -> Grid | None:
    """The first grid of a section that has all these columns; ``None`` where there is none with any row."""
    wanted = set(names)
    grids = (grid for grid in report.grids(slug) if grid.rows)
    return next((grid for grid in grids if wanted <= {column.name for column in grid.columns}), None)


def titled(report: Report, slug: str, title: str, *names: str) -> Grid | None:
    """The grid of a section with this title and these columns; ``None`` where there is none with any row."""
    wanted = set(names)
    grids = (grid for grid in report.grids(slug) if grid.title == title and grid.rows)
    return next((grid for grid in grids if wanted <= {column.name for column in grid.columns}), None)


def rows(grid: Grid) -> Iterator[Row]:
    """Rows as column name to value."""
    names = [column.name for column in grid.columns]
    return (dict(zip(names, row, strict=True)) for row in grid.rows)


def column(grid: Grid, name: str) -> Column:
    """The column of this name.

    Raises:
        KeyError: there is none.
    """
    found = next((one for one in grid.columns if one.name == name), None)
    if found is None:
        raise KeyError(name)
    return found


def number(value: Value) -> float | None:
    """A number that can be drawn; ``None`` of anything else."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if is_number and isinstance(value, int | float) else None


def text(value: Value) -> str:
    """Text, empty where there is none."""
    return "" if value is None else str(value)


def about(report: Report) -> str:
    """What a report is about, in a few words: the first fact of its run."""
    return next((str(fact.value) for fact in report.run if fact.value is not None), "")


def of_trace(report: Report) -> str:
    """``of slow.pt.trace.json.gz``, for subtitles; empty where no name is known."""
    name = about(report)
    return f"of {name}" if name else ""


def quantity(value: Value) -> float:
    """A number of a report; zero where it has none, or none that can be drawn."""
    return number(value) or 0.0


def timelines(report: Report, slug: str) -> tuple[Timeline, ...]:
    """Timelines of a section that show anything."""
    blocks = (block for block in report.blocks(slug) if isinstance(block, Timeline))
    return tuple(block for block in blocks if block.lanes and block.end_ns > block.start_ns)


def sentences(report: Report, slug: str) -> tuple[str, ...]:
    """Sentences of a section."""
    return tuple(block.text for block in report.blocks(slug) if isinstance(block, Prose))
