"""Reading reports for figures: rows of grids by column name, and numbers that can be drawn."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from traceviz.core.units import Value
from traceviz.report import Column, Grid, Prose, Report, Timeline

Row = Mapping[str, Value]


def grid_with(report: Report, slug: str, *names: str) -> Grid | None:
    """Return the first non-empty grid of a section with all these columns; ``None`` if there is none."""
    wanted = set(names)
    grids = (grid for grid in report.grids(slug) if grid.rows)
    return next((grid for grid in grids if wanted <= {column.name for column in grid.columns}), None)


def titled(report: Report, slug: str, title: str, *names: str) -> Grid | None:
    """Return the non-empty grid of a section with this title and these columns; ``None`` if there is none."""
    wanted = set(names)
    grids = (grid for grid in report.grids(slug) if grid.title == title and grid.rows)
    return next((grid for grid in grids if wanted <= {column.name for column in grid.columns}), None)


def rows(grid: Grid) -> Iterator[Row]:
    """Iterate over rows as mappings of column name to value."""
    names = [column.name for column in grid.columns]
    return (dict(zip(names, row, strict=True)) for row in grid.rows)


def column(grid: Grid, name: str) -> Column:
    """Return the column of this name.

    Raises:
        KeyError: there is none.
    """
    found = next((one for one in grid.columns if one.name == name), None)
    if found is None:
        raise KeyError(name)
    return found


def number(value: Value) -> float | None:
    """Return a number that can be drawn; ``None`` for any other value."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if is_number and isinstance(value, int | float) else None


def text(value: Value) -> str:
    """Return the text; empty for any other value."""
    return "" if value is None else str(value)


def about(report: Report) -> str:
    """Name the subject of a report: the first fact of its run."""
    return next((str(fact.value) for fact in report.run if fact.value is not None), "")


def of_trace(report: Report) -> str:
    """Return ``of slow.pt.trace.json.gz``, for subtitles; empty if no name is known."""
    name = about(report)
    return f"of {name}" if name else ""


def quantity(value: Value) -> float:
    """Return a number of a report; zero for a value that cannot be drawn."""
    return number(value) or 0.0


def timelines(report: Report, slug: str) -> tuple[Timeline, ...]:
    """Return the timelines of a section that are not empty."""
    blocks = (block for block in report.blocks(slug) if isinstance(block, Timeline))
    return tuple(block for block in blocks if block.lanes and block.end_ns > block.start_ns)


def sentences(report: Report, slug: str) -> tuple[str, ...]:
    """Return the sentences of a section."""
    return tuple(block.text for block in report.blocks(slug) if isinstance(block, Prose))
