"""Ratios over time as rows of blocks above a time axis."""

from __future__ import annotations

import math

from rich.cells import cell_len
from rich.text import Text

from traceviz.core.sanitize import sentence
from traceviz.core.units import NOT_MEASURED, format_ns, format_ratio
from traceviz.render.terminal.blocks import mean, sparkline
from traceviz.render.terminal.lines import INDENT, QUIET, pad, paragraph, shorten
from traceviz.report import Lane, Timeline

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
    ends = [shorten(_end(lane), max(_END_WIDTH, width // 5)) for lane in timeline.lanes]
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


def _end(lane: Lane) -> str:
    average = mean(lane.values)
    return lane.whole or (NOT_MEASURED if average is None else format_ratio(average))


def _axis(timeline: Timeline, slices: int) -> str:
    """Return the times of both ends, and round times between them as far as they fit, each starting in its cell."""
    start, end = _time(timeline.start_ns), _time(timeline.end_ns)
    if cell_len(start) + 1 + cell_len(end) > slices:
        return ""
    text, room = start, slices - cell_len(end)
    # Return the multiples of a round step within the timeline.
    span_ns = timeline.end_ns - timeline.start_ns
    least_ns = span_ns * _LEAST_TICK / slices
    power = 1000 ** max(int(math.log(max(least_ns, 1), 1000)), 0)
    step_ns = next((step * power for step in _STEPS_NS if step * power >= least_ns), 1000 * power)
    round_times = range(-(-timeline.start_ns // step_ns) * step_ns, timeline.end_ns, step_ns)
    for at_ns in round_times:
        cell, label = (at_ns - timeline.start_ns) * slices // (timeline.end_ns - timeline.start_ns), _time(at_ns)
        if cell_len(text) + 2 <= cell <= room - cell_len(label) - 2:
            text = pad(text, cell) + label
    return pad(text, room) + end


def _time(at_ns: int) -> str:
    return format_ns(at_ns) if at_ns else "0 s"
