"""Figures as text, for readers who cannot see them."""

from __future__ import annotations

from collections.abc import Iterator

from traceviz.core.sanitize import bounded, visible
from traceviz.core.units import Unit, counted, format_change, format_ratio, format_value
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
