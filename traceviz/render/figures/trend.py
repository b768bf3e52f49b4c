"""A figure from run to run, its levels, and the changes between them."""

from __future__ import annotations

import re

from traceviz.core.units import format_change
from traceviz.render.figures.reading import about, grid_with, number, rows, text
from traceviz.render.figures.values import Axis, CurvePoint, Curves, Line, Mark, NoFigure, Panel
from traceviz.report import Report, Series

_SLUG = "trend"
MOST = 4
"""Limit of groups, the worst first."""
RUN, LEVEL = "run", "level"
"""Keys of the points and of the levels."""
_NUMBERS = re.compile(r"(\d+)")


def trend(report: Report) -> Curves | NoFigure:
    """Draw a panel for each group: its runs, its levels, and a mark at each change of level."""
    series = [block for block in report.blocks(_SLUG) if isinstance(block, Series) and block.points]
    if not series:
        return NoFigure("no run has the figure")
    drawn = series[:MOST]
    names = _names(drawn)
    places = {name: place for place, name in reversed(list(enumerate(names)))}
    is_one = len(drawn) == 1
    by = next((text(fact.value) for fact in report.run if fact.key == "by"), "")
    panels = tuple(_panel(one, places, is_one=is_one) for one in drawn)
    left = len(series) - len(drawn)
    return Curves(
        next(section.title for section in report.sections if section.slug == _SLUG),
        drawn[0].title.partition(";")[0] if is_one else about(report),
        Axis("" if by == "date" else by, "text", names=names),
        panels,
        marks=_marks(report, drawn[0]) if is_one else (),
        notes=(f"{left} more groups are in the tables.",) if left > 0 else (),
    )


def _names(series: list[Series]) -> tuple[str, ...]:
    """Return the names on the axis: the runs of one group, or the sorted unique keys of several groups."""
    if len(series) == 1:
        return tuple(point.label for point in series[0].points)
    return tuple(sorted({point.label for one in series for point in one.points}, key=_natural))


def _natural(name: str) -> list[tuple[int, int, str]]:
    """Return a sort key that orders ``v2`` before ``v10``; dates need no special treatment."""
    parts = [part for part in _NUMBERS.split(name) if part]
    return [(0, int(part), "") if part.isdecimal() and len(part) < 4_000 else (1, 0, part) for part in parts]


def _panel(series: Series, places: dict[str, int], *, is_one: bool) -> Panel:
    xs = [float(place if is_one else places[point.label]) for place, point in enumerate(series.points)]
    runs = tuple(CurvePoint(x, point.value, label=point.label) for x, point in zip(xs, series.points, strict=True))
    group = "" if is_one else series.title.rpartition(": ")[0]
    axis = Axis(group, series.unit, start=_start(series))
    ends = (*(level.start for level in series.levels[1:]), len(xs))
    levels: list[CurvePoint] = []
    for level, end in zip(series.levels, ends, strict=False):
        levels += [CurvePoint(xs[level.start] - 0.5, level.value), CurvePoint(xs[end - 1] + 0.5, None)]
    lines = (Line(LEVEL, "level", tuple(levels), "steps"),) if levels else ()
    return Panel(axis, (Line(RUN, "run", runs, "points"), *lines))


def _start(series: Series) -> float | None:
    """Return the axis start: below the smallest value if all are close, so that a change of 5 % is visible."""
    values = [point.value for point in series.points if point.value is not None]
    low, high = min(values, default=0.0), max(values, default=0.0)
    return low - (high - low) * 0.25 if low > 0 and high < 2 * low and high > low else None


def _marks(report: Report, series: Series) -> tuple[Mark, ...]:
    """Mark the changes of level, halfway to the run before, with their size."""
    grid = grid_with(report, _SLUG, "at", "before", "after", "change", "verdict")
    changes = {text(row["at"]): number(row["change"]) for row in rows(grid)} if grid is not None else {}
    marks = []
    for level in series.levels[1:]:
        name = series.points[level.start].label
        change = changes.get(name)
        words = f"{format_change(change, 'ratio')}" if change is not None else ""
        marks.append(Mark(level.start - 0.5, f"{name}{f': {words}' if words else ''}"))
    return tuple(marks)
