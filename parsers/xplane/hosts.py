"""The hosts of a run on one clock, and the roles of their planes.

Every host writes its own file. Its events count from the start of its profiling, which the plane ``Task Environment``
gives as wall-clock time; hosts are aligned on it if all of them state it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import NamedTuple

import numpy as np

from traceviz.parsers.shared.arrays.operations import nanoseconds, stretches
from traceviz.parsers.xplane.decode.raw import Array, Line, Plane, Space, wrap_int64
from traceviz.parsers.xplane.groups.groups import Groups
from traceviz.trace.plausible import LONGEST_NS

ENVIRONMENT = "Task Environment"
METADATA = "/host:metadata"
_DEVICE = re.compile(r"^/device:(?P<kind>GPU|TPU):(?P<ordinal>\d{1,9})(?!\d)")
_UNREAD_HOSTS = ("/host:tfstreamz", "/host:__ScopeRangeCallStack__")
_EPOCH_NS = 10**18
"""Minimum of times of day (September 2001): no capture runs for thirty years."""

_DERIVED_IDS = range(-559_038_737, -559_038_737 + 100_000)
"""Ids of the lines that the profiler derives from the others: they start at 0xdeadbeef, read as a signed number."""
_DERIVED_NAMES = re.compile(
    r"^(Steps|Launch Stats|(TensorFlow|Framework) (Name Scope|Ops)|XLA (Modules|Ops|TraceMe)|Source code)( - from #|$)"
)


class Role(Enum):
    """Content of a plane."""

    HOST = "host"
    GPU = "gpu"
    TPU = "tpu"
    FACTS = "facts"
    OTHER = "other"


def role(plane: Plane) -> Role:
    """Return the content of ``plane``, by its name."""
    match = _DEVICE.match(plane.name)
    if match:
        return Role(match["kind"].lower())
    if plane.name in (ENVIRONMENT, METADATA) or not plane.lines:
        return Role.FACTS
    is_host = plane.name.startswith("/host:") and not plane.name.startswith(_UNREAD_HOSTS)
    return Role.HOST if is_host else Role.OTHER


def ordinal(plane: Plane) -> int:
    """Return the number of the device of a device plane."""
    match = _DEVICE.match(plane.name)
    return int(match["ordinal"]) if match else plane.id


def is_derived(line: Line) -> bool:
    """Return whether ``line`` of a GPU plane repeats other lines; saved files may contain such lines."""
    return line.id in _DERIVED_IDS or bool(_DERIVED_NAMES.match(line.name)) or " - from #" in line.name


class Times(NamedTuple):
    """Starts and durations of events in nanoseconds (int64)."""

    start_ns: Array
    dur_ns: Array


class Grouped(NamedTuple):
    """Groups of a host, and the offset of their ids."""

    groups: Groups | None
    first: int


@dataclass(frozen=True, eq=False)
class Host:
    """One host of a run.

    Args:
        process_id: Its process: its position among the hosts.
        name: Its name, from the file name; private.
        space: Content of its file.
        zero_ns: Time in the file that is zero on the trace's clock.
        grouped: Returns :attr:`groups` and :attr:`first_group`; waits until they are formed.
    """

    process_id: int
    name: str
    space: Space
    zero_ns: int
    grouped: Callable[[], Grouped]

    @cached_property
    def groups(self) -> Groups | None:
        """Groups of its events; ``None`` if no table needs them."""
        return self.grouped().groups

    @property
    def first_group(self) -> int:
        """Offset of its group ids, so that no two hosts share one."""
        return self.grouped().first

    def planes(self, *roles: Role) -> Iterator[tuple[int, Plane]]:
        """Return position and plane of each plane that has one of ``roles``."""
        return ((place, plane) for place, plane in enumerate(self.space.planes) if role(plane) in roles)

    @cached_property
    def has_gpu(self) -> bool:
        """True if the capture covers GPUs."""
        return any(True for _ in self.planes(Role.GPU))

    def times(self, plane: Plane, rows: Array | slice = slice(None)) -> Times:
        """Return times of the events of ``plane`` at ``rows``, on the trace's clock. Negative durations become zero."""
        events = plane.events
        bases = np.array([wrap_int64(line.timestamp_ns - self.zero_ns) for line in plane.lines], dtype=np.int64)
        return Times(*nanoseconds(events.offset_ps[rows], events.dur_ps[rows], events.line[rows], bases))

    def group_id(self, place: int, rows: Array | slice = slice(None)) -> Array:
        """Return group ids of events of the plane at ``place``, unique in the trace; -1 for none."""
        if self.groups is None:
            return np.full(len(self.space.planes[place].events), -1, dtype=np.int64)[rows]
        group_ids = self.groups.planes[place].group_id[rows]
        if not self.first_group:
            return group_ids
        return np.where(group_ids >= 0, group_ids.astype(np.int64) + self.first_group, -1)


@dataclass(frozen=True, slots=True)
class Clock:
    """The clock of a trace.

    Args:
        zero_ns: For each host, the time in its file that is zero.
        last_ns: End of the last event on the trace's clock.
        t0_unix_ns: Time of day at zero.
        aligned: True if the hosts share the clock.
    """

    zero_ns: tuple[int, ...]
    last_ns: int
    t0_unix_ns: int | None
    aligned: bool


def common_clock(spaces: Sequence[Space]) -> Clock:
    """Return the clock on which the first event of ``spaces`` is at zero; without a common one, each host's first.

    Hosts without events, which saved only errors, do not count.
    """
    extents = [_extent(space) for space in spaces]
    offsets = [_to_unix(space) for space in spaces]
    timed = [place for place, space in enumerate(spaces) if any(len(plane.events) for plane in space.planes)] or [0]
    known = {place: offset for place in timed if (offset := offsets[place]) is not None}
    begins = [extents[place][0] + offset for place, offset in known.items()]
    aligned = len(known) == len(timed) and max(begins) - min(begins) <= LONGEST_NS  # else no run is that long
    if aligned:
        first = min(begins)
        zeros = tuple(first - (offset or 0) for offset in offsets)
    else:
        zeros = tuple(start for start, _ in extents)
    last = max(extents[place][1] - zeros[place] for place in timed)
    began = offsets[timed[0]]
    t0 = None if began is None else wrap_int64(zeros[timed[0]] + began)
    return Clock(zeros, wrap_int64(last), t0, aligned or len(timed) == 1)


def _extent(space: Space) -> tuple[int, int]:
    """Return first start and last end of the events of ``space``; (0, 0) without events."""
    firsts, lasts = [], []
    for plane in space.planes:
        for line in plane.lines:
            start, duration = plane.events.offset_ps[line.events], plane.events.dur_ps[line.events]
            if start.size:
                last = max(int((start[part] + np.maximum(duration[part], 0)).max()) for part in stretches(start.size))
                base = wrap_int64(line.timestamp_ns)
                firsts.append(wrap_int64(int(start.min()) // 1000 + base))  # truncation keeps the order
                lasts.append(wrap_int64(last // 1000 + base))
    return min(firsts, default=0), max(lasts, default=0)


def _to_unix(space: Space) -> int | None:
    """Return the offset from times in ``space`` to times of day; ``None`` if it is not stated.

    Lines of finished captures count from the start of the profiling; those of raw ones are times of day.
    """
    bases = [
        line.timestamp_ns for plane in space.planes for line in plane.lines if line.events.stop > line.events.start
    ]
    if bases and min(bases) >= _EPOCH_NS:
        return 0
    started = [plane.properties.get("profile_start_time") for plane in space.planes if plane.name == ENVIRONMENT]
    return next((start for start in started if isinstance(start, int)), None)
