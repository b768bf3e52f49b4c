"""Bars one below another, each with its name and its value."""

from __future__ import annotations

from traceviz.core.units import Unit, format_ratio, format_value
from traceviz.render.figures.values import RankedBar, RankedBars
from traceviz.render.svg.elements import QUIET, TEXT, Element, group, inks, line, rect, text
from traceviz.render.svg.layout import LABEL_SIZE, Drawing, said
from traceviz.render.svg.rows import ROW_HEIGHT, base_line, lay_rows, room_right, row_top

_FIRST = "series-0"
"""Key of the colour of bars that differ by name; no report uses this key."""


def draw(figure: RankedBars, width: float) -> Drawing:
    """Draw the bars above their axis."""
    colours = inks([_FIRST] if figure.one_color else [bar.key for bar in figure.bars])
    names = [bar.label for bar in figure.bars]
    values = [format_value(bar.value, figure.axis.unit) for bar in figure.bars]
    ends = [end for bar in figure.bars for end in (bar.value, bar.low, bar.high) if end is not None]
    rows = lay_rows(names, figure.axis, ends, width, room_right(values), at_zero=True)
    begin = rows.scale.place(0)
    bars, shown, whiskers = [], [], []
    for number, (bar, value) in enumerate(zip(figure.bars, values, strict=True)):
        end = rows.scale.place(bar.value or 0)
        if bar.value is not None:
            ink = colours[_FIRST if figure.one_color else bar.key]
            x, long = rows.left + min(begin, end), abs(end - begin)
            bars.append(rect(x, row_top(number), long, ROW_HEIGHT, _told(bar, figure.axis.unit), fill=ink))
            if bar.low is not None and bar.high is not None:
                low, high = (rows.left + rows.scale.place(end) for end in (bar.low, bar.high))
                whiskers += whisker(low, high, row_top(number) + ROW_HEIGHT / 2)
        reach = max(end, begin) if bar.high is None else max(end, rows.scale.place(bar.high))
        shown.append(text(rows.left + reach + 6, base_line(number), value))
    return rows.drawing(
        group(*bars),
        *((group(*whiskers, stroke=TEXT, stroke_width=1.5),) if whiskers else ()),
        group(*shown, font_size=LABEL_SIZE, fill=TEXT),
        line(rows.left + begin, 0, rows.left + begin, rows.height, stroke=QUIET, stroke_width=1),
    )


def _told(bar: RankedBar, unit: Unit) -> str:
    value = format_value(bar.value, unit)
    is_known = bar.low is not None and bar.high is not None
    interval = f"{format_value(bar.low, unit)} to {format_value(bar.high, unit)}" if is_known else ""
    share = "" if bar.share is None or unit == "ratio" else format_ratio(bar.share)
    return f"{bar.label}: {said(value, interval, share, bar.detail)}"


def whisker(low: float, high: float, middle: float) -> list[Element]:
    """Draw a horizontal interval line with ends, at the height ``middle``."""
    return [
        line(low, middle, high, middle),
        line(low, middle - 4, low, middle + 4),
        line(high, middle - 4, high, middle + 4),
    ]
