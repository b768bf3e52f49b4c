"""Content of an XPlane file as columns: the events of each plane, their stats, and the names they refer to.

An XSpace is a list of planes: one per device, one for the host's threads. A plane is a list of lines, one per stream or
thread. A line is a list of events, and an event carries stats (key and value). Names are stored once per plane and
referred to by number. All columns of a plane are NumPy arrays in file order; the events of a line are contiguous.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from traceviz.parsers.shared.arrays.operations import by_key
from traceviz.parsers.xplane.decode.wire import Damage

Array = npt.NDArray[Any]


class Kind(IntEnum):
    """Kind of the value of a stat. The numbers are those of the fields of ``XStat``, except ``TEXT``."""

    REAL = 2
    UNSIGNED = 3
    SIGNED = 4
    TEXT = 5
    BYTES = 6


@dataclass(frozen=True, slots=True)
class Line:
    """One line: a stream of a device, or a thread.

    Args:
        id: Its id: signed, 64 bits, opaque. Lines with the same id are the same timeline.
        name: Its display name, else its name.
        timestamp_ns: Base of its events' offsets.
        events: Positions of its events in the columns of the plane.
    """

    id: int
    name: str
    timestamp_ns: int
    events: slice


@dataclass(frozen=True, slots=True, eq=False)
class Events:
    """Events of a plane, one element per event.

    Args:
        line: Position of the line in :attr:`Plane.lines` (int32).
        name: Position in :attr:`Plane.names` (int32).
        offset_ps: Start relative to the line's base, in picoseconds (int64).
        dur_ps: Duration in picoseconds (int64); may be negative in damaged files.
    """

    line: Array
    name: Array
    offset_ps: Array
    dur_ps: Array

    def __len__(self) -> int:
        return int(self.line.size)


@dataclass(frozen=True, slots=True, eq=False)
class Stats:
    """Stats of the events of a plane, one element per stat, in the order of the events.

    Args:
        event: Position of the event (int32).
        key: Position of the key in :attr:`Plane.texts` (int32).
        kind: A :class:`Kind` (uint8).
        value: 64 bits (int64): the number itself, the bits of a float, or of an unsigned number; for ``TEXT`` the
            position in :attr:`Plane.texts`, for ``BYTES`` in :attr:`Plane.blobs`.
    """

    event: Array
    key: Array
    kind: Array
    value: Array

    def __len__(self) -> int:
        return int(self.event.size)

    def of(self, rows: Array) -> Stats:
        """Return the stats at ``rows`` (positions or a mask)."""
        return Stats(self.event[rows], self.key[rows], self.kind[rows], self.value[rows])


Value = int | float | str | bytes


@dataclass(frozen=True)
class Plane:
    """One plane.

    Args:
        id: Its id: the ordinal of a device.
        name: Its name, for example ``/device:GPU:0``.
        lines: Its lines.
        events: Its events.
        stats: Their stats.
        names: Names of events.
        display_names: Display names of events, at the same positions; empty if there is none.
        name_stats: Stats that apply to all events of a name, by position in ``names``.
        texts: Names of stats and values of text stats. Invalid UTF-8 is replaced.
        blobs: Values of stats that are bytes.
        properties: Stats of the plane itself.
        aggregated: Events that were left out because they stand for several executions and have no time.
    """

    id: int
    name: str
    lines: tuple[Line, ...]
    events: Events
    stats: Stats
    names: list[str]
    display_names: list[str]
    name_stats: Mapping[int, Mapping[str, Value]]
    texts: list[str]
    blobs: list[bytes]
    properties: Mapping[str, Value]
    aggregated: int = 0

    @cached_property
    def keys(self) -> dict[str, list[int]]:
        """Positions in ``texts`` of each text that is the key of some event's stat. A name may occur twice."""
        first, positions = self._rows_by_key[0], dict[str, list[int]]()
        for position in np.flatnonzero(first[1:] > first[:-1]).tolist():
            positions.setdefault(self.texts[position], []).append(position)
        return positions

    @cached_property
    def _rows_by_key(self) -> tuple[Array, Array]:
        """Offset of the first stat of each key (int64), and positions of all stats in the order of their keys."""
        return by_key(self.stats.key, len(self.texts))

    def rows_of(self, *keys: str) -> Array:
        """Return positions of the stats whose key is one of ``keys``, ascending (int32)."""
        first, order = self._rows_by_key
        parts = [order[first[key] : first[key + 1]] for name in keys for key in self.keys.get(name, ())]
        if len(parts) == 1:
            return parts[0]
        return np.unique(np.concatenate(parts)) if parts else np.empty(0, np.int32)

    def stats_of(self, *keys: str) -> Stats:
        """Return the stats whose key is one of ``keys``."""
        return self.stats.of(self.rows_of(*keys))

    def start_ps(self, origin_ns: int, rows: Array | slice = slice(None)) -> Array:
        """Return starts of the events at ``rows`` in picoseconds after ``origin_ns`` (int64)."""
        bases = np.array([wrap_int64((line.timestamp_ns - origin_ns) * 1000) for line in self.lines], dtype=np.int64)
        starts = self.events.offset_ps[rows]
        return bases[self.events.line[rows]] + starts if self.lines else starts


def wrap_int64(number: int) -> int:
    """Return ``number`` wrapped to 64 bits: in damaged files differences of times exceed them."""
    return (number + 2**63) % 2**64 - 2**63


@dataclass(frozen=True, slots=True)
class Space:
    """A whole file.

    Args:
        planes: Its planes.
        errors, warnings: Reports of the profiler itself.
        hostnames: Hosts that were profiled.
        damage: Violations of the format.
        scanner: Its decoder: ``compiled`` or ``protobuf``.
    """

    planes: tuple[Plane, ...]
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    hostnames: tuple[str, ...] = ()
    damage: tuple[Damage, ...] = ()
    scanner: str = field(default="protobuf", compare=False)
