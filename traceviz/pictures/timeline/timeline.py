"""The timeline of a trace: lanes of all recorded data, with zoom levels and full detail.

Sources (``sources``) provide the spans of each lane; ``levels`` puts them into rows. This module positions lanes,
numbers events, and draws arrows from calls to the device work that they launched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from traceviz.analyses.derived.frames import correlations, taken
from traceviz.analyses.derived.view import TraceView
from traceviz.core.arrays.matching import first_rows
from traceviz.pictures.timeline.curves import curves
from traceviz.pictures.timeline.details import details
from traceviz.pictures.timeline.device import device_sources
from traceviz.pictures.timeline.host import host_sources
from traceviz.pictures.timeline.levels import Drawn, Frame, drawn
from traceviz.pictures.timeline.names import Names, fewer
from traceviz.pictures.timeline.ranks import Collectives, collectives, rank_sources
from traceviz.pictures.timeline.sampled import stack_sources
from traceviz.pictures.timeline.sources import MACHINE, NOBODY, Making, Owners, Source
from traceviz.report.pictures.values import Array, Arrows, Lane, LaneKind, Place, Timeline
from traceviz.trace import schema

CALLERS = ("cuda_api", "host_ops")
"""Tables of calls that launch work; the first one with a matching call is used."""
_KEYS = ("process_id", "correlation_id")


def launches(trace: TraceView, number_of: Array, firsts: Mapping[str, int]) -> tuple[Arrows, ...]:
    """Return arrows from calls to the work that they launched, if both are shown.

    Args:
        trace: The trace.
        number_of: Number of each event of the trace in the timeline; -1 if it is not shown.
        firsts: First event number of each source; device events are the rows of their tables, one after another.
    """
    if "device" not in firsts:
        return ()
    sources, targets = [], []
    begin = firsts["device"]
    for table in filter(trace.tables.rows, schema.DEVICE_WORK):
        numbers = number_of[begin : begin + trace.tables.rows(table)]
        begin += numbers.size
        shown = np.flatnonzero(numbers >= 0)
        # The number of the call that launched each row; -1 if it is unknown or not shown.
        callers = np.full(shown.size, -1, np.int64)
        work = correlations(taken(trace.frame(table, *_KEYS), shown))
        for caller in CALLERS if shown.size else ():
            if caller in firsts:
                rows = first_rows(work, correlations(trace.frame(caller, *_KEYS)))
                launched = np.where(rows >= 0, number_of[firsts[caller] + np.maximum(rows, 0)], -1)
                callers = np.where(callers >= 0, callers, launched)
        known = callers >= 0
        sources.append(callers[known])
        targets.append(numbers[shown][known].astype(np.int64))
    source, target = np.concatenate(sources), np.concatenate(targets)
    order = np.lexsort((target, source))
    return (Arrows("launch", source[order], target[order]),) if order.size else ()


MOST_EVENTS = 1_000_000
"""Default limit of the events of a page: about 8 MB."""
MOST_CELLS = 1 << 18
"""Limit of the cells of the finest levels of all rows together."""
MOST_LANES = 400
"""Limit of lanes. The lanes of the least busy threads are left out; the last lane reports their number."""
_SHARE_OF_SHORT = 2_000
"""Rows with less than one in this many events keep all of them: steps, phases of a run."""
_OF_CURVES = ("samples", "memory_events")
"""Tables of curves, which may start before all events."""

_KINDS: tuple[LaneKind, ...] = ("steps", "classes", "phases", "device_ops", "device", "collectives")
"""Lanes of a process in their order, before those of its threads."""
_THREAD_KINDS: tuple[LaneKind, ...] = ("ranges", "stacks", "ops", "api", "os")


def timeline(trace: TraceView, budget: int = MOST_EVENTS, places: Sequence[Place] = ()) -> Timeline:
    """Draw the timeline of a trace.

    Args:
        trace: The trace.
        budget: Limit of its events. With more, only some intervals keep all events, and levels cover the rest.
        places: Places of findings, which are among these intervals.

    Returns:
        The timeline, from the first to the last moment with data. An event whose end was not recorded has no length.
    """
    making = Making(trace, Names(), Owners(trace))
    joint = collectives(making)
    sources = [*rank_sources(making), *device_sources(making), *stack_sources(making), *host_sources(making)]
    sources += [joint.source] if joint else []
    begin, end = _extent(trace, sources)
    sizes = [source.starts.size for source in sources]
    events = sum(sizes)
    firsts = dict(zip((source.key for source in sources), accumulate(sizes, initial=0), strict=False))
    shown = details(trace, (source.starts for source in sources), budget, places) if events > budget else ()
    frame = Frame(begin, end - begin, shown, MOST_CELLS / max(events, 1), budget // _SHARE_OF_SHORT)
    made = [lane for source in sources for lane in drawn(source, firsts[source.key], frame)]
    lanes, left = _seated(made, making.owners)
    number_of = _numbers(lanes, events)
    texts, family_of, place = fewer(making.names, _weights(lanes, len(making.names.texts)))
    arrows = (*launches(trace, number_of, firsts), *_joint(joint, number_of, firsts))
    return Timeline(
        start_ns=begin,
        end_ns=end,
        names=texts,
        families=tuple(making.names.families),
        family_of=family_of,
        lanes=(*_lanes(lanes, making.owners, place), *left),
        curves=curves(making, begin, end),
        arrows=arrows,
        events=events,
        kept=int(np.count_nonzero(number_of >= 0)),
        details=shown,
    )


def _extent(trace: TraceView, sources: Sequence[Source]) -> tuple[int, int]:
    """Return the first and the last moment with data."""
    firsts = [int(source.starts.min()) for source in sources if source.starts.size]
    lasts = [trace.span_ns, *(source.end for source in sources)]
    for table in _OF_CURVES:
        times = trace.frame(table, "start_ns")["start_ns"]
        if len(times):
            firsts.append(int(times[0]))
            lasts.append(int(times[-1]))
    return min(firsts, default=0), max(lasts)


def _seated(made: Sequence[Drawn], owners: Owners) -> tuple[list[Drawn], tuple[Lane, ...]]:
    """Return the lanes in drawing order, and a lane that reports how many were left out."""
    work: Counter[int] = Counter()
    for lane in made:
        work[lane.seat.thread_id] += lane.events
    ordered = sorted(made, key=lambda lane: _place(lane, owners, work))
    if len(ordered) <= MOST_LANES:
        return ordered, ()
    busiest = sorted(ordered, key=lambda lane: (lane.seat.thread_id >= 0, -lane.events))[:MOST_LANES]
    kept = set(map(id, busiest))
    left = [lane for lane in ordered if id(lane) not in kept]
    words = f"{len(left):,} further lanes with {sum(lane.events for lane in left):,} events are not shown"
    return [lane for lane in ordered if id(lane) in kept], (Lane("further", words, "os", MACHINE, ()),)


def _place(lane: Drawn, owners: Owners, work: Counter[int]) -> tuple[int, ...]:
    """Order by process, then the lanes of the process before its threads: the training thread, then the busiest."""
    seat = lane.seat
    process = owners.place(seat.process_id)
    if seat.thread_id == NOBODY:
        return process, 0, _KINDS.index(seat.kind), seat.place
    is_training = seat.thread_id in owners.training
    kind = _THREAD_KINDS.index(seat.kind)
    return process, 1, not is_training, -work[seat.thread_id], seat.thread_id, kind


def _numbers(lanes: Sequence[Drawn], events: int) -> Array:
    """Return the timeline number of each event of the trace, in drawing order of the lanes; -1 for none."""
    number_of = np.full(events, -1, np.int64)
    count = 0
    for row in (row for lane in lanes for row in lane.rows):
        number_of[row.events] = np.arange(count, count + row.events.size)
        count += row.events.size
    return number_of


def _weights(lanes: Sequence[Drawn], names: int) -> npt.NDArray[np.float64]:
    """Return the time of each name in the drawn lanes, plus a little per span, so that used names are never 0."""
    weights = np.zeros(names)
    for lane in lanes:
        for row, seen in zip(lane.rows, lane.levels, strict=True):
            weights += np.bincount(row.names, row.durations + 1.0, names)
            for level in seen[:1]:
                weights += np.bincount(level.names, level.covered * (level.width_ns / 255), names)
    return weights


def _lanes(lanes: Sequence[Drawn], owners: Owners, place: Array) -> Iterator[Lane]:
    """Number the names and events of lanes as in the page."""
    count = 0
    for lane in lanes:
        rows = []
        for row in lane.rows:
            events = np.arange(count, count + row.events.size)
            count += row.events.size
            rows.append(replace(row, names=place[row.names], events=events))
        seen = tuple(tuple(replace(level, names=place[level.names]) for level in one) for one in lane.levels)
        seat = lane.seat
        yield Lane(seat.key, seat.label, seat.kind, owners.group(seat.process_id), tuple(rows), seen)


def _joint(joint: Collectives | None, number_of: Array, firsts: Mapping[str, int]) -> tuple[Arrows, ...]:
    """Return arrows between the same collective of ranks."""
    if joint is None or not joint.sources.size:
        return ()
    begin = firsts[joint.source.key]
    sources, targets = number_of[begin + joint.sources], number_of[begin + joint.targets]
    shown = np.flatnonzero((sources >= 0) & (targets >= 0))
    order = shown[np.argsort(sources[shown], kind="stable")]
    return (Arrows("collective", sources[order], targets[order]),) if order.size else ()
