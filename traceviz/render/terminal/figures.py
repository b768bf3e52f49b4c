"""Figures as lines: curves over time, and stacked bars of several sides with one legend."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rich.text import Text

from traceviz.core.sanitize import sentence, visible
from traceviz.core.units import format_value
from traceviz.render.figures.reading import MOST_PANELS
from traceviz.render.figures.values import Axis, CurvePoint, Curves, Line, Panel, StackedBars
from traceviz.render.palette import SERIES, colors
from traceviz.render.terminal.blocks import cells_of, fill
from traceviz.render.terminal.lines import INDENT, QUIET, clip, pad, paragraph, shorten, shorten_apart, widest

HEIGHT = 9
"""Rows of the only panel's plot, without its axis."""
LOW_HEIGHT = 7
"""Rows of each plot if there are several panels."""
MARKS = "•×+o*#%@"
"""Marks of curves, in order; further curves are only in the table."""
_THREAD, _DASH, _STROKE, _CUT = "·", "╌", "│", "↑"
_LEAST_CELLS = 16
_CLOSE = 6
"""Points of a curve up to this many cells apart are connected by its marks."""
_LONGEST_STROKE = 1.25
"""Intervals are cut at this multiple of the largest value, so that they do not compress the values."""
_TICK_GAP, _SHORT = 2, 3
"""Cells between names of places, and of a short name."""

Cell = tuple[str, int | None]
"""A character, and the index of its curve."""


@dataclass(frozen=True, slots=True)
class _Scale:
    """The positions of values between both ends of one direction: ``cells`` with a ``margin`` on each side."""

    start: float
    end: float
    cells: int
    is_log: bool
    margin: int = 0

    @property
    def last(self) -> int:
        """The last cell, including the margin after it."""
        return self.cells - 1 + 2 * self.margin

    def place(self, value: float) -> int:
        """Return the cell of a value; values beyond an end get the end's cell."""
        if self.end <= self.start or self.cells < 2:
            return self.margin
        start, end, at = map(math.log, (self.start, self.end, value)) if self.is_log else (self.start, self.end, value)
        return self.margin + round(min(max((at - start) / (end - start), 0.0), 1.0) * (self.cells - 1))

    def value(self, place: int) -> float:
        """Return the value of a cell."""
        part = place / max(self.cells - 1, 1)
        if self.is_log:
            return math.exp(math.log(self.start) + (math.log(self.end) - math.log(self.start)) * part)
        return self.start + (self.end - self.start) * part


@dataclass(frozen=True, slots=True)
class _Curve:
    """A curve, its number among those with marks (``None`` for a reference), and its horizontal offset.

    Points of several curves share positions. The offset keeps all of them and their strokes visible.
    """

    line: Line
    number: int | None
    aside: int

    @property
    def measured(self) -> Iterator[CurvePoint]:
        """Its points with a value."""
        return (point for point in self.line.points if point.y is not None)

    def column(self, point: CurvePoint, x: _Scale) -> int:
        """Return the cell of a point."""
        return min(max(x.place(point.x) + self.aside, 0), x.last)


def curves_lines(curves: Curves, width: int, *, color: bool, title: str = "") -> list[Text]:
    """Draw the first panels with one legend; empty if there is no room, or no values.

    Args:
        curves: The figure.
        width: Characters of a line.
        color: True to use colours.
        title: Title of its section, which may name a single panel.
    """
    panels = [panel for panel in curves.panels[:MOST_PANELS] if _values(panel)]
    height = HEIGHT if len(panels) == 1 else LOW_HEIGHT
    drawn = [(panel, _plot(panel, curves.x, width - INDENT, height)) for panel in panels]
    if not drawn or not all(rows for _, rows in drawn):
        return []
    lines = _legend(panels, width, color=color)
    for number, (panel, rows) in enumerate(drawn):
        lines += [Text()] if number else []
        if len(drawn) > 1 or (title and panel.axis.label not in title.lower()):
            over = f" over {curves.x.label}" if len(drawn) == 1 and curves.x.label else ""
            heading = f"{panel.axis.label}{over}{f', of {panel.full}' if panel.full else ''}"
            lines += paragraph(sentence(heading), width, first=" " * INDENT, style=QUIET)
        for row in rows:
            styled = ((character, _style(index, color=color)) for character, index in row)
            lines.append(Text.assemble(" " * INDENT, *styled))
    return lines


def _values(panel: Panel) -> list[float]:
    return [point.y for line in panel.lines[: len(MARKS)] for point in line.points if point.y is not None]


def _legend(panels: Sequence[Panel], width: int, *, color: bool) -> list[Text]:
    """Return marks with curve names, and the meaning of strokes and dashes; empty for a single plain curve."""
    lines = [line for line in panels[0].lines[: len(MARKS)] if line.style != "dashed"]
    entries: list[tuple[str, str, str]] = []
    if len(lines) > 1:
        room = max((width - INDENT) // min(len(lines), 3) - 4, 12)
        entries = [
            (_mark(index), shorten(line.label, room), _style(index, color=color))
            for index, line in enumerate(lines[: len(MARKS)])
        ]
    if any(line.style == "dashed" for line in panels[0].lines):
        entries.append((_DASH, "ideal or by Amdahl's law", QUIET))
    if any(point.low is not None for panel in panels for line in panel.lines for point in line.points):
        entries.append((_STROKE, "95 % interval", QUIET))
    legend: list[Text] = []
    for mark, name, style in entries:
        entry = Text.assemble((mark, style), f" {name}")
        if legend and legend[-1].cell_len + 3 + entry.cell_len <= width:
            legend[-1].append("   ").append_text(entry)
        else:
            legend.append(Text(" " * INDENT).append_text(entry))
    return legend


def _mark(index: int) -> str:
    return MARKS[index % len(MARKS)]


def _style(index: int | None, *, color: bool) -> str:
    return SERIES[index % len(SERIES)].dark if color and index is not None else ""


def _plot(panel: Panel, x: Axis, width: int, height: int) -> list[list[Cell]]:
    """Draw the rows from the top: the plot, its axis, and names of places below; empty if there is no room."""
    vertical = _vertical(panel, height)
    labels = _labels(vertical, panel.axis)
    cells = width - widest(labels) - 2
    if cells < _LEAST_CELLS:
        return []
    horizontal = _horizontal(panel, x, cells)
    canvas: list[list[Cell]] = [[(" ", None)] * cells for _ in range(height)]
    found: list[_Curve] = []
    marked = [line for line in panel.lines if line.style != "dashed"][: len(MARKS)]
    for line in panel.lines:
        if line.style == "dashed":
            found.append(_Curve(line, None, 0))
        elif line in marked:
            number = marked.index(line)
            found.append(_Curve(line, number, (2 * number - len(marked) + 1) // 2 if horizontal.margin else 0))
    # Draw strokes first, then connections of points, and marks on top.
    for curve in found:
        for point in curve.measured:
            _stroke(canvas, curve, point, horizontal, vertical)
    for curve in found:
        if curve.line.style != "points":
            for first, second in pairwise(curve.line.points):
                _connect(canvas, curve, first, second, horizontal, vertical)
    for curve in found:
        if curve.number is not None:
            for point in curve.measured:
                _put(
                    canvas,
                    curve.column(point, horizontal),
                    vertical.place(point.y or 0.0),
                    (_mark(curve.number), curve.number),
                )
    rows = [
        [*_plain(f"{label} {'┤' if label.strip() else '│'}"), *row] for label, row in zip(labels, canvas, strict=True)
    ]
    ticks = _ticks(panel, x, horizontal)
    base = "".join("┬" if any(at == cell for at, _, _ in ticks) else "─" for cell in range(cells))
    margin = widest(labels) + 1
    below = "log" if vertical.is_log else ""
    return [*rows, _plain(f"{' ' * margin}└{base}"), _plain(pad(below, margin + 1, right=True) + _names(ticks, cells))]


def _plain(text: str) -> list[Cell]:
    return [(character, None) for character in text]


def _vertical(panel: Panel, height: int) -> _Scale:
    """Scale from zero, unless the axis sets a start or the values span so many sizes that a log scale is needed."""
    values = _values(panel)
    highs = [point.high for line in panel.lines for point in line.points if point.high is not None]
    most = max(values)
    high = max(most, min(max(highs, default=most), most * _LONGEST_STROKE))
    low = min(values)
    if panel.axis.log:
        return _Scale(low, high, height, is_log=True)
    start = panel.axis.start if panel.axis.start is not None else min(low, 0.0)
    end = panel.axis.end if panel.axis.end is not None else high
    return _Scale(start, end if end > start else start + 1.0, height, is_log=False)


def _horizontal(panel: Panel, x: Axis, cells: int) -> _Scale:
    xs = [point.x for line in panel.lines for point in line.points]
    start, end = (x.start if x.start is not None else min(xs)), (x.end if x.end is not None else max(xs))
    curves = sum(line.style != "dashed" for line in panel.lines[: len(MARKS)])
    margin = curves // 2 + 1 if len(set(xs)) * (curves + _TICK_GAP) <= cells else 0
    return _Scale(start, end, cells - 2 * margin, is_log=x.log and start > 0, margin=margin)


def _labels(scale: _Scale, axis: Axis) -> list[str]:
    """Return the texts left of the rows: both ends, and one between."""
    last = scale.cells - 1
    shown = {0, last // 2, last}
    texts = [
        format_value(_rounded(scale.value(last - row)), axis.unit) if row in shown else "" for row in range(scale.cells)
    ]
    longest = widest(texts)
    return [pad(text, longest, right=True) for text in texts]


def _rounded(value: float) -> float | int:
    """Return whole numbers as integers: 25 threads."""
    return int(value) if float(value).is_integer() else round(value, 1) if abs(value) >= 10 else value


def _stroke(canvas: list[list[Cell]], curve: _Curve, point: CurvePoint, x: _Scale, y: _Scale) -> None:
    """Draw the interval of a point, with an arrow if it continues beyond the plot."""
    if point.low is None or point.high is None:
        return
    for place in range(y.place(max(point.low, y.start)), y.place(point.high) + 1):
        is_cut = place == y.cells - 1 and point.high > y.end
        _put(canvas, curve.column(point, x), place, (_CUT if is_cut else _STROKE, curve.number))


def _connect(  # noqa: PLR0917 (two points on a canvas with its scales)
    canvas: list[list[Cell]], curve: _Curve, first: CurvePoint, second: CurvePoint, x: _Scale, y: _Scale
) -> None:
    """Fill the cells between two measured points: with marks if they are close to each other."""
    if first.y is None or second.y is None:
        return
    begin, end = curve.column(first, x), curve.column(second, x)
    character = _DASH if curve.number is None else _mark(curve.number) if end - begin <= _CLOSE else _THREAD
    for column in range(begin + 1, end):
        place = y.place(first.y + (second.y - first.y) * (column - begin) / (end - begin))
        if character != _THREAD or canvas[len(canvas) - 1 - place][column][0] == " ":
            _put(canvas, column, place, (character, curve.number))


def _put(canvas: list[list[Cell]], column: int, place: int, cell: Cell) -> None:
    canvas[len(canvas) - 1 - place][column] = cell


def _ticks(panel: Panel, x: Axis, scale: _Scale) -> list[tuple[int, int, str]]:
    """Return cell, first cell of its text, and text of each named place: all points if there are few, else the ends.

    A text that would touch its neighbour is omitted; those of both ends have priority.
    """
    xs = sorted({point.x for line in panel.lines for point in line.points})
    few = len(xs) * (_TICK_GAP + _SHORT) <= scale.cells
    values = xs if few else [scale.start, (scale.start + scale.end) / 2, scale.end]
    placed: list[tuple[int, int, str]] = []
    for value in sorted(values, key=lambda one: (one not in {values[0], values[-1]}, one)):
        text = _name(x, value)
        cell = scale.place(value)
        begin = min(max(cell - len(text) // 2, 0), max(scale.last + 1 - len(text), 0))
        spans = ((other, other + len(words)) for _, other, words in placed)
        if all(begin + len(text) + _TICK_GAP <= first or last + _TICK_GAP <= begin for first, last in spans):
            placed.append((cell, begin, text))
    return sorted(placed)


def _name(x: Axis, value: float) -> str:
    if x.names:
        return visible(x.names[min(max(round(value), 0), len(x.names) - 1)])[:20]
    if x.unit == "ns":
        return format_value(round(value), "ns") if value else "0 s"
    return format_value(_rounded(value), x.unit)


def _names(ticks: Sequence[tuple[int, int, str]], cells: int) -> str:
    line = ""
    for _, begin, text in ticks:
        line = pad(line, begin) + text
    return clip(line, cells)


_LONGEST_LABEL = 26
_GAP = 2
_LEAST_OF_BARS = 16


def stacked_lines(figure: StackedBars, width: int, *, color: bool) -> list[Text]:
    """Draw a line for each bar, scaled to the longest, and the legend; empty if there is no room."""
    longest = max((row.total for row in figure.rows), default=0.0)
    labels = shorten_apart([row.label for row in figure.rows], min(_LONGEST_LABEL, width // 3))
    label_width = widest(labels)
    cells = width - INDENT - label_width - 1
    if longest <= 0 or cells < _LEAST_OF_BARS:
        return []
    known = colors(key for key, _ in figure.classes) if color else {}
    fills = {key: fill(place, known.get(key)) for place, (key, _) in enumerate(figure.classes)}
    lines = paragraph(sentence(figure.axis.label), width, first=" " * INDENT, style=QUIET)
    for label, row in zip(labels, figure.rows, strict=True):
        line = Text(" " * INDENT + pad(label, label_width) + " ")
        shares = tuple(part.value / longest for part in row.parts)
        for part, count in zip(row.parts, cells_of(shares, cells), strict=True):
            character, style = fills[part.key]
            line.append(character * count, style)
        lines.append(line)
    return [*lines, *_legend_of_bars(figure, width - INDENT, list(fills.values()))]


def _legend_of_bars(figure: StackedBars, width: int, fills: list[tuple[str, str]]) -> list[Text]:
    """Return fills and names, in as many columns as fit, read downwards."""
    names = shorten_apart([label for _, label in figure.classes], max(width - 2, 1))
    entry = 2 + widest(names)
    columns = max(1, (width + _GAP) // (entry + _GAP))
    height = math.ceil(len(names) / columns)
    lines = [Text(" " * INDENT) for _ in range(height)]
    for place, name in enumerate(names):
        line = lines[place % height]
        line.append(" " * _GAP if place >= height else "")
        line.append(*fills[place])
        line.append(" " + pad(name, entry - 2))
    return lines


def picture_lines(picture: Curves | StackedBars, width: int, *, color: bool, title: str = "") -> list[Text]:
    """Draw the picture of a section with this ``title`` as lines of characters; empty if there is no room for it."""
    if isinstance(picture, Curves):
        return curves_lines(picture, width, color=color, title=title)
    return stacked_lines(picture, width, color=color)
