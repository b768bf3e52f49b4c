"""Changes below one another: bars from zero to the right or to the left, coloured by whether they are a gain."""

from __future__ import annotations

from traceviz.core.units import format_change
from traceviz.render.figures.values import SignedBar, SignedBars
from traceviz.render.svg.elements import BAD, GOOD, QUIET, TEXT, Ink, group, inks, line, rect, text
from traceviz.render.svg.layout import LABEL_SIZE, Drawing, axis_title, horizontal_axis
from traceviz.render.svg.lettering import shortened, width_of
from traceviz.render.svg.rows import (
    ROW_HEIGHT,
    axis_below,
    base_line,
    height_below,
    named,
    room_for_labels,
    row_labels,
    row_top,
    rows_height,
)
from traceviz.render.svg.scales import scale

_TICKS_APART = 84.0
_MOST_BESIDE = 0.34
"""Part of the figure's width that the words at the end of rows may take."""


def draw(figure: SignedBars, width: float) -> Drawing:
    """The bars above their axis, and the change and a few words at the right of each."""
    names = [named(bar.label, bar.remark) for bar in figure.bars]
    changes = [format_change(bar.value, figure.axis.unit) for bar in figure.bars]
    beside = [named(change, bar.beside) for bar, change in zip(figure.bars, changes, strict=True)]
    shown = [shortened(words, width * _MOST_BESIDE, LABEL_SIZE) for words in beside]
    left = room_for_labels(names, width)
    right = max((width_of(words, LABEL_SIZE) for words in shown), default=0.0) + 14
    length = width - left - right
    values = [0.0, *(bar.value for bar in figure.bars if bar.value is not None)]
    horizontal = scale(figure.axis, values, length, _TICKS_APART, at_zero=True)
    height = rows_height(len(figure.bars))
    zero = horizontal.place(0)
    bars = []
    for number, (bar, name, words) in enumerate(zip(figure.bars, names, beside, strict=True)):
        end = horizontal.place(bar.value or 0)
        x, long = left + min(zero, end), abs(end - zero)
        told = f"{name}: {words}"
        bars.append(rect(x, row_top(number), long, ROW_HEIGHT, told, fill=_ink(bar, figure)))
    title = axis_title(figure.axis, horizontal)
    return Drawing(
        (
            horizontal_axis(horizontal, left, 0, height, width=width),
            row_labels(names, left),
            *bars,
            group(
                *(text(width, base_line(number), words) for number, words in enumerate(shown)),
                font_size=LABEL_SIZE,
                fill=TEXT,
                text_anchor="end",
            ),
            line(left + zero, 0, left + zero, height, stroke=QUIET, stroke_width=1),
            *axis_below(title, left, length, height),
        ),
        height + height_below(title),
    )


def _ink(bar: SignedBar, figure: SignedBars) -> Ink:
    """Green for a gain and red for a loss; one colour where neither is."""
    if not figure.better or not bar.value:
        return inks(["series"])["series"]
    is_gain = (bar.value < 0) == (figure.better == "lower")
    return GOOD if is_gain else BAD
