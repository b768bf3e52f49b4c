"""Changes one below another: bars from zero to the right or left, in the colours of gain and loss."""

from __future__ import annotations

from traceviz.core.units import format_change
from traceviz.render.figures.values import SignedBar, SignedBars
from traceviz.render.svg.elements import BAD, GOOD, QUIET, TEXT, Ink, group, inks, line, rect, text
from traceviz.render.svg.layout import LABEL_SIZE, Drawing
from traceviz.render.svg.lettering import shortened
from traceviz.render.svg.rows import ROW_HEIGHT, base_line, lay_rows, named, room_right, row_top

_MOST_BESIDE = 0.34
"""Part of the figure's width that the text at the end of rows may take."""


def draw(figure: SignedBars, width: float) -> Drawing:
    """Draw the bars above their axis, each followed by its change and text."""
    names = [named(bar.label, bar.remark) for bar in figure.bars]
    changes = [format_change(bar.value, figure.axis.unit) for bar in figure.bars]
    beside = [named(change, bar.beside) for bar, change in zip(figure.bars, changes, strict=True)]
    shown = [shortened(words, width * _MOST_BESIDE, LABEL_SIZE) for words in beside]
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
