"""Spans of a lane as rows with their levels, limited to the intervals in which every event is shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from traceviz.pictures.timeline.levels import CELLS, levels
from traceviz.pictures.timeline.sources import Source
from traceviz.pictures.timeline.spans import Seat, Spans, row_numbers
from traceviz.report.pictures.timeline import Detail, Level, Row

LEAST_SPANS = 2_000
"""Complete rows with fewer spans need no levels: they can be drawn at once."""


@dataclass(frozen=True, slots=True)
class Frame:
    """Settings that all lanes share.

    Args:
        begin: Start of the timeline.
        whole: Its length.
        details: Intervals in which every event is shown; empty means everywhere.
        cells_per_event: Cells of the finest level of a row for each of its spans.
        least: Rows with fewer spans keep all of them, regardless of ``details``.
    """

    begin: int
    whole: int
    details: tuple[Detail, ...]
    cells_per_event: float
    least: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """A lane before numbering: its rows use event numbers of the trace, and names in the order they were added.

    Args:
        seat: Identity and position of the lane.
        rows: Its rows.
        levels: Levels of each row.
        events: Number of its spans.
        total_ns: Sum of their durations.
    """

    seat: Seat
    rows: tuple[Row, ...]
    levels: tuple[tuple[Level, ...], ...]
    events: int
    total_ns: int


def drawn(source: Source, first: int, frame: Frame) -> Iterator[Drawn]:
    """Draw the lanes of a source, whose events are numbered from ``first`` on."""
    for seat, spans in source.lanes(first):
        ordered = spans.in_order()
        rows, seen = [], []
        for row in _rows(ordered):
            shown = _shown(row, frame.details if row.starts.size >= frame.least else ())
            rows.append(shown)
            is_whole = shown.starts.size == row.starts.size
            seen.append(() if is_whole and row.starts.size < LEAST_SPANS else _levels(row, frame))
        yield Drawn(seat, tuple(rows), tuple(seen), ordered.starts.size, int(ordered.durations.sum()))


def _levels(row: Spans, frame: Frame) -> tuple[Level, ...]:
    most = max(CELLS, int(row.starts.size * frame.cells_per_event))
    return levels(row.starts, row.durations, row.names, frame.begin, frame.whole, most)


def _rows(spans: Spans) -> Iterator[Spans]:
    """Split spans by row; drop those without a row."""
    number = row_numbers(spans.starts, spans.starts + spans.durations)
    if not number.size or number.max() == 0:
        yield spans
        return
    order = np.argsort(number, kind="stable")
    bounds = np.searchsorted(number[order], np.arange(int(number.max()) + 2))
    for begin, end in pairwise(bounds):
        yield spans.at(order[begin:end])


def _shown(spans: Spans, details: Sequence[Detail]) -> Row:
    """Return the spans that lie in one of these intervals, or reach into one."""
    if details:
        begins = np.array([one.start_ns for one in details])
        ends = np.array([one.end_ns for one in details])
        place = np.searchsorted(ends, spans.starts, side="right")
        reached = begins[np.minimum(place, ends.size - 1)]
        last = spans.starts + spans.durations
        spans = spans.at((place < ends.size) & ((reached < last) | (reached <= spans.starts)))
    return Row(spans.starts, spans.durations, spans.names.astype(np.int64), spans.origins)
