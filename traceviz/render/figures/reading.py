"""Values and texts of a report for figures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from traceviz.core.sanitize import bounded, visible
from traceviz.core.units import Unit, Value, counted, format_change, format_ratio, format_value
from traceviz.render.figures.registry import figure_or_none
from traceviz.render.figures.values import (
    Curves,
    Figure,
    Interval,
    Intervals,
    Line,
    Panel,
    RankedBars,
    SignedBars,
    StackedBars,
)
from traceviz.report import COMPARISON, POPULATION, Block, Column, Grid, Prose, Report, Timeline

Row = Mapping[str, Value]


def grid_with(report: Report, slug: str, *names: str, title: str | None = None) -> Grid | None:
    """Return the first non-empty grid of a section with these columns and this title, if any; else ``None``."""
    wanted = set(names)
    grids = (grid for grid in report.grids(slug) if grid.rows and title in {None, grid.title})
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
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


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


def api_name(report: Report) -> str:
    """Return the name of the devices' API, ``CUDA API`` or ``HIP API``, from the title of its section."""
    titles = (section.title for section in report.sections if section.slug == "cuda_api")
    return "HIP API" if next(titles, "").startswith("HIP") else "CUDA API"


def sentences(report: Report, slug: str) -> tuple[str, ...]:
    """Return the sentences of a section."""
    return tuple(block.text for block in report.blocks(slug) if isinstance(block, Prose))


_MOST = 12
"""Limit of the bars, rows and curves that are named."""
_LONGEST = 120


def in_words(figure: Figure) -> str:
    """Describe the figure: its values if there are few, else their range."""
    return " ".join(
        filter(None, (f"{figure.subtitle}." if figure.subtitle else "", *_sentences(figure), *figure.notes))
    )


def _sentences(figure: Figure) -> Iterator[str]:
    match figure:
        case StackedBars():
            yield from _of_stacked(figure)
        case RankedBars():
            values = (f"{_short(bar.label)} {format_value(bar.value, figure.axis.unit)}" for bar in figure.bars[:_MOST])
            yield _listed(values, len(figure.bars))
        case SignedBars():
            changes = (
                f"{_short(bar.label)} {format_change(bar.value, figure.axis.unit)}" for bar in figure.bars[:_MOST]
            )
            yield _listed(changes, len(figure.bars))
        case Intervals():
            yield _listed((_of_interval(row, figure.axis.unit) for row in figure.rows[:_MOST]), len(figure.rows))
        case Curves():
            curves = [(panel, line) for panel in figure.panels for line in panel.lines]
            yield _listed((_of_curve(panel, line) for panel, line in curves[:_MOST]), len(curves))


def _of_stacked(figure: StackedBars) -> Iterator[str]:
    unit, totals = figure.axis.unit, [row.total for row in figure.rows]
    if figure.whole:
        shares = (f"{_short(part.label)} {format_ratio(part.share or 0)}" for part in figure.whole[:_MOST])
        yield _listed(shares, len(figure.whole))
    if len(totals) > _MOST:
        ends = f"{format_value(min(totals), unit)} to {format_value(max(totals), unit)}"
        yield f"{counted(len(totals), 'bar')} of {ends}."
        return
    for row in figure.rows:
        name = _short(" ".join(filter(None, (figure.rows_label, row.label))))
        parts = (f"{_short(part.label)} {format_value(part.value, unit)}" for part in row.parts if part.value > 0)
        yield f"{name}: {', '.join(parts)}."


def _of_interval(row: Interval, unit: Unit) -> str:
    ends = ""
    if row.low is not None and row.high is not None:
        ends = f" ({format_value(row.low, unit)} to {format_value(row.high, unit)})"
    return f"{_short(row.label)} {format_value(row.value, unit)}{ends}"


def _of_curve(panel: Panel, line: Line) -> str:
    values = [point.y for point in line.points if point.y is not None]
    name = _short(line.label)
    if not values:
        return f"{name} was not measured"
    first, last = (format_value(value, panel.axis.unit) for value in (values[0], values[-1]))
    lowest, highest = (format_value(value, panel.axis.unit) for value in (min(values), max(values)))
    return f"{name} from {first} to {last}, between {lowest} and {highest}"


def _listed(parts: Iterator[str], count: int) -> str:
    more = f", and {count - _MOST:,} more" if count > _MOST else ""
    joined = ", ".join(parts)
    return f"{joined}{more}." if joined else ""


def _short(label: str) -> str:
    shown = visible(bounded(label))
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"


_NAMES: Mapping[str, Mapping[str, str]] = {
    COMPARISON: {
        "curve": "curve",
        "scaling": "scaling",
        "quality": "quality",
        "cuda_api": "api",
        "resources": "resources",
    },
    POPULATION: {"cuda_api": "frameworks"},
}
"""Name of the figure of a section, by the schema of the report and the slug of the section."""
MOST_PANELS = 2
"""Limit of the panels of curves in text; tables and lanes show the others."""


def text_figures(report: Report) -> dict[str, Curves | StackedBars]:
    """Return the figures that text can draw, by the slug of their section."""
    found = {}
    for slug, name in _NAMES.get(report.schema, {}).items():
        if any(section.slug == slug for section in report.sections):
            made = figure_or_none(report, name)
            if isinstance(made, Curves | StackedBars):
                found[slug] = made
    return found


def without_lanes(blocks: Iterable[Block], picture: Curves | StackedBars | None) -> tuple[Block, ...]:
    """Return the blocks of a section without the lanes of timelines that its picture shows."""
    panels = picture.panels[:MOST_PANELS] if isinstance(picture, Curves) else ()
    shown = {f"{panel.axis.label}, {line.label}" for panel in panels for line in panel.lines}
    return tuple(
        replace(block, lanes=tuple(lane for lane in block.lanes if lane.label not in shown))
        if isinstance(block, Timeline)
        else block
        for block in blocks
    )
