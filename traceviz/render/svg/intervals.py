"""Values one below another, each with its interval, and a reference line."""

from __future__ import annotations

from traceviz.core.units import format_value
from traceviz.render.figures.values import Interval, Intervals
from traceviz.render.svg.elements import QUIET, TEXT, Element, element, group, inks, line, text
from traceviz.render.svg.layout import LABEL_SIZE, Drawing, said, with_title
from traceviz.render.svg.lettering import shortened, width_of
from traceviz.render.svg.ranked import whisker
from traceviz.render.svg.rows import ROW_HEIGHT, Rows, base_line, lay_rows, room_right, row_top

_RADIUS = 4.5
_MOST_BESIDE = 0.3
"""Part of the figure's width that the text at the end of rows may take."""


def draw(figure: Intervals, width: float) -> Drawing:
    """Draw the intervals above their axis."""
    colours = inks(row.key for row in figure.rows)
    names = [row.label for row in figure.rows]
    values = [
        shortened(row.beside or format_value(row.value, figure.axis.unit), width * _MOST_BESIDE, LABEL_SIZE)
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
        told = _told(row, figure)
        ink = colours[row.key]
        if row.low is not None and row.high is not None:
            low, high = (rows.left + rows.scale.place(end) for end in (row.low, row.high))
            marks.append(group(element("title", told), *whisker(low, high, middle), stroke=ink, stroke_width=2))
        at = rows.left + rows.scale.place(row.value)
        marks.append(with_title("circle", told, cx=at, cy=middle, r=_RADIUS, fill=ink))
    drawing = rows.drawing(
        *_reference(figure, rows),
        *marks,
        group(*shown, font_size=LABEL_SIZE, fill=TEXT, text_anchor="end"),
        head=head,
    )
    return Drawing((group(*drawing.elements, transform=f"translate(0 {head:g})"),), drawing.height)


def _told(row: Interval, figure: Intervals) -> str:
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
