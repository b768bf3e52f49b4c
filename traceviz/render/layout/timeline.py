"""Ratios over time as rows of blocks above a time axis."""

from __future__ import annotations

from rich.cells import cell_len
from rich.text import Text

from traceviz.render.blocks import mean, sparkline
from traceviz.render.layout.lines import INDENT, QUIET, pad, paragraph, shorten
from traceviz.render.text import sentence
from traceviz.report import Timeline
from traceviz.units import NOT_MEASURED, format_ns, format_ratio

_LABEL_LIMIT = 24
_MEAN_WIDTH = 9


def timeline_lines(timeline: Timeline, width: int) -> list[Text]:
    """One line a lane, higher blocks for larger ratios, its mean at the end; below them the time axis."""
    if not timeline.lanes:
        return []
    labels = [shorten(lane.label, min(_LABEL_LIMIT, width // 3)) for lane in timeline.lanes]
    label_width = max(cell_len(label) for label in labels)
    slices = width - INDENT - label_width - 3 - _MEAN_WIDTH
    lines = paragraph(sentence(timeline.title), width, first=" " * INDENT, style=QUIET)
    for label, lane in zip(labels, timeline.lanes, strict=True):
        average = mean(lane.values)
        ratio = NOT_MEASURED if average is None else format_ratio(average)
        blocks = pad(sparkline(lane.values, slices), slices)
        start = " " * INDENT + pad(label, label_width) + " "
        lines.append(
            Text.assemble(start, ("▕", QUIET), (blocks, "cyan"), ("▏", QUIET), pad(ratio, _MEAN_WIDTH, right=True))
        )
    axis = _axis(timeline, slices)
    return [*lines, Text.assemble(" " * (INDENT + label_width + 2), (axis, QUIET))]


def _axis(timeline: Timeline, slices: int) -> str:
    start, end = format_ns(timeline.start_ns) if timeline.start_ns else "0 s", format_ns(timeline.end_ns)
    if cell_len(start) + 1 + cell_len(end) > slices:
        return ""
    return start + pad(end, slices - cell_len(start), right=True)
