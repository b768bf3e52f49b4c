"""Names beside rows that lie below one another."""

from __future__ import annotations

from collections.abc import Sequence

from traceviz.core.sanitize import bounded, visible
from traceviz.render.svg.elements import QUIET, TEXT, Element, element, group, text
from traceviz.render.svg.layout import LABEL_SIZE, TICK_GAP
from traceviz.render.svg.lettering import shortened, shortened_inside, width_of
from traceviz.render.text import simplify_signature

ROW_HEIGHT, ROW_GAP = 22.0, 9.0
_MOST = 0.38
"""Part of the figure's width that names may take."""
_GAP = 10.0


def rows_height(count: int) -> float:
    """Pixels of so many rows."""
    return max(count, 1) * (ROW_HEIGHT + ROW_GAP) - ROW_GAP + 8


def row_top(number: int) -> float:
    """Where a row begins."""
    return 4 + number * (ROW_HEIGHT + ROW_GAP)


def base_line(number: int) -> float:
    """Where the letters of a row stand."""
    return row_top(number) + ROW_HEIGHT / 2 + LABEL_SIZE * 0.35


def named(label: str, remark: str) -> str:
    """A name with a remark: ``gemm (new)``."""
    return f"{label} ({remark})" if remark else label


def height_below(title: str) -> float:
    """Pixels of the ticks of an axis and of its title."""
    return TICK_GAP + LABEL_SIZE * (2.9 if title else 1.4)


def axis_below(title: str, left: float, length: float, height: float) -> tuple[Element, ...]:
    """The title of an axis below its ticks, in its middle."""
    if not title:
        return ()
    title, middle = shortened(title, length, LABEL_SIZE), left + length / 2
    y = height + TICK_GAP + LABEL_SIZE * 2.5
    return (text(middle, y, title, font_size=LABEL_SIZE, fill=QUIET, text_anchor="middle"),)


def room_for_labels(names: Sequence[str], width: float) -> float:
    """Pixels for the names, with a gap between them and the axis."""
    widest = max((width_of(visible(bounded(simplify_signature(name))), LABEL_SIZE) for name in names), default=0.0)
    return min(widest, width * _MOST) + _GAP


def row_labels(names: Sequence[str], left: float) -> Element:
    """The names, each left of its row; under a pointer a shortened one says its whole name."""
    return group(
        *(_label(name, number, left) for number, name in enumerate(names)),
        font_size=LABEL_SIZE,
        fill=TEXT,
        text_anchor="end",
    )


def _label(name: str, number: int, left: float) -> Element:
    shown = shortened_inside(simplify_signature(name), left - _GAP + 0.01, LABEL_SIZE)  # the longest fits exactly
    whole = (element("title", name),) if shown != visible(bounded(name)) else ()
    return element("text", shown, *whole, x=left - _GAP, y=base_line(number))
