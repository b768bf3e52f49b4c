"""Figures of an archive: verdicts, time at stake, outliers, API calls, and a figure from run to run."""

from __future__ import annotations

import re

from traceviz.core.units import format_change
from traceviz.render.figures.of_comparisons import shares_by, stacked_shares
from traceviz.render.figures.reading import about, grid_with, number, rows, sentences, text
from traceviz.render.figures.values import (
    Axis,
    CurvePoint,
    Curves,
    Line,
    Mark,
    NoFigure,
    Panel,
    Part,
    RankedBar,
    RankedBars,
    SignedBar,
    SignedBars,
    StackedBars,
    StackedRow,
    spans_decades,
)
from traceviz.report import Bars, Report, Series

MOST_BARS = 12
"""Limit of the bars of a figure."""
_EVERY = "Every figure"
"""Title of the grid with all outlying figures."""


def verdicts(report: Report) -> StackedBars | NoFigure:
    """Draw the number of traces by verdict on their input."""
    bars = next((block for block in report.blocks("verdicts") if isinstance(block, Bars)), None)
    if bars is None:
        return NoFigure("no trace has a verdict")
    parts = tuple(Part(bar.key, bar.label, number(bar.value) or 0.0, bar.share) for bar in bars.bars if bar.share > 0)
    return StackedBars(bars.title, about(report), Axis("traces", "count"), (StackedRow("traces", parts),), whole=parts)


def at_stake(report: Report) -> RankedBars | NoFigure:
    """Draw the findings with the most time at stake over all traces; the times are upper bounds."""
    grid = grid_with(report, "at_stake", "code", "name", "stake_ns", "gpu_stake_ns")
    table = list(rows(grid)) if grid is not None else []
    of_gpus = any(number(row["gpu_stake_ns"]) for row in table)
    key, share = ("gpu_stake_ns", "share_of_gpu") if of_gpus else ("stake_ns", "share_of_recorded")
    drawn = [row for row in table if number(row[key])][:MOST_BARS]
    if not drawn:
        return NoFigure("no finding has time at stake")
    return RankedBars(
        "Time at stake over all traces",
        about(report),
        Axis("device time at most" if of_gpus else "time at most", "ns"),
        tuple(
            RankedBar(
                text(row["code"]),
                f"{text(row['name'])} ({text(row['code'])})",
                number(row[key]),
                number(row[share]),
                detail=f"{text(row['traces'])} traces",
            )
            for row in drawn
        ),
        notes=("Upper bounds, which may overlap: they do not add up.",),
    )


def outliers(report: Report) -> SignedBars | NoFigure:
    """Draw figures of traces that are far from those of similar traces, in modified z-scores."""
    grid = grid_with(report, "outliers", title=_EVERY) or grid_with(report, "outliers", "source", "metric", "score")
    table = list(rows(grid)) if grid is not None else []
    scored = [row for row in table if number(row["score"]) is not None]
    drawn = sorted(scored, key=lambda row: -abs(number(row["score"]) or 0.0))[:MOST_BARS]
    if not drawn:
        return NoFigure("no trace stands out")
    left = len(table) - len(drawn)
    return SignedBars(
        "Traces that stand out",
        about(report),
        Axis("modified z-score", "number"),
        tuple(
            SignedBar(
                text(row["metric"]),
                f"{text(row['metric'])}: {text(row['source'])}"
                + ("" if row["rank"] is None else f", rank {row['rank']}"),
                number(row["score"]),
                f"{text(row['shown'])} against {text(row['shown_median'])}",
            )
            for row in drawn
        ),
        notes=(
            *((f"{left:,} more figures of traces stand out.",) if left else ()),
            "Against the median of each trace's like: the same job and tags, or the same framework and GPU.",
        ),
    )


SLUG = "cuda_api"


def frameworks(report: Report) -> StackedBars | NoFigure:
    """Draw functions with at least 1 % of the API time of any framework."""
    grid = grid_with(report, SLUG, "by", "name", "share_of_api")
    if grid is None:
        said = sentences(report, SLUG)
        return NoFigure(said[0].rstrip(".") if said else "no trace recorded calls of the CUDA API")
    shares = shares_by((text(row["by"]), text(row["name"]), row["share_of_api"]) for row in rows(grid))
    by = next(column.label for column in grid.columns if column.name == "by")
    return stacked_shares(f"CUDA API time by function, for each {by.lower()}", about(report), shares, by.lower())


_SLUG = "trend"
MOST_GROUPS = 4
"""Limit of groups, the worst first."""
RUN, LEVEL = "run", "level"
"""Keys of the points and of the levels."""
_NUMBERS = re.compile(r"(\d+)")


def trend(report: Report) -> Curves | NoFigure:
    """Draw a panel for each group: its runs, its levels, and a mark at each change of level."""
    series = [block for block in report.blocks(_SLUG) if isinstance(block, Series) and block.points]
    if not series:
        return NoFigure("no run has the figure")
    drawn = series[:MOST_GROUPS]
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
    is_log = spans_decades((point.value for point in series.points), series.unit)
    axis = Axis(group, series.unit, start=None if is_log else _start(series), log=is_log)
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
