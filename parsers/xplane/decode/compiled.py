"""XPlane planes through the compiled scanner, which exists if the package was built with a C compiler."""

from __future__ import annotations

import numpy as np

from traceviz.parsers.shared.arrays.native import library
from traceviz.parsers.xplane.decode.raw import Array, Events, Line, Plane, Stats
from traceviz.parsers.xplane.decode.wire import Damage, Data, plane_damage

_EVENT_COLUMNS = (
    ("event_line", np.int32),
    ("event_name", np.int32),
    ("event_offset", np.int64),
    ("event_duration", np.int64),
)
_STAT_COLUMNS = (("stat_event", np.int32), ("stat_key", np.int32), ("stat_kind", np.uint8), ("stat_value", np.int64))
"""Columns as the compiled scanner names them, in the order of :class:`Events` and :class:`Stats`."""


def scan_plane(data: Data, begin: int, end: int) -> tuple[Plane, tuple[Damage, ...]]:
    """Return the plane encoded in ``data[begin:end]``, and its damage.

    Raises:
        OverflowError: it holds more than 2,147,483,647 events.
        RuntimeError: another thread writes to the data.
    """
    assert library is not None
    raw = library.scan_plane(data, begin, end, _block)
    lines, first = [], 0
    for line_id, name, timestamp_ns, count in raw["lines"]:
        lines.append(Line(line_id, name, timestamp_ns, slice(first, first + count)))
        first += count
    plane = Plane(
        raw["id"],
        raw["name"],
        tuple(lines),
        Events(*(raw[name].view(kind)[: raw["events"]] for name, kind in _EVENT_COLUMNS)),
        Stats(*(raw[name].view(kind)[: raw["stats"]] for name, kind in _STAT_COLUMNS)),
        raw["names"],
        raw["display_names"],
        raw["name_stats"],
        raw["texts"],
        raw["blobs"],
        raw["properties"],
        raw["aggregated"],
    )
    return plane, plane_damage(plane.name, [line.name for line in plane.lines], raw["damage"])


def _block(size: int) -> Array:
    """Return memory for columns of ``size`` bytes: NumPy uses large pages, which are ready many times as fast."""
    return np.empty(size, np.uint8)
