"""Bars of several sides one below another, of the same parts, with one legend."""

from __future__ import annotations

import math

from rich.text import Text

from traceviz.core.sanitize import sentence
from traceviz.render.figures.values import StackedBars
from traceviz.render.terminal.bars import fill
from traceviz.render.terminal.blocks import cells_of
from traceviz.render.terminal.lines import INDENT, QUIET, pad, paragraph, shorten_apart, widest

_LONGEST_LABEL = 26
_GAP = 2
_LEAST_CELLS = 16


def stacked_lines(figure: StackedBars, width: int, *, color: bool) -> list[Text]:
    """Draw a line for each bar, scaled to the longest, and the legend; empty if there is no room."""
    longest = max((row.total for row in figure.rows), default=0.0)
    labels = shorten_apart([row.label for row in figure.rows], min(_LONGEST_LABEL, width // 3))
    label_width = widest(labels)
    cells = width - INDENT - label_width - 1
    if longest <= 0 or cells < _LEAST_CELLS:
        return []
    places = {key: place for place, (key, _) in enumerate(figure.classes)}
    lines = paragraph(sentence(figure.axis.label), width, first=" " * INDENT, style=QUIET)
    for label, row in zip(labels, figure.rows, strict=True):
        line = Text(" " * INDENT + pad(label, label_width) + " ")
        shares = tuple(part.value / longest for part in row.parts)
        for part, count in zip(row.parts, cells_of(shares, cells), strict=True):
            character, style = fill(places[part.key], color=color)
            line.append(character * count, style)
        lines.append(line)
    return [*lines, *_legend(figure, width - INDENT, color=color)]


def _legend(figure: StackedBars, width: int, *, color: bool) -> list[Text]:
    """Return fills and names, in as many columns as fit, read downwards."""
    names = shorten_apart([label for _, label in figure.classes], max(width - 2, 1))
    entry = 2 + widest(names)
    columns = max(1, (width + _GAP) // (entry + _GAP))
    height = math.ceil(len(names) / columns)
    lines = [Text(" " * INDENT) for _ in range(height)]
    for place, name in enumerate(names):
        line = lines[place % height]
        line.append(" " * _GAP if place >= height else "")
        line.append(*fill(place, color=color))
        line.append(" " + pad(name, entry - 2))
    return lines
