"""Values below one another, each with its interval, and a line to compare them with."""

from __future__ import annotations

from traceviz.core.units import format_value
from traceviz.render.figures.values import Interval, Intervals
from traceviz.render.svg.elements import QUIET, TEXT, Element, element, group, inks, line, text
from traceviz.render.svg.layout import LABEL_SIZE, Drawing, axis_title, horizontal_axis, said, with_title
from traceviz.render.svg.lettering import shortened, width_of
from traceviz.render.svg.ranked import whisker
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
from traceviz.render.svg.scales import scale

_TICKS_APART = 84.0
_RADIUS = 4.5
_MOST_BESIDE = 0.3
"""Part of the figure's width that the words at the end of rows may take."""


def draw(figure: Intervals, width: float) -> Drawing:
    """The intervals above their axis."""
    colours = inks(row.key for row in figure.rows)
    names = [row.label for row in figure.rows]
    values = [
        shortened(row.beside or format_value(row.value, figure.axis.unit), width * _MOST_BESIDE, LABEL_SIZE)
        for row in figure.rows
    ]
    left = room_for_labels(names, width)
    right = max((width_of(value, LABEL_SIZE) for value in values), default=0.0) + 14
    length = width - left - right
    horizontal = scale(figure.axis, _ends(figure), length, _TICKS_APART)
    head = LABEL_SIZE * 1.8 if figure.reference is not None and figure.reference_label else 0.0
    height = rows_height(len(figure.rows))
    marks, shown = [], []
    for number, (row, value) in enumerate(zip(figure.rows, values, strict=True)):
        shown.append(text(width, base_line(number), value))
        if row.value is None:
            continue
        middle = row_top(number) + ROW_HEIGHT / 2
        told = _told(row, figure)
        ink = colours[row.key]
        if row.low is not None and row.high is not None:
            ends = left + horizontal.place(row.low), left + horizontal.place(row.high)
            marks.append(group(element("title", told), *whisker(*ends, middle), stroke=ink, stroke_width=2))
        at = left + horizontal.place(row.value)
        marks.append(with_title("circle", told, cx=at, cy=middle, r=_RADIUS, fill=ink))
    title = axis_title(figure.axis, horizontal)
    body = group(
        horizontal_axis(horizontal, left, 0, height, width=width),
        row_labels(names, left),
        *_reference(figure, left + horizontal.place(figure.reference or 0), left, length, height),
        *marks,
        group(*shown, font_size=LABEL_SIZE, fill=TEXT, text_anchor="end"),
        *axis_below(title, left, length, height),
        transform=f"translate(0 {head:g})",
    )
    return Drawing((body,), head + height + height_below(title))


def _ends(figure: Intervals) -> list[float]:
    ends = [end for row in figure.rows for end in (row.value, row.low, row.high) if end is not None]
    return ends if figure.reference is None else [*ends, figure.reference]


def _told(row: Interval, figure: Intervals) -> str:
    unit = figure.axis.unit
    ends = ""
    if row.low is not None and row.high is not None:
        name = f"{figure.interval} " * bool(figure.interval)
        ends = f"{name}{format_value(row.low, unit)} to {format_value(row.high, unit)}"
    return f"{row.label}: {said(format_value(row.value, unit), ends, row.beside, row.detail)}"


def _reference(figure: Intervals, at: float, left: float, length: float, height: float) -> tuple[Element, ...]:
    if figure.reference is None:
        return ()
    drawn = line(at, 0, at, height, stroke=QUIET, stroke_width=1.5, stroke_dasharray="4 3")
    label = shortened(figure.reference_label, length, LABEL_SIZE)
    half = width_of(label, LABEL_SIZE) / 2
    middle = min(max(at, left + half), left + length - half)
    return (
        (drawn, text(middle, -6, label, font_size=LABEL_SIZE, fill=QUIET, text_anchor="middle")) if label else (drawn,)
    )
