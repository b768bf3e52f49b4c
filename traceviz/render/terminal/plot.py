"""A series as a plot with its scale at the left and its changes marked below."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from rich.text import Text

from traceviz.core.sanitize import sentence, visible
from traceviz.core.units import format_value
from traceviz.render.figures.values import spans_decades
from traceviz.render.terminal.lines import INDENT, QUIET, clip, paragraph
from traceviz.report import Series

HEIGHT = 8
"""Rows of the plot without its axis."""
_POINT, _LEVEL, _CHANGE, _MARK = "•", "─", "┊", "▲"
_LEAST_CELLS = 12
_LONGEST_LABEL = 20
_EQUAL = 1e-9
"""Relative difference below which values differ by rounding only."""
_LOG = "log"


@dataclass(frozen=True, slots=True)
class _Axis:
    """The row of each value, from 0 for the largest, and the value of each row."""

    low: float
    high: float
    height: int
    is_log: bool

    def row(self, value: float) -> int:
        if self.height == 1:
            return 0
        bounds = (self.low, self.high, value)
        low, high, at = map(math.log, bounds) if self.is_log else bounds
        return round((high - at) / (high - low) * (self.height - 1))

    def value(self, row: int) -> float:
        part = row / max(self.height - 1, 1)
        if self.is_log:
            return math.exp(math.log(self.high) - (math.log(self.high) - math.log(self.low)) * part)
        return self.high - (self.high - self.low) * part


def plot(series: Series, width: int) -> list[str]:
    """Draw lines of at most ``width`` characters; empty if there are no values or no room."""
    values = [point.value for point in series.points]
    measured = [value for value in values if value is not None and math.isfinite(value)]
    bounds = [*measured, *(level.value for level in series.levels)]
    low, high = min(bounds, default=0.0), max(bounds, default=0.0)
    are_equal = high - low <= _EQUAL * max(abs(low), abs(high))
    axis = _Axis(low, high, 1 if are_equal else HEIGHT, spans_decades(bounds, series.unit))
    labels = _scale(axis, series)
    margin = max(map(len, labels)) + 2
    cells = width - margin
    if not measured or cells < _LEAST_CELLS:
        return []
    canvas = _canvas(series, axis, cells)
    axes = ("┤" if label.strip() else "│" for label in labels)
    drawn = [f"{label} {axis}{''.join(row)}" for label, axis, row in zip(labels, axes, canvas, strict=True)]
    marks = _changes(series, cells)
    base = "".join("┴" if x in marks else "─" for x in range(cells))
    below = (_LOG if axis.is_log else "").rjust(margin - 2)
    return [line.rstrip() for line in (*drawn, f"{' ' * (margin - 1)}└{base}", f"{below}  {_names(series, cells)}")]


def _scale(axis: _Axis, series: Series) -> list[str]:
    """Return the texts left of the rows: the largest value, the smallest, and one between."""
    height = axis.height
    shown = {0: axis.high, height - 1: axis.low}
    if height > 4:
        shown[height // 2] = axis.value(height // 2)
    texts = [format_value(shown[row], series.unit) if row in shown else "" for row in range(height)]
    widest = max(map(len, texts))
    return [text.rjust(widest) for text in texts]


def _place(index: int, count: int, cells: int) -> int:
    """Return the column of a point; the last point has the last cell."""
    return 0 if count < 2 else index * (cells - 1) // (count - 1)


def _changes(series: Series, cells: int) -> dict[int, int]:
    """Return the points at which changes start, by the column of their mark: halfway to the point before."""
    count = len(series.points)
    starts = [level.start for level in series.levels[1:]]
    return {(_place(start - 1, count, cells) + _place(start, count, cells) + 1) // 2: start for start in starts}


def _canvas(series: Series, axis: _Axis, cells: int) -> list[list[str]]:
    count = len(series.points)
    canvas = [[" "] * cells for _ in range(axis.height)]
    ends = (*(level.start for level in series.levels[1:]), count)
    for level, end in zip(series.levels, ends, strict=False):
        first, last = _place(level.start, count, cells), _place(end - 1, count, cells)
        row = canvas[axis.row(level.value)]
        row[first : last + 1] = _LEVEL * (last + 1 - first)
    for column in _changes(series, cells):
        for row in canvas:
            row[column] = _CHANGE
    for index, point in enumerate(series.points):
        if point.value is not None and math.isfinite(point.value):
            canvas[axis.row(point.value)][_place(index, count, cells)] = _POINT
    return canvas


def _names(series: Series, cells: int) -> str:
    """Return the names of points at which changes start, and of both ends if there is room."""
    count = len(series.points)
    names = [(column, f"{_MARK} {_name(series, start)}") for column, start in _changes(series, cells).items()]
    last = _name(series, count - 1)
    names += [(0, _name(series, 0)), (cells - _cells_of(last), last)]
    placed: list[tuple[int, str]] = []
    for at, text in names:
        column = max(min(at, cells - _cells_of(text)), 0)
        if _is_free(column, text, placed) and _cells_of(text) <= cells:
            placed.append((column, text))
    line, used = "", 0
    for column, text in sorted(placed):
        line += " " * (column - used) + text
        used = column + _cells_of(text)
    return line


def _is_free(column: int, text: str, placed: Sequence[tuple[int, str]]) -> bool:
    """Return whether no other text is within a cell of it."""
    spans = sorted([(column, column + _cells_of(text)), *((at, at + _cells_of(other)) for at, other in placed)])
    return all(end < begin for (_, end), (begin, _) in pairwise(spans))


def _name(series: Series, index: int) -> str:
    return visible(series.points[index].label)[:_LONGEST_LABEL]


def _cells_of(text: str) -> int:
    """Return the cells of a text in a terminal: East Asian characters take two, combining marks none."""
    marks = {"Mn", "Me"}
    return sum(
        0 if unicodedata.category(letter) in marks else 2 if unicodedata.east_asian_width(letter) in {"W", "F"} else 1
        for letter in text
    )


def series_lines(series: Series, width: int) -> list[Text]:
    """Draw the title and the plot; empty if there are no values."""
    drawn = plot(series, width - INDENT)
    if not drawn:
        return []
    title = paragraph(sentence(series.title), width, first=" " * INDENT, style=QUIET)
    return [*title, *(Text(" " * INDENT + clip(line, width - INDENT)) for line in drawn)]
