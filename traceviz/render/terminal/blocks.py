"""Blocks of a section as lines: facts, stacked bars, and ratios over time."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.cells import cell_len
from rich.text import Text

from traceviz.core.sanitize import sentence, visible
from traceviz.core.units import NOT_MEASURED, format_ns, format_ratio, format_value
from traceviz.render.palette import Color, colors
from traceviz.render.rows import DEVICE_WORK, REST, bars_heading, number_of
from traceviz.render.terminal.lines import INDENT, QUIET, aligned, pad, paragraph, shorten, widest
from traceviz.report import Bar, Bars, Facts, Timeline

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LEVELS = "▁▂▃▄▅▆▇█"
_ZERO = " "
_AXIS_CELL = "│"
_UNMEASURED = "·"


def bar(share: float, width: int) -> str:
    """Draw a bar of ``share`` (0 to 1) of ``width`` cells, in eighths of a cell; any share above zero is visible."""
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    if share > 0 and width > 0:
        eighths = max(eighths, 1)
    full, part = divmod(eighths, 8)
    return "█" * full + (_EIGHTHS[part] if part else "")


def bar_from_axis(change: float, width: int) -> str:
    """Draw a bar of ``change`` (-1 to 1) on one side of a central axis, in halves of a cell.

    ::

        ████│     -1
          ▐█│     -0.375
            │█▌    0.375
           ▕│     any change but zero is visible
    """
    half = (width - 1) // 2
    halves = round(min(abs(change), 1.0) * half * 2)
    full, part = divmod(halves, 2)
    if change < 0:
        drawn = ("▐" if part else "") + "█" * full or "▕"
        return drawn.rjust(half) + _AXIS_CELL
    drawn = "█" * full + ("▌" if part else "") or ("▏" if change > 0 else "")
    return " " * half + _AXIS_CELL + drawn


def cells_of(shares: Sequence[float], width: int) -> tuple[int, ...]:
    """Divide ``width`` cells by shares; the largest remainders are rounded up, so that the sum is right."""
    whole = max(math.fsum(shares), 1.0)
    exact = [share / whole * width for share in shares]
    cells = [math.floor(part) for part in exact]
    spare = min(round(math.fsum(exact)), width) - sum(cells)
    for index in sorted(range(len(exact)), key=lambda i: cells[i] - exact[i])[: max(spare, 0)]:
        cells[index] += 1
    return tuple(cells)


def resample(values: Sequence[float | None], slices: int) -> list[float | None]:
    """Average ``values`` into ``slices`` equal slices; ``None`` for slices without measurements."""
    count = len(values)
    result: list[float | None] = []
    for index in range(slices if count else 0):
        start = index * count // slices
        end = max(start + 1, (index + 1) * count // slices)
        result.append(mean(values[start:end]))
    return result


def mean(values: Sequence[float | None]) -> float | None:
    """Return the mean of the measured values; ``None`` if there are none."""
    measured = [value for value in values if value is not None and math.isfinite(value)]
    return math.fsum(measured) / len(measured) if measured else None


def sparkline(values: Sequence[float | None], width: int) -> str:
    """Draw ratios over time, one block per slice: a space for zero, ``·`` for slices that were not measured."""
    return "".join(_block(value) for value in resample(values, width))


def _block(value: float | None) -> str:
    if value is None:
        return _UNMEASURED
    if value <= 0:
        return _ZERO
    return _LEVELS[math.ceil(min(value, 1.0) * len(_LEVELS)) - 1]


_COLUMN_GAP = 4
_MOST_LINES = 3


def facts_lines(facts: Facts, width: int) -> list[Text]:
    """Return ``label  value`` pairs with aligned values; with two columns, read them line by line."""
    if not facts.facts:
        return []
    pairs = [(visible(fact.label), sentence(format_value(fact.value, fact.unit))) for fact in facts.facts]
    if len(pairs) > 1:
        halves = [_Column(pairs[0::2]), _Column(pairs[1::2])]
        if sum(half.width for half in halves) + _COLUMN_GAP <= width - INDENT:
            rows = ([half.cell(row) for half in halves if row < len(half.pairs)] for row in range(len(halves[0].pairs)))
            return [Text(" " * INDENT).append_text(Text(" " * _COLUMN_GAP).join(cells)) for cells in rows]
    value_width = min(widest([value for _, value in pairs]), width // 2)
    label_width = min(_Column(pairs).label_width, width - INDENT - 2 - value_width)
    lines: list[Text] = []
    for label, value in pairs:
        start = " " * INDENT + pad(shorten(label, label_width), label_width) + "  "
        text = shorten(value, _MOST_LINES * (width - cell_len(start)))
        lines += paragraph(text or NOT_MEASURED, width, first=start, first_style=QUIET)
    return lines


class _Column:
    """Pairs of label and value below each other, both padded to the widest."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self.pairs = pairs
        self.label_width = widest([label for label, _ in pairs])
        self.width = self.label_width + 2 + widest([value for _, value in pairs])

    def cell(self, row: int) -> Text:
        """Return the pair at ``row``, padded to the common width."""
        label, value = self.pairs[row]
        start = pad(label, self.label_width) + "  "
        return Text.assemble((start, QUIET), pad(value, self.width - self.label_width - 2))


_FILLS = "█░▓╱▒═▚·╳─▀┊"
"""Fills of a stacked bar without colour, ordered so that neighbours differ."""
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
        known = colors(part.key for part in bars.bars) if color else {}
        fills = [fill(index, known.get(part.key)) for index, part in enumerate(parts)]
        legend = _legend(bars, parts, width - INDENT, fills)
        shorter = _legend(bars, parts, width - INDENT, fills, has_values=False) if is_short else legend
        lines += [_stack(parts, width - INDENT, fills), *_groups(parts, width - INDENT)]
        lines += legend if len(legend) <= len(shorter) else shorter
    if zero:
        lines += paragraph(f"none: {', '.join(zero)}", width, first=" " * INDENT, style=QUIET)
    return lines


def _share(part: Bar) -> float:
    return number_of(part.share)


def fill(index: int, color: Color | None) -> tuple[str, str]:
    """Return character and style of the part at ``index``: a colour of the palette, or a pattern without colours."""
    return (_FILLS[index % len(_FILLS)], "") if color is None else ("█", color.dark)


def _stack(parts: list[Bar], width: int, fills: list[tuple[str, str]]) -> Text:
    line = Text(" " * INDENT)
    for (character, style), cells in zip(fills, cells_of(tuple(_share(part) for part in parts), width), strict=True):
        line.append(character * cells, style)
    return line


def _groups(parts: list[Bar], width: int) -> list[Text]:
    """Draw one line below a bar on devices: a bracket below what they do, and one below their idle time by cause.

    ::

        ███████████████░░░▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓╱╱╱╱╱▒▒▒═
        └─ they work 35 % ┘└───── they wait 65 % ─────────┘
    """
    named = [part for part in parts if part.key != REST]
    works = [part for part in named if part.key in DEVICE_WORK]
    waits = named[len(works) :]
    if not waits or named[: len(works)] != works or named[0].key != "device_compute":
        return []
    cells = cells_of(tuple(_share(part) for part in parts), width)
    line = Text(" " * INDENT, QUIET)
    for label, group, used in (
        ("devices work", works, cells[: len(works)]),
        ("devices wait", waits, cells[len(works) : len(named)]),
    ):
        room, text = sum(used), f" {label} {format_ratio(math.fsum(_share(part) for part in group))} "
        if room >= cell_len(text) + 2:
            line.append("└" + text.center(room - 2, "─") + "┘")
        else:
            line.append("└" + "─" * (room - 2) + "┘" if room > 1 else "╵" * room)
    return [line]


def _legend(
    bars: Bars, parts: list[Bar], width: int, fills: list[tuple[str, str]], *, has_values: bool = True
) -> list[Text]:
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
        line.append(*fills[index])
        line.append(" " + pad(shorten(part.label, label_width), label_width))
        line.append(pad(values[index], value_width, right=True) if has_values else "")
        line.append(" " * _GAP + pad(shares[index], share_width, right=True))
    return lines


_LABEL_LIMIT = 24
_END_WIDTH = 9
_LEAST_TICK = 14
"""Least number of cells between two labels of the time axis."""
_STEPS_NS = (1, 2, 5, 10, 20, 50, 100, 200, 500)


def timeline_lines(timeline: Timeline, width: int) -> list[Text]:
    """Draw one line per lane, with higher blocks for larger ratios, and the time axis below.

    A lane ends with its mean or, if it has one, the amount of the full height.
    """
    if not timeline.lanes:
        return []
    labels = [shorten(lane.label, min(_LABEL_LIMIT, width // 3)) for lane in timeline.lanes]
    label_width = max(cell_len(label) for label in labels)
    means = [mean(lane.values) for lane in timeline.lanes]
    texts = [
        lane.whole or (NOT_MEASURED if average is None else format_ratio(average))
        for lane, average in zip(timeline.lanes, means, strict=True)
    ]
    ends = [shorten(text, max(_END_WIDTH, width // 5)) for text in texts]
    end_width = max(_END_WIDTH, 1 + max(cell_len(end) for end in ends))
    slices = width - INDENT - label_width - 3 - end_width
    lines = paragraph(sentence(timeline.title), width, first=" " * INDENT, style=QUIET)
    for label, lane, end in zip(labels, timeline.lanes, ends, strict=True):
        blocks = pad(sparkline(lane.values, slices), slices)
        start = " " * INDENT + pad(label, label_width) + " "
        lines.append(
            Text.assemble(start, ("▕", QUIET), (blocks, "cyan"), ("▏", QUIET), pad(end, end_width, right=True))
        )
    axis = _axis(timeline, slices)
    return [*lines, Text.assemble(" " * (INDENT + label_width + 2), (axis, QUIET))]


def _axis(timeline: Timeline, slices: int) -> str:
    """Return the times of both ends, and round times between them as far as they fit, each starting in its cell."""
    start, end = _time(timeline.start_ns), _time(timeline.end_ns)
    if cell_len(start) + 1 + cell_len(end) > slices:
        return ""
    text, room = start, slices - cell_len(end)
    span_ns = timeline.end_ns - timeline.start_ns
    least_ns = span_ns * _LEAST_TICK / slices
    power = 1000 ** max(int(math.log(max(least_ns, 1), 1000)), 0)
    step_ns = next((step * power for step in _STEPS_NS if step * power >= least_ns), 1000 * power)
    for at_ns in range(-(-timeline.start_ns // step_ns) * step_ns, timeline.end_ns, step_ns):
        cell, label = (at_ns - timeline.start_ns) * slices // span_ns, _time(at_ns)
        if cell_len(text) + 2 <= cell <= room - cell_len(label) - 2:
            text = pad(text, cell) + label
    return pad(text, room) + end


def _time(at_ns: int) -> str:
    return format_ns(at_ns) if at_ns else "0 s"
