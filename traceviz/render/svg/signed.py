"""Changes below one another: bars to both sides of zero, each with its name and what it was and is."""

from __future__ import annotations

from traceviz.render.figures.values import SignedBar, SignedBars
from traceviz.render.svg.elements import BAD, GOOD, QUIET, TEXT, Ink, group, inks, line, rect, text
from traceviz.render.svg.layout import LABEL_SIZE, TICK_GAP, Drawing, axis_title, horizontal_axis, said
from traceviz.render.svg.lettering import width_of
from traceviz.render.svg.rows import (
    ROW_HEIGHT,
    axis_below,
    base_line,
    room_for_labels,
    row_labels,
    row_top,
    rows_height,
)
from traceviz.render.svg.scales import scale
from traceviz.units import format_change

_TICKS_APART = 84.0
_FIRST = "series-0"
"""Key of the colour of changes of which neither direction is a gain; no key of a report is like it."""
_GAP = 12.0
_LEAST_BAR = 1.0
"""Pixels of the smallest bar: a change that is there is seen."""


def draw(figure: SignedBars, width: float) -> Drawing:
    """The bars above their axis; what each was and is stands at its right, in a column."""
    names = [f"{bar.label} ({bar.remark})" if bar.remark else bar.label for bar in figure.bars]
    left = room_for_labels(names, width)
    changes = [format_change(bar.value, figure.axis.unit) for bar in figure.bars]
    beside = max((width_of(bar.beside, LABEL_SIZE) for bar in figure.bars), default=0.0)
    widest = max((width_of(change, LABEL_SIZE) for change in changes), default=0.0)
    length = width - left - widest - (beside + _GAP if beside else 0.0) - _GAP
    values = [bar.value for bar in figure.bars if bar.value is not None]
    horizontal = scale(figure.axis, [*values, 0.0], length, _TICKS_APART, at_zero=True)
    height, zero = rows_height(len(figure.bars)), horizontal.place(0)
    bars, shown, words = [], [], []
    for number, (bar, change) in enumerate(zip(figure.bars, changes, strict=True)):
        if bar.value is not None:
            end = horizontal.place(bar.value)
            long = max(abs(end - zero), _LEAST_BAR)
            begin = left + (zero if bar.value >= 0 else zero - long)
            bars.append(rect(begin, row_top(number), long, ROW_HEIGHT, _told(bar, change), fill=_ink(bar, figure)))
        shown.append(text(left + length + _GAP + widest, base_line(number), change))
        words.append(text(width, base_line(number), bar.beside))
    title = axis_title(figure.axis, horizontal)
    return Drawing(
        (
            horizontal_axis(horizontal, left, 0, height),
            row_labels(names, left),
            group(*bars),
            group(*shown, font_size=LABEL_SIZE, fill=TEXT, text_anchor="end"),
            *((group(*words, font_size=LABEL_SIZE, fill=QUIET, text_anchor="end"),) if beside else ()),
            line(left + zero, 0, left + zero, height, stroke=QUIET, stroke_width=1),
            *axis_below(title, left + length / 2, height),
        ),
        height + TICK_GAP + LABEL_SIZE * (2.9 if title else 1.4),
    )


def _ink(bar: SignedBar, figure: SignedBars) -> Ink:
    """Green for a gain, red for a loss; one colour where neither is."""
    if not figure.better:
        return inks([_FIRST])[_FIRST]
    return GOOD if ((bar.value or 0.0) < 0) == (figure.better == "lower") else BAD


def _told(bar: SignedBar, change: str) -> str:
    return f"{bar.label}: {said(change, bar.beside, bar.remark)}"
