"""Common clock of all sources of a run: the wall clock of the machine that recorded them.

::

    program     |-------------------------------------------------|
    samples   . |. . . . . . . . . . . . . . . . . . . . . . . . .| .   may lie before 0 and after the end
    nsys            |=====================================|             0 is the first event of the sources that trace
    torch                     |========|                                and the span ends with their last event

If no source traces, the clock is that of the program: the sampler also runs while nsys starts and saves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from traceviz.parsers.ranks.identity import run_row
from traceviz.parsers.run.sources import Source, is_tracing, tracing_tables
from traceviz.parsers.shared.arrays.arrow import pc
from traceviz.parsers.shared.notes import Notes

SLACK_NS = 60 * 10**9
"""Maximum distance of a source from the program's run time; sources further away follow another clock."""


@dataclass(frozen=True, slots=True)
class Extent:
    """Time range of a source: wall-clock time of its zero, if known, and its length."""

    t0_unix_ns: int | None
    span_ns: int

    @classmethod
    def of(cls, source: Source) -> Extent:
        """Return the extent from the run row of ``source``, without the profiler's work after the last event."""
        row = run_row(source.tables)
        span = int(row.get("span_ns") or 0)
        ends = []
        for name in tracing_tables(source) if "overhead" in source.tables else ():
            events = source.tables[name]
            last = events["start_ns"]
            if "dur_ns" in events.column_names:
                last = pc.add(last, pc.fill_null(events["dur_ns"], 0))
            ends.append(int(pc.max(last).as_py()))
        return cls(row.get("t0_unix_ns"), min(span, max(ends, default=span)))


@dataclass(frozen=True, slots=True)
class RunClock:
    """The common clock.

    Args:
        starts: Start of each source on it, by position; sources that are missing cannot be put on it.
        t0_unix_ns: Wall-clock time of its zero, if known.
        span_ns: Last event of the sources that trace; if none does, the end of the program.
    """

    starts: dict[int, int]
    t0_unix_ns: int | None
    span_ns: int


def common_clock(sources: Sequence[Source], ran: tuple[int | None, int | None], notes: Notes) -> RunClock:
    """Put the sources on one clock, and note the exceptions.

    Args:
        sources: The sources, the most trusted first.
        ran: Wall-clock time of the start and the end of the program, if known.
        notes: Receives reports of sources that are left out.
    """
    extents = [Extent.of(source) for source in sources]
    timed = {place for place, extent in enumerate(extents) if extent.t0_unix_ns is not None}
    misplaced = set()  # sources that do not overlap the program's run time, with a tolerance
    for place in timed:
        begin = _begin(extents[place])
        ends_before = ran[0] is not None and begin + extents[place].span_ns < ran[0] - SLACK_NS
        if ends_before or (ran[1] is not None and begin > ran[1] + SLACK_NS):
            misplaced.add(place)
    tracing = [place for place, source in enumerate(sources) if is_tracing(source)]
    usable = timed - misplaced
    leading = [place for place in tracing if place in usable]
    if tracing and not leading:  # a single one keeps its own clock; no other source can be put on it
        alone = tracing[0]
        _note_left_out(sources, set(range(len(sources))) - {alone}, misplaced - {alone}, notes)
        return RunClock({alone: 0}, extents[alone].t0_unix_ns, extents[alone].span_ns)
    sources_left = leading or sorted(usable)
    if not sources_left:
        return RunClock(dict.fromkeys(range(len(sources)), 0), None, max((e.span_ns for e in extents), default=0))
    begins = min(_begin(extents[place]) for place in sources_left)
    ends = max(_begin(extents[place]) + extents[place].span_ns for place in sources_left)
    if not leading:  # only the time in which the program ran, if known
        first, last = ran
        start = begins if first is None else max(begins, first)
        stop = ends if last is None else min(ends, last)
        begins, ends = (start, stop) if start < stop else (begins, ends)
    starts = {place: _begin(extents[place]) - begins for place in sorted(usable)}
    _note_left_out(sources, set(range(len(sources))) - usable, misplaced, notes)
    return RunClock(starts, begins, ends - begins)


def _begin(extent: Extent) -> int:
    assert extent.t0_unix_ns is not None
    return extent.t0_unix_ns


def _note_left_out(sources: Sequence[Source], left_out: set[int], misplaced: set[int], notes: Notes) -> None:
    for place in sorted(left_out):
        why = (
            "its times of day are not those at which the program ran"
            if place in misplaced
            else "it does not say at what time of day it was recorded"
        )
        message = f"{sources[place].name} was left out, since {why}; report on it alone."
        notes.add("source-not-aligned", "warning", message)
