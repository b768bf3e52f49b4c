"""The timeline of a trace together with the places of its findings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from traceviz.analyses.derived.view import TraceView
from traceviz.pictures.timeline.places import places
from traceviz.pictures.timeline.timeline import MOST_EVENTS, timeline
from traceviz.report import Finding
from traceviz.report.pictures.pictures import Place
from traceviz.report.pictures.timeline import Timeline


def timeline_and_places(
    trace: TraceView, findings: Sequence[Finding], events: int | None = None, start: int = 0
) -> tuple[Timeline | None, tuple[Place, ...]]:
    """Draw the timeline of a trace, and find the places of its findings.

    Args:
        trace: The trace.
        findings: Findings of the trace.
        events: Events that the timeline may have; ``None`` for :data:`MOST_EVENTS`, 0 for no timeline and no places.
        start: Start of the trace on the clock of the file that contains it. Both results use that clock.
    """
    if events == 0:
        return None, ()
    found = places(trace, findings)
    shown = timeline(trace, MOST_EVENTS if events is None else events, found)
    if not shown.lanes and not shown.curves:  # a summary has no events
        return None, ()
    known = {lane.key for lane in shown.lanes}
    found = tuple(place if place.lane in known else replace(place, lane="") for place in found)
    return moved(shown, start), tuple(
        replace(place, start_ns=place.start_ns + start, end_ns=place.end_ns + start) for place in found
    )


def moved(shown: Timeline, by: int) -> Timeline:
    """Shift a timeline by this many nanoseconds."""
    if not by:
        return shown
    return replace(
        shown,
        start_ns=shown.start_ns + by,
        end_ns=shown.end_ns + by,
        lanes=tuple(
            replace(lane, rows=tuple(replace(row, starts=row.starts + by) for row in lane.rows)) for lane in shown.lanes
        ),
        curves=tuple(replace(curve, times=curve.times + by) for curve in shown.curves),
        details=tuple(replace(one, start_ns=one.start_ns + by, end_ns=one.end_ns + by) for one in shown.details),
    )
