"""Spans of a lane as rows with their levels, cut to the stretches of time in which every event is shown."""

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
"""Rows of fewer spans need no levels where they have them all: these can be drawn at once."""


@dataclass(frozen=True, slots=True)
class Frame:
    """What all lanes share.

    Args:
        begin: Begin of the timeline.
        whole: Its length.
        details: Where every event is shown; none for everywhere.
        cells_per_event: Cells of the finest level of a row for each of its spans.
        least: Rows of fewer spans have them all, wherever detail is shown.
    """

    begin: int
    whole: int
    details: tuple[Detail, ...]
    cells_per_event: float
    least: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """A lane as it was made: rows refer to events as the trace numbers them, and to names as they were added.

    Args:
        seat: What it is.
        rows: Its rows.
        levels: Levels of each row.
        events: Spans that it has.
        total_ns: Their durations together.
    """

    seat: Seat
    rows: tuple[Row, ...]
    levels: tuple[tuple[Level, ...], ...]
    events: int
    total_ns: int


def drawn(source: Source, first: int, frame: Frame) -> Iterator[Drawn]:
    """The lanes of a source, whose events are numbered from ``first`` on."""
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
    """Spans by the row that they lie in; those for which there is none are left out."""
    number = row_numbers(spans.starts, spans.starts + spans.durations)
    if not number.size or number.max() == 0:
        yield spans
        return
    order = np.argsort(number, kind="stable")
    bounds = np.searchsorted(number[order], np.arange(int(number.max()) + 2))
    for begin, end in pairwise(bounds):
        yield spans.at(order[begin:end])


def _shown(spans: Spans, details: Sequence[Detail]) -> Row:
    """The spans that lie in one of these stretches, or reach into one."""
    if details:
        begins = np.array([one.start_ns for one in details])
        ends = np.array([one.end_ns for one in details])
        place = np.searchsorted(ends, spans.starts, side="right")
        reached = begins[np.minimum(place, ends.size - 1)]
        last = spans.starts + spans.durations
        spans = spans.at((place < ends.size) & ((reached < last) | (reached <= spans.starts)))
    return Row(spans.starts, spans.durations, spans.names.astype(np.int64), spans.origins)
