"""Removal of events of an XPlane file that are too far from the others for one capture, with a note.

In a damaged file, the base of a line and the offsets of its events may be any numbers of 64 bits. The remaining ones
can be added and subtracted in 64 bits, also in picoseconds.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from traceviz.parsers.shared.notes import Notes
from traceviz.parsers.xplane.decode.raw import Array, Events, Plane, Space, Stats
from traceviz.trace.plausible import FARTHEST_NS, LONGEST_NS, around, is_strange, note_durations, note_times

_LONGEST_PS = LONGEST_NS * 1000


def without_strays(space: Space, notes: Notes) -> Space:
    """Return ``space`` without events at implausible times; implausible durations become zero."""
    if not _has_strays(space):
        return space
    starts = [_starts_of(plane) for plane in space.planes]
    window = around(np.concatenate(starts))
    planes, strays = [], []
    for plane, start in zip(space.planes, starts, strict=True):
        kept = _allow_sums(plane.events.offset_ps) & window.has(start)
        strays.append(start[~kept])
        planes.append(_select(plane, kept))
    note_times(notes, "events", np.concatenate(strays))
    too_long = [plane.events.dur_ps > _LONGEST_PS for plane in planes]
    durations = [plane.events.dur_ps[wrong] // 1000 for plane, wrong in zip(planes, too_long, strict=True)]
    note_durations(notes, "events", np.concatenate(durations))
    for place, (plane, wrong) in enumerate(zip(planes, too_long, strict=True)):
        if wrong.any():
            events = replace(plane.events, dur_ps=np.where(wrong, 0, plane.events.dur_ps))
            planes[place] = replace(plane, events=events)
    return replace(space, planes=tuple(planes))


def _has_strays(space: Space) -> bool:
    """Return whether any event is implausible, from the first start and the longest duration of each line."""
    bounds: list[int] = []
    for plane in space.planes:
        for line in plane.lines:
            offsets = plane.events.offset_ps[line.events]
            if offsets.size:
                longest = max(int(plane.events.dur_ps[line.events].max()), 0)
                bounds += (
                    line.timestamp_ns + int(offsets.min()) // 1000,
                    line.timestamp_ns + (int(offsets.max()) + longest) // 1000,
                )
    if not bounds:
        return False
    return is_strange(min(bounds), max(bounds)) or not all(
        _allow_sums(plane.events.offset_ps).all() for plane in space.planes
    )


def _allow_sums(offset_ps: Array) -> Array:
    """Return whether each offset is small enough for sums in picoseconds (bool)."""
    small: Array = (offset_ps >= -2 * _LONGEST_PS) & (offset_ps <= 2 * _LONGEST_PS)
    return small


def _starts_of(plane: Plane) -> Array:
    """Return starts in ns (int64); a base further than 146 years away is limited to that."""
    bases = [max(-FARTHEST_NS, min(line.timestamp_ns, FARTHEST_NS)) for line in plane.lines] or [0]
    starts: Array = np.array(bases, np.int64)[plane.events.line] + plane.events.offset_ps // 1000
    return starts


def _select(plane: Plane, kept: Array) -> Plane:
    """Return ``plane`` with the ``kept`` events and their stats."""
    if kept.all():
        return plane
    place = np.cumsum(kept, dtype=np.int32) - np.int32(1)
    before = np.append(np.int32(0), place + np.int32(1))
    events, stats = plane.events, plane.stats.of(kept[plane.stats.event])
    return replace(
        plane,
        lines=tuple(
            replace(line, events=slice(int(before[line.events.start]), int(before[line.events.stop])))
            for line in plane.lines
        ),
        events=Events(events.line[kept], events.name[kept], events.offset_ps[kept], events.dur_ps[kept]),
        stats=Stats(place[stats.event], stats.key, stats.kind, stats.value),
    )
