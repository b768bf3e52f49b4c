"""The parts of a whole as one stacked bar with a legend."""

from __future__ import annotations

import math

from rich.text import Text

from traceviz.core.sanitize import sentence, visible
from traceviz.render.rows import bars_heading, number_of
from traceviz.render.terminal.blocks import cells_of
from traceviz.render.terminal.lines import INDENT, QUIET, aligned, pad, paragraph, shorten, widest
from traceviz.report import Bar, Bars

_FILLS = "█░▓╱▒═▚·╳─▀┊"
"""Fills of a stacked bar without colour, ordered so that neighbours differ."""
_COLORS = (75, 214, 36, 175, 221, 26, 167, 109, 141, 179, 66, 245)
"""Colours of fills, from the 256-colour palette; neighbours differ for colour-blind readers too."""
_GAP = 2
_COLUMNS = 3
_VALUE_LIMIT = 18


def bars_lines(bars: Bars, width: int, *, color: bool, is_short: bool = False) -> list[Text]:
    """Draw a stacked bar with its legend; empty parts are named in one line.

    With ``is_short``, the legend omits the values, but not their shares, if that takes fewer lines.
    """
    parts = [part for part in bars.bars if _share(part) > 0]
    zero = [visible(part.label) for part in bars.bars if _share(part) <= 0]
    lines = paragraph(sentence(bars_heading(bars)), width, first=" " * INDENT, style=QUIET)
    if parts:
        legend = _legend(bars, parts, width - INDENT, color=color)
        shorter = _legend(bars, parts, width - INDENT, color=color, has_values=False) if is_short else legend
        lines += [_stack(parts, width - INDENT, color=color), *min(legend, shorter, key=len)]
    if zero:
        lines += paragraph(f"none: {', '.join(zero)}", width, first=" " * INDENT, style=QUIET)
    return lines


def _share(part: Bar) -> float:
    return number_of(part.share)


def fill(index: int, *, color: bool) -> tuple[str, str]:
    """Return character and style of the part at ``index``."""
    if color:
        return "█", f"color({_COLORS[index % len(_COLORS)]})"
    return _FILLS[index % len(_FILLS)], ""


def _stack(parts: list[Bar], width: int, *, color: bool) -> Text:
    line = Text(" " * INDENT)
    for index, cells in enumerate(cells_of(tuple(_share(part) for part in parts), width)):
        character, style = fill(index, color=color)
        line.append(character * cells, style)
    return line


def _legend(bars: Bars, parts: list[Bar], width: int, *, color: bool, has_values: bool = True) -> list[Text]:
    """Return one entry per part (fill, label, value, share), in as many columns as fit, read downwards."""
    values = [shorten(value, _VALUE_LIMIT) for value in aligned([part.value for part in parts], bars.unit)]
    shares = aligned([_share(part) for part in parts], "ratio")
    value_width, share_width = (_GAP + widest(values)) * has_values, widest(shares)
    least_label = width - 2 - _GAP - value_width - share_width
    label_width = min(widest([visible(part.label) for part in parts]), max(least_label, 1))
    entry_width = 2 + label_width + value_width + _GAP + share_width
    columns = max(1, min(_COLUMNS, (width + _GAP) // (entry_width + _GAP)))
    height = math.ceil(len(parts) / columns)
    lines = [Text(" " * INDENT) for _ in range(height)]
    for index, part in enumerate(parts):
        line = lines[index % height]
        line.append(" " * _GAP if index >= height else "")
        line.append(*fill(index, color=color))
        line.append(" " + pad(shorten(part.label, label_width), label_width))
        line.append(pad(values[index], value_width, right=True) if has_values else "")
        line.append(" " * _GAP + pad(shares[index], share_width, right=True))
    return lines
