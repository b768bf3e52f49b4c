"""Figures of rows one below another: ranked bars, changes, and values with intervals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from traceviz.core.sanitize import bounded, visible
from traceviz.core.units import Unit, format_change, format_ratio, format_value
from traceviz.render.figures.values import Axis, Interval, Intervals, RankedBar, RankedBars, SignedBar, SignedBars
from traceviz.render.svg.elements import (
    BAD,
    GOOD,
    QUIET,
    TEXT,
    Element,
    Ink,
    element,
    group,
    inks,
    line,
    rect,
    shortened,
    shortened_inside,
    text,
    width_of,
)
from traceviz.render.svg.layout import LABEL_SIZE, TICK_GAP, Drawing, axis_title, horizontal_axis, said, with_title
from traceviz.render.svg.scales import Scale, scale
from traceviz.render.text import simplify_signature

ROW_HEIGHT, ROW_GAP = 22.0, 9.0
_MOST_OF_NAMES = 0.38
"""Part of the figure's width that names may take."""
_GAP = 10.0
_TICKS_APART = 84.0


@dataclass(frozen=True, slots=True)
class Rows:
    """Positions of the rows of a figure.

    Args:
        names: The name of each row.
        axis: The horizontal axis.
        scale: Its scale, relative to ``left``.
        width: Pixels of the whole figure.
        left: Start of the axis in pixels.
        length: Pixels of the axis.
    """

    names: Sequence[str]
    axis: Axis
    scale: Scale
    width: float
    left: float
    length: float

    @property
    def height(self) -> float:
        """Height of all rows in pixels, without the axis."""
        return max(len(self.names), 1) * (ROW_HEIGHT + ROW_GAP) - ROW_GAP + 8

    def drawing(self, *body: Element, head: float = 0.0) -> Drawing:
        """Draw the rows with their names, ``head`` pixels from the top, above the axis and its title."""
        title = axis_title(self.axis, self.scale)
        elements = (
            horizontal_axis(self.scale, self.left, 0, self.height, width=self.width),
            group(
                *(_label(name, number, self.left) for number, name in enumerate(self.names)),
                font_size=LABEL_SIZE,
                fill=TEXT,
                text_anchor="end",
            ),
            *body,
            *axis_below(title, self.left, self.length, self.height),
        )
        return Drawing(elements, head + self.height + TICK_GAP + LABEL_SIZE * (2.9 if title else 1.4))


def lay_rows(
    names: Sequence[str], axis: Axis, values: Iterable[float], width: float, right: float, *, at_zero: bool = False
) -> Rows:
    """Lay rows out.

    Args:
        names: The name of each row.
        axis: The horizontal axis.
        values: Values that must fit on the axis.
        width: Pixels of the whole figure.
        right: Pixels that stay free right of the axis.
        at_zero: True if the axis includes zero.
    """
    widest = max((width_of(visible(bounded(simplify_signature(name))), LABEL_SIZE) for name in names), default=0.0)
    left = min(widest, width * _MOST_OF_NAMES) + _GAP
    length = width - left - right
    return Rows(names, axis, scale(axis, list(values), length, _TICKS_APART, at_zero=at_zero), width, left, length)


def room_right(texts: Sequence[str], gap: float = 14.0) -> float:
    """Measure the room for texts at the right of rows."""
    return max((width_of(text, LABEL_SIZE) for text in texts), default=0.0) + gap


def row_top(number: int) -> float:
    """Return the top of a row."""
    return 4 + number * (ROW_HEIGHT + ROW_GAP)


def base_line(number: int) -> float:
    """Return the base line of the letters of a row."""
    return row_top(number) + ROW_HEIGHT / 2 + LABEL_SIZE * 0.35


def named(label: str, remark: str) -> str:
    """Return a name with a remark: ``gemm (new)``."""
    return f"{label} ({remark})" if remark else label


def axis_below(title: str, left: float, length: float, height: float) -> tuple[Element, ...]:
    """Draw the centred title of an axis below its ticks."""
    if not title:
        return ()
    title, middle = shortened(title, length, LABEL_SIZE), left + length / 2
    y = height + TICK_GAP + LABEL_SIZE * 2.5
    return (text(middle, y, title, font_size=LABEL_SIZE, fill=QUIET, text_anchor="middle"),)


def _label(name: str, number: int, left: float) -> Element:
    shown = shortened_inside(simplify_signature(name), left - _GAP + 0.01, LABEL_SIZE)  # the longest fits exactly
    whole = (element("title", name),) if shown != visible(bounded(name)) else ()
    return element("text", shown, *whole, x=left - _GAP, y=base_line(number))


_FIRST = "series-0"
"""Key of the colour of bars that differ by name; no report uses this key."""


def draw_ranked(figure: RankedBars, width: float) -> Drawing:
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
            bars.append(rect(x, row_top(number), long, ROW_HEIGHT, _describe_bar(bar, figure.axis.unit), fill=ink))
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


def _describe_bar(bar: RankedBar, unit: Unit) -> str:
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


_MOST_OF_CHANGES = 0.34
"""Part of the figure's width that the text at the end of rows may take."""


def draw_signed(figure: SignedBars, width: float) -> Drawing:
    """Draw the bars above their axis, each followed by its change and text."""
    names = [named(bar.label, bar.remark) for bar in figure.bars]
    changes = [format_change(bar.value, figure.axis.unit) for bar in figure.bars]
    beside = [named(change, bar.beside) for bar, change in zip(figure.bars, changes, strict=True)]
    shown = [shortened(words, width * _MOST_OF_CHANGES, LABEL_SIZE) for words in beside]
    values = [0.0, *(bar.value for bar in figure.bars if bar.value is not None)]
    rows = lay_rows(names, figure.axis, values, width, room_right(shown), at_zero=True)
    zero = rows.scale.place(0)
    bars = []
    for number, (bar, name, words) in enumerate(zip(figure.bars, names, beside, strict=True)):
        end = rows.scale.place(bar.value or 0)
        x, long = rows.left + min(zero, end), abs(end - zero)
        bars.append(rect(x, row_top(number), long, ROW_HEIGHT, f"{name}: {words}", fill=_ink(bar, figure)))
    changes_right = (text(width, base_line(number), words) for number, words in enumerate(shown))
    return rows.drawing(
        *bars,
        group(*changes_right, font_size=LABEL_SIZE, fill=TEXT, text_anchor="end"),
        line(rows.left + zero, 0, rows.left + zero, rows.height, stroke=QUIET, stroke_width=1),
    )


def _ink(bar: SignedBar, figure: SignedBars) -> Ink:
    """Return green for a gain and red for a loss; one colour if neither direction is a gain."""
    if not figure.better or not bar.value:
        return inks(["series"])["series"]
    is_gain = (bar.value < 0) == (figure.better == "lower")
    return GOOD if is_gain else BAD


_RADIUS = 4.5
_MOST_OF_VALUES = 0.3
"""Part of the figure's width that the text at the end of rows may take."""


def draw_intervals(figure: Intervals, width: float) -> Drawing:
    """Draw the intervals above their axis."""
    colours = inks(row.key for row in figure.rows)
    names = [row.label for row in figure.rows]
    values = [
        shortened(row.beside or format_value(row.value, figure.axis.unit), width * _MOST_OF_VALUES, LABEL_SIZE)
        for row in figure.rows
    ]
    ends = [end for row in figure.rows for end in (row.value, row.low, row.high) if end is not None]
    ends += [figure.reference] if figure.reference is not None else []
    rows = lay_rows(names, figure.axis, ends, width, room_right(values))
    head = LABEL_SIZE * 1.8 if figure.reference is not None and figure.reference_label else 0.0
    marks, shown = [], []
    for number, (row, value) in enumerate(zip(figure.rows, values, strict=True)):
        shown.append(text(width, base_line(number), value))
        if row.value is None:
            continue
        middle = row_top(number) + ROW_HEIGHT / 2
        told = _describe_interval(row, figure)
        ink = colours[row.key]
        if row.low is not None and row.high is not None:
            low, high = (rows.left + rows.scale.place(end) for end in (row.low, row.high))
            marks.append(group(element("title", told), *whisker(low, high, middle), stroke=ink, stroke_width=2))
        at = rows.left + rows.scale.place(row.value)
        marks.append(with_title("circle", told, cx=at, cy=middle, r=_RADIUS, fill=ink))
    drawing = rows.drawing(
        *_reference(figure, rows), *marks, group(*shown, font_size=LABEL_SIZE, fill=TEXT, text_anchor="end"), head=head
    )
    return Drawing((group(*drawing.elements, transform=f"translate(0 {head:g})"),), drawing.height)


def _describe_interval(row: Interval, figure: Intervals) -> str:
    unit = figure.axis.unit
    ends = ""
    if row.low is not None and row.high is not None:
        name = f"{figure.interval} " * bool(figure.interval)
        ends = f"{name}{format_value(row.low, unit)} to {format_value(row.high, unit)}"
    return f"{row.label}: {said(format_value(row.value, unit), ends, row.beside, row.detail)}"


def _reference(figure: Intervals, rows: Rows) -> tuple[Element, ...]:
    if figure.reference is None:
        return ()
    at = rows.left + rows.scale.place(figure.reference)
    drawn = line(at, 0, at, rows.height, stroke=QUIET, stroke_width=1.5, stroke_dasharray="4 3")
    label = shortened(figure.reference_label, rows.length, LABEL_SIZE)
    if not label:
        return (drawn,)
    half = width_of(label, LABEL_SIZE) / 2
    middle = min(max(at, rows.left + half), rows.left + rows.length - half)
    return drawn, text(middle, -6, label, font_size=LABEL_SIZE, fill=QUIET, text_anchor="middle")
