"""One clock for all sources of a run: the wall clock of the machine that all of them were recorded on.

::

    program     |-------------------------------------------------|
    samples     |. . . . . . . . . . . . . . . . . . . . . . . . .|     may lie before 0 and after the end
    nsys            |=====================================|             0 is the first event of the sources that trace
    torch                     |========|                                and the span ends with their last event
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from traceviz.parsers.ranks.identity import run_row
from traceviz.parsers.run.sources import Source, is_tracing
from traceviz.parsers.shared.notes import Notes

SLACK_NS = 60 * 10**9
"""Sources that lie further than this outside the time in which the program ran follow another clock."""


@dataclass(frozen=True, slots=True)
class Extent:
    """When a source was recorded: wall-clock time of its zero where it is known, and its length."""

    t0_unix_ns: int | None
    span_ns: int

    @classmethod
    def of(cls, source: Source) -> Extent:
        """What the run row of ``source`` says."""
        row = run_row(source.tables)
        return cls(row.get("t0_unix_ns"), int(row.get("span_ns") or 0))


@dataclass(frozen=True, slots=True)
class RunClock:
    """The common clock.

    Args:
        starts: Where on it each of the sources begins, by position; those that are not here cannot be put on it.
        t0_unix_ns: Wall-clock time of its zero, where it is known.
        span_ns: Last event of the sources that trace.
    """

    starts: dict[int, int]
    t0_unix_ns: int | None
    span_ns: int


def common_clock(sources: Sequence[Source], ran: tuple[int | None, int | None], notes: Notes) -> RunClock:
    """Put the sources on one clock, and note which cannot be.

    Args:
        sources: The sources, the most trusted first.
        ran: Wall-clock time of the start and the end of the program, as far as they are known.
        notes: Receives what is left out.
    """
    extents = [Extent.of(source) for source in sources]
    timed = {place for place, extent in enumerate(extents) if extent.t0_unix_ns is not None}
    misplaced = {place for place in timed if not _meets(extents[place], ran)}
    tracing = [place for place, source in enumerate(sources) if is_tracing(source)]
    usable = timed - misplaced
    leading = [place for place in tracing if place in usable]
    if tracing and not leading:  # one alone keeps its own clock; nothing else can be put on it
        alone = tracing[0]
        _note_left_out(sources, set(range(len(sources))) - {alone}, misplaced - {alone}, notes)
        return RunClock({alone: 0}, extents[alone].t0_unix_ns, extents[alone].span_ns)
    leading = leading or sorted(usable)
    if not leading:
        return RunClock(dict.fromkeys(range(len(sources)), 0), None, max((e.span_ns for e in extents), default=0))
    zero = min(_begin(extents[place]) for place in leading)
    starts = {place: _begin(extents[place]) - zero for place in sorted(usable)}
    _note_left_out(sources, set(range(len(sources))) - usable, misplaced, notes)
    return RunClock(starts, zero, max(starts[place] + extents[place].span_ns for place in leading))


def _begin(extent: Extent) -> int:
    assert extent.t0_unix_ns is not None
    return extent.t0_unix_ns


def _meets(extent: Extent, ran: tuple[int | None, int | None]) -> bool:
    """Whether any of a source lies in the time in which the program ran, give or take :data:`SLACK_NS`."""
    first, last = ran
    begin = _begin(extent)
    return (first is None or begin + extent.span_ns >= first - SLACK_NS) and (last is None or begin <= last + SLACK_NS)


def _note_left_out(sources: Sequence[Source], left_out: set[int], misplaced: set[int], notes: Notes) -> None:
    for place in sorted(left_out):
        why = (
            "its times of day are not those at which the program ran"
            if place in misplaced
            else "it does not say at what time of day it was recorded"
        )
        message = f"{sources[place].name} was left out, since {why}; report on it alone."
        notes.add("source-not-aligned", "warning", message)
