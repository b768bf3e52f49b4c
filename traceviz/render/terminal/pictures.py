"""Pictures of sections that text can draw."""

from __future__ import annotations

from rich.text import Text

from traceviz.render.figures.values import Curves, StackedBars
from traceviz.render.terminal.overlay import curves_lines
from traceviz.render.terminal.stacks import stacked_lines


def picture_lines(picture: Curves | StackedBars, width: int, *, color: bool) -> list[Text]:
    """Draw a picture as lines of characters; empty if there is no room for it."""
    if isinstance(picture, Curves):
        return curves_lines(picture, width, color=color)
    return stacked_lines(picture, width, color=color)
