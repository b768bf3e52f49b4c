"""Bars below one another, each with its name and its value."""

from __future__ import annotations

from traceviz.core.units import Unit, format_ratio, format_value
from traceviz.render.figures.values import RankedBar, RankedBars
from traceviz.render.svg.elements import QUIET, TEXT, Element, group, inks, line, rect, text
from traceviz.render.svg.layout import LABEL_SIZE, Drawing, axis_title, horizontal_axis, said
from traceviz.render.svg.lettering import width_of
from traceviz.render.svg.rows import (
    ROW_HEIGHT,
    axis_below,
    base_line,
    height_below,
    room_for_labels,
    row_labels,
    row_top,
    rows_height,
)
from traceviz.render.svg.scales import Scale, scale

_TICKS_APART = 84.0
_FIRST = "series-0"
"""Key of the colour of bars that differ by name; no key of a report is like it."""


def draw(figure: RankedBars, width: float) -> Drawing:
    """The bars above their axis."""
    colours = inks([_FIRST] if figure.one_color else [bar.key for bar in figure.bars])
    names = [bar.label for bar in figure.bars]
    values = [format_value(bar.value, figure.axis.unit) for bar in figure.bars]
    left = room_for_labels(names, width)
    right = max((width_of(value, LABEL_SIZE) for value in values), default=0.0) + 14
    length = width - left - right
    horizontal = scale(figure.axis, _ends(figure), length, _TICKS_APART, at_zero=True)
    height = rows_height(len(figure.bars))
    bars, shown, whiskers = [], [], []
    for number, (bar, value) in enumerate(zip(figure.bars, values, strict=True)):
        ink = colours[_FIRST if figure.one_color else bar.key]
        begin, end = horizontal.place(0), horizontal.place(bar.value or 0)
        if bar.value is not None:
            told = _told(bar, figure.axis.unit)
            x, long = left + min(begin, end), abs(end - begin)
            bars.append(rect(x, row_top(number), long, ROW_HEIGHT, told, fill=ink))
            whiskers += _whisker(bar, horizontal, left, number)
        reach = max(end, horizontal.place(bar.high)) if bar.high is not None else max(end, begin)
        shown.append(text(left + reach + 6, base_line(number), value))
    title = axis_title(figure.axis, horizontal)
    return Drawing(
        (
            horizontal_axis(horizontal, left, 0, height, width=width),
            row_labels(names, left),
            group(*bars),
            *((group(*whiskers, stroke=TEXT, stroke_width=1.5),) if whiskers else ()),
            group(*shown, font_size=LABEL_SIZE, fill=TEXT),
            line(left + horizontal.place(0), 0, left + horizontal.place(0), height, stroke=QUIET, stroke_width=1),
            *axis_below(title, left, length, height),
        ),
        height + height_below(title),
    )


def _ends(figure: RankedBars) -> list[float]:
    return [end for bar in figure.bars for end in (bar.value, bar.low, bar.high) if end is not None]


def _told(bar: RankedBar, unit: Unit) -> str:
    value = format_value(bar.value, unit)
    interval = (
        ""
        if bar.low is None or bar.high is None
        else f"{format_value(bar.low, unit)} to {format_value(bar.high, unit)}"
    )
    share = "" if bar.share is None or unit == "ratio" else format_ratio(bar.share)
    return f"{bar.label}: {said(value, interval, share, bar.detail)}"


def _whisker(bar: RankedBar, horizontal: Scale, left: float, number: int) -> list[Element]:
    if bar.low is None or bar.high is None:
        return []
    middle = row_top(number) + ROW_HEIGHT / 2
    return whisker(left + horizontal.place(bar.low), left + horizontal.place(bar.high), middle)


def whisker(low: float, high: float, middle: float) -> list[Element]:
    """An interval as a line with ends, lying at the height ``middle``."""
    return [
        line(low, middle, high, middle),
        line(low, middle - 4, low, middle + 4),
        line(high, middle - 4, high, middle + 4),
    ]
