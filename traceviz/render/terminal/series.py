"""A series as a plot with its scale at the left and its changes marked below."""

from __future__ import annotations

from rich.text import Text

from traceviz.core.sanitize import sentence
from traceviz.render.terminal.lines import INDENT, QUIET, clip, paragraph
from traceviz.render.terminal.plot import plot
from traceviz.report import Series


def series_lines(series: Series, width: int) -> list[Text]:
    """Draw the title and the plot; empty if there are no values."""
    drawn = plot(series, width - INDENT)
    if not drawn:
        return []
    title = paragraph(sentence(series.title), width, first=" " * INDENT, style=QUIET)
    return [*title, *(Text(" " * INDENT + clip(line, width - INDENT)) for line in drawn)]
