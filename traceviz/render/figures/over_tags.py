"""Figures over the numbers of a tag (batch size, threads, devices): curves with intervals, and scaling."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from traceviz.render.figures.reading import Row, about, column, grid_with, number, rows, sentences, text
from traceviz.render.figures.values import Axis, CurvePoint, Curves, Line, NoFigure, Panel, spans_decades
from traceviz.report import TAG, Grid, Report

_MEASURE = "measure."
"""Prefix of the columns of further figures of a curve."""
_FAR = 8.0
"""Ratio of the largest to the smallest number from which the axis is logarithmic."""
_IDEAL = "ideal"
MOST = 8
"""Limit of the curves of a panel."""


def curve(report: Report) -> Curves | NoFigure:
    """Draw a curve's first figure with its intervals and the others below, a line for each value of the other tags."""
    grid = grid_with(report, "curve", "value", "low", "high")
    tag = _tag(grid)
    if grid is None or tag is None:
        return NoFigure("no curve over a tag was asked for (--curve TAG)")
    others = [one.name for one in grid.columns if one.name.startswith(_MEASURE)]
    panels = [_panel(grid, tag, "value", ("low", "high")), *(_panel(grid, tag, name) for name in others)]
    title = column(grid, "value").label
    return _curves(report, "curve", grid, tag, f"{title} over {tag.removeprefix(TAG)}", panels)


def scaling(report: Report) -> Curves | NoFigure:
    """Draw the speed-up, with the ideal and Amdahl's law as references, and the efficiency below."""
    grid = grid_with(report, "scaling", "speedup", "ideal", "efficiency", "amdahl")
    tag = _tag(grid)
    if grid is None or tag is None:
        return NoFigure("no scaling was asked for (--scaling TAG)")
    speedup = _panel(grid, tag, "speedup", ("speedup_low", "speedup_high"))
    laws = tuple(
        Line(key, label, points, "dashed")
        for key, label, points in _lines(grid, tag, "amdahl")
        if any(point.y is not None for point in points)
    )
    ideal = max((points for _, _, points in _lines(grid, tag, "ideal")), key=len)
    panels = [
        Panel(speedup.axis, (*speedup.lines, *laws, Line(_IDEAL, "ideal", ideal, "dashed"))),
        _panel(grid, tag, "efficiency"),
    ]
    title = f"Speed-up over {tag.removeprefix(TAG)}"
    return _curves(
        report, "scaling", grid, tag, title, panels, ("Dashed: ideal, and by Amdahl's law.",) if laws else ()
    )


def _tag(grid: Grid | None) -> str | None:
    """Name of the column with the numbers of the tag."""
    columns = grid.columns if grid is not None else ()
    return next((one.name for one in columns if one.name.startswith(TAG) and one.unit == "number"), None)


def _curves(  # noqa: PLR0917 (what is drawn, and its words)
    report: Report, slug: str, grid: Grid, tag: str, title: str, panels: list[Panel], notes: tuple[str, ...] = ()
) -> Curves:
    numbers = [value for row in rows(grid) if (value := number(row[tag])) is not None]
    is_log = bool(numbers) and min(numbers) > 0 and max(numbers) / min(numbers) >= _FAR
    intervals = any(point.low is not None for line in panels[0].lines for point in line.points)
    said: tuple[str, ...] = ("Vertical strokes: 95 % intervals.",) if intervals else ()
    left = len(list(_lines(grid, tag, tag))) - MOST
    said += (f"{left} more curves are in the table.",) if left > 0 else ()
    x = Axis(tag.removeprefix(TAG), "number", log=is_log)
    best = sentences(report, slug)[:1] if len(list(_lines(grid, tag, tag))) == 1 else ()
    return Curves(title, about(report), x, tuple(panels), notes=(*notes, *said, *best))


def _panel(grid: Grid, tag: str, name: str, ends: tuple[str, str] | None = None) -> Panel:
    shown = column(grid, name)
    lines = list(_lines(grid, tag, name, ends))[:MOST]
    label = shown.label.lower() if shown.label[1:2].islower() else shown.label
    is_log = spans_decades((point.y for _, _, points in lines for point in points), shown.unit)
    return Panel(Axis(label, shown.unit, log=is_log), tuple(Line(*line) for line in lines))


def _lines(
    grid: Grid, tag: str, name: str, ends: tuple[str, str] | None = None
) -> Iterator[tuple[str, str, tuple[CurvePoint, ...]]]:
    """Return key, label and points of each line: one per combination of the other tags."""
    others = [one.name for one in grid.columns if one.name.startswith(TAG) and one.name != tag]
    courses: dict[str, list[Row]] = {}
    for row in rows(grid):
        courses.setdefault(", ".join(text(row[other]) for other in others), []).append(row)
    label_of: Callable[[str], str] = lambda course: course or column(grid, name).label  # noqa: E731
    for course, of_course in courses.items():
        yield course or "value", label_of(course), tuple(_points(of_course, tag, name, ends))


def _points(table: Iterable[Row], tag: str, name: str, ends: tuple[str, str] | None) -> Iterator[CurvePoint]:
    for row in table:
        x = number(row[tag])
        if x is not None:
            low, high = (number(row[end]) for end in ends) if ends else (None, None)
            yield CurvePoint(x, number(row[name]), low, high)
