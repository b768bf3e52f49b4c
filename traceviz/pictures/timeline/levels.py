"""Rows of a lane, and their zoom levels: equal cells, each with its dominant name and its covered share.

The widest cells divide the timeline by 512. Each finer level has four times as many cells, as long as cells hold
several spans. A level is computed from the next finer one, so that all spans are read only once::

    spans   |-a-||-b-|  |-a-|   |b|
    fine    |  a  |  b  |  a  |  b  |
    coarse  |           a           |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from traceviz.core.arrays.nested import Codes
from traceviz.pictures.timeline.sources import Source
from traceviz.pictures.timeline.spans import Seat, Spans, row_numbers
from traceviz.report.pictures.values import Array, Detail, Level, Row

CELLS = 512
"""Cells of the coarsest level over the whole timeline."""
GROWTH = 4
"""Cells of one level that make one of the next coarser level."""
PER_CELL = 4
"""Mean number of spans in a cell of the finest level; with fewer, spans are drawn directly."""
_FULL = 255
_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class _Parts:
    """Time of each name in each cell; sorted by cell and name, each pair once."""

    cells: Array
    names: Array
    times: Array


def levels(  # noqa: PLR0917 (columns, and what they are divided by)
    starts: Array, durations: Array, names: Codes, begin: int, whole: int, most: int
) -> tuple[Level, ...]:
    """Compute the levels of a row, the finest first.

    Args:
        starts: Start of each span, ascending; spans do not overlap.
        durations: Nanoseconds of each.
        names: Number of the name of each.
        begin: Start of the timeline.
        whole: Its length.
        most: Limit of the cells of the finest level.
    """
    finest = max(CELLS, min(starts.size // PER_CELL, most))
    steps = max(int(np.log2(finest / CELLS)) // 2, 0)
    width = max(-(-whole // (CELLS * GROWTH**steps)), 1)
    parts = _divided(starts - begin, durations, names, width)
    found = []
    for step in range(steps + 1):
        found.append(_level(parts, width))
        if step < steps:
            width *= GROWTH
            parts = _summed(parts.cells // GROWTH, parts.names, parts.times)
    return tuple(found)


def _divided(starts: Array, durations: Array, names: Codes, width: int) -> _Parts:
    """Divide spans by cell, in batches; spans of one cell are neighbours."""
    found = [_summed(*piece) for piece in _pieces(starts, durations, names, width)]
    if len(found) == 1:
        return found[0]
    columns = ([getattr(part, name) for part in found] for name in ("cells", "names", "times"))
    return _summed(*map(np.concatenate, columns))


def _pieces(starts: Array, durations: Array, names: Codes, width: int) -> Iterator[tuple[Array, Array, Array]]:
    """Return cell, name and time of each span, or of each part of a span that lies in several cells."""
    for at in range(0, starts.size, _AT_ONCE):
        begins, lasts = starts[at : at + _AT_ONCE], durations[at : at + _AT_ONCE]
        own = names[at : at + _AT_ONCE].astype(np.int64)
        first = begins // width
        count = np.maximum((begins + lasts - 1) // width, first) - first + 1
        if count.max() == 1:
            yield first, own, lasts
            continue
        row = np.repeat(np.arange(begins.size), count)
        cell = first[row] + np.arange(row.size) - np.repeat(np.cumsum(count) - count, count)
        left = np.maximum(begins[row], cell * width)
        yield cell, own[row], np.minimum((begins + lasts)[row], (cell + 1) * width) - left


def _summed(cells: Array, names: Array, times: Array) -> _Parts:
    key = cells * (int(names.max()) + 1) + names
    order = np.argsort(key, kind="stable")
    first = np.flatnonzero(np.diff(key[order], prepend=key[order[0]] - 1))
    return _Parts(cells[order][first], names[order][first], np.add.reduceat(times[order], first))


def _level(parts: _Parts, width: int) -> Level:
    first = np.flatnonzero(np.diff(parts.cells, prepend=parts.cells[0] - 1))
    count = np.diff(first, append=parts.cells.size)
    most = np.maximum.reduceat(parts.times, first)
    leads = np.flatnonzero(parts.times == np.repeat(most, count))
    cell = parts.cells[leads]
    leads = leads[np.diff(cell, prepend=cell[0] - 1) != 0]
    covered = (np.add.reduceat(parts.times, first) * _FULL + width // 2) // width
    return Level(width, parts.cells[first], parts.names[leads], np.clip(covered, 1, _FULL))


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
