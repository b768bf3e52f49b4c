"""A figure over a numeric tag of a comparison, or over the runs of an archive."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traceviz.render.figures.of_reports import has_columns, quantity, rows_of, run_fact
from traceviz.render.figures.values import Axis, CurvePoint, Curves, Figure, Line, Mark, NoFigure, Panel
from traceviz.report import TAG, Column, Grid, Report, Section, Series
from traceviz.units import Value, format_value

_SLUG = "curve"
_TREND = "trend"
_WIDE = 16.0
"""From this factor between the smallest and the largest number on, an axis of numbers above zero is logarithmic."""
_MOST_SERIES = 4


def curve(report: Report) -> Figure | NoFigure:
    """Lines with intervals over the tag; of a trend, the points of each group and its levels."""
    section = next((section for section in report.sections if section.slug == _SLUG), None)
    grid = next((grid for grid in report.grids(_SLUG) if has_columns(grid, "value") and _tag(grid) is not None), None)
    if section is not None and grid is not None and grid.rows:
        return _over_tag(section, grid)
    series = [
        block
        for block in report.blocks(_TREND)
        if isinstance(block, Series) and any(point.value is not None for point in block.points)
    ]
    if series:
        return _over_runs(report, series)
    return NoFigure("it has no curve over a tag (compare --curve TAG), and is no trend")


def _tag(grid: Grid) -> Column | None:
    """The column of the tag whose numbers the curve is over."""
    return next((column for column in grid.columns if column.name.startswith(TAG) and column.unit == "number"), None)


def _over_tag(section: Section, grid: Grid) -> Curves:
    tag = _tag(grid)
    assert tag is not None
    others = [column.name for column in grid.columns if column.name.startswith(TAG) and column is not tag]
    value = next(column for column in grid.columns if column.name == "value")
    by_others: dict[tuple[Value, ...], list[dict[str, Value]]] = {}
    for row in rows_of(grid):
        by_others.setdefault(tuple(row[name] for name in others), []).append(row)
    lines = (
        Line(_name(others, key) or "value", _name(others, key) or value.label, tuple(_points(rows, tag.name)))
        for key, rows in by_others.items()
    )
    numbers = [quantity(row[tag.name]) for row in rows_of(grid)]
    log = min(numbers) > 0 and max(numbers) >= _WIDE * min(numbers)
    has_intervals = any(row.get("low") is not None for row in rows_of(grid))
    return Curves(
        title=section.title,
        subtitle="bars are 95 % intervals" if has_intervals else "",
        x=Axis(tag.label, "number", log=log),
        panels=(Panel(Axis(value.label, value.unit), tuple(lines)),),
        marks=tuple(_missing(grid, tag.name)),
    )


def _missing(grid: Grid, tag: str) -> Iterator[Mark]:
    """Numbers without a value, and why they have none."""
    for row in rows_of(grid):
        if row["value"] is None:
            yield Mark(quantity(row[tag]), str(row.get("verdict") or "not measured"))


def _name(others: Sequence[str], values: Sequence[Value]) -> str:
    """``model resnet50, threads 4``."""
    return ", ".join(f"{name.removeprefix(TAG)} {value}" for name, value in zip(others, values, strict=True))


def _points(rows: Sequence[dict[str, Value]], tag: str) -> Iterator[CurvePoint]:
    for row in sorted(rows, key=lambda row: quantity(row[tag])):
        low, high = (None if row.get(name) is None else quantity(row[name]) for name in ("low", "high"))
        y = None if row["value"] is None else quantity(row["value"])
        yield CurvePoint(quantity(row[tag]), y, low, high)


def _over_runs(report: Report, series: Sequence[Series]) -> Curves:
    """A panel for each group of runs; names of runs that all panels share are those of the axis."""
    shown = series[:_MOST_SERIES]
    section = report.section(_TREND)
    names = tuple(dict.fromkeys(point.label for one in shown for point in one.points))
    place = {name: position for position, name in enumerate(names)} if len(shown) > 1 else None
    panels = tuple(_panel(one, place, str(run_fact(report, "metric") or ""), alone=len(shown) == 1) for one in shown)
    by = run_fact(report, "by")
    labels = names if place is not None else tuple(point.label for point in shown[0].points)
    more = len(series) - len(shown)
    return Curves(
        title=section.title,
        subtitle=report.verdict.sentence,
        x=Axis("" if by in {None, "date"} else str(by), "text", names=labels),
        panels=panels,
        marks=tuple(_marks(shown[0])) if len(shown) == 1 else (),
        notes=(f"{more} more groups are left out.",) if more else (),
    )


def _panel(series: Series, place: dict[str, int] | None, metric: str, *, alone: bool) -> Panel:
    def at(position: int) -> float:
        return position if place is None else place[series.points[position].label]

    points = tuple(CurvePoint(at(number), point.value) for number, point in enumerate(series.points))
    lines = [Line("runs", "runs", points, "points")]
    for number, level in enumerate(series.levels):
        last = series.levels[number + 1].start - 1 if number + 1 < len(series.levels) else len(series.points) - 1
        ends = tuple(CurvePoint(at(position), level.value) for position in (level.start, last))
        lines.append(Line("levels", "level", ends, "dashed"))
    return Panel(Axis(metric if alone else series.title, series.unit), tuple(lines))


def _marks(series: Series) -> Iterator[Mark]:
    for before, level in zip(series.levels, series.levels[1:], strict=False):
        values = (format_value(value, series.unit) for value in (before.value, level.value))
        yield Mark(level.start - 0.5, f"{series.points[level.start].label}: {' → '.join(values)}")
