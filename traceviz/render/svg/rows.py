"""Rows one below another: their names, their positions, and the axis below them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from traceviz.core.sanitize import bounded, visible
from traceviz.render.figures.values import Axis
from traceviz.render.svg.elements import QUIET, TEXT, Element, element, group, text
from traceviz.render.svg.layout import LABEL_SIZE, TICK_GAP, Drawing, axis_title, horizontal_axis
from traceviz.render.svg.lettering import shortened, shortened_inside, width_of
from traceviz.render.svg.scales import Scale, scale
from traceviz.render.text import simplify_signature

ROW_HEIGHT, ROW_GAP = 22.0, 9.0
_MOST = 0.38
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
        # Draw the names, each left of its row; a shortened name shows all of it on hover.
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
    left = min(widest, width * _MOST) + _GAP
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
