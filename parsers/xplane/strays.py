"""Removal of events of an XPlane file that are too far from the others for one capture, with a note.

In a damaged file, the base of a line and the offsets of its events may be any numbers of 64 bits. The remaining ones
can be added and subtracted in 64 bits, also in picoseconds.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from traceviz.parsers.shared.notes import Notes
from traceviz.parsers.xplane.decode.raw import Array, Events, Line, Plane, Space, Stats
from traceviz.trace.plausible import FARTHEST_NS, LONGEST_NS, Window, around, is_strange, note_durations, note_times

_LONGEST_PS = LONGEST_NS * 1000


def without_strays(space: Space, notes: Notes) -> Space:
    """Return ``space`` without events at implausible times; implausible durations become zero."""
    if not _has_strays(space):
        return space
    starts = [_starts(plane) for plane in space.planes]
    window = around(np.concatenate(starts))
    flags = [_kept(plane, start, window) for plane, start in zip(space.planes, starts, strict=True)]
    note_times(notes, "events", np.concatenate([start[~kept] for start, kept in zip(starts, flags, strict=True)]))
    planes = tuple(_at(plane, kept) for plane, kept in zip(space.planes, flags, strict=True))
    too_long = [plane.events.dur_ps[plane.events.dur_ps > _LONGEST_PS] // 1000 for plane in planes]
    note_durations(notes, "events", np.concatenate(too_long))
    return replace(space, planes=tuple(map(_without_durations, planes)))


def _has_strays(space: Space) -> bool:
    """Return whether any event is implausible, from the first and the last time of each line."""
    bounds = [bound for plane in space.planes for line in plane.lines for bound in _bounds(plane, line)]
    return bool(bounds) and (is_strange(min(bounds), max(bounds)) or not all(map(_are_near, space.planes)))


def _are_near(plane: Plane) -> bool:
    """Return whether all offsets are small enough for sums in picoseconds, even if close together."""
    offsets = plane.events.offset_ps
    return not offsets.size or bool(offsets.min() >= -2 * _LONGEST_PS and offsets.max() <= 2 * _LONGEST_PS)


def _bounds(plane: Plane, line: Line) -> tuple[int, ...]:
    """Return first start, and last start plus longest duration, in ns; nothing for a line without events."""
    offsets = plane.events.offset_ps[line.events]
    if not offsets.size:
        return ()
    first, last, longest = int(offsets.min()), int(offsets.max()), int(plane.events.dur_ps[line.events].max())
    return line.timestamp_ns + first // 1000, line.timestamp_ns + (last + max(longest, 0)) // 1000


def _starts(plane: Plane) -> Array:
    """Return starts in ns (int64); a base further than 146 years away is limited to that."""
    bases = [max(-FARTHEST_NS, min(line.timestamp_ns, FARTHEST_NS)) for line in plane.lines] or [0]
    starts: Array = np.array(bases, np.int64)[plane.events.line] + plane.events.offset_ps // 1000
    return starts


def _kept(plane: Plane, starts: Array, window: Window) -> Array:
    """Return a mask of plausible events (bool), whose offsets also allow sums in picoseconds."""
    near = (plane.events.offset_ps >= -2 * _LONGEST_PS) & (plane.events.offset_ps <= 2 * _LONGEST_PS)
    kept: Array = near & window.has(starts)
    return kept


def _at(plane: Plane, kept: Array) -> Plane:
    """Return ``plane`` with the ``kept`` events and their stats."""
    if kept.all():
        return plane
    place = np.cumsum(kept, dtype=np.int32) - np.int32(1)
    before = np.append(np.int32(0), place + np.int32(1))
    events, stats = plane.events, plane.stats.of(kept[plane.stats.event])
    lines = (
        replace(line, events=slice(int(before[line.events.start]), int(before[line.events.stop])))
        for line in plane.lines
    )
    return replace(
        plane,
        lines=tuple(lines),
        events=Events(events.line[kept], events.name[kept], events.offset_ps[kept], events.dur_ps[kept]),
        stats=Stats(place[stats.event], stats.key, stats.kind, stats.value),
    )


def _without_durations(plane: Plane) -> Plane:
    """Return ``plane`` with zero for durations that are too long, like negative ones."""
    too_long = plane.events.dur_ps > _LONGEST_PS
    if not too_long.any():
        return plane
    return replace(plane, events=replace(plane.events, dur_ps=np.where(too_long, 0, plane.events.dur_ps)))
