"""XPlane planes through the compiled scanner, which is there where the package was built with a C compiler."""

from __future__ import annotations

from types import ModuleType

import numpy as np

from traceviz.parsers.xplane_raw import Damage, Events, Line, Plane, Stats
from traceviz.parsers.xplane_wire import Data, plane_damage

try:
    from traceviz.parsers import _xplane
except ImportError:
    library: ModuleType | None = None
else:
    library = _xplane


def scan_plane(data: Data, begin: int, end: int) -> tuple[Plane, tuple[Damage, ...]]:
    """The plane encoded in ``data[begin:end]``, and what of it could not be read.

    Raises:
        OverflowError: it holds more than 2,147,483,647 events.
        RuntimeError: someone writes to the file.
    """
    raw = _xplane.scan_plane(data, begin, end)
    lines, first = [], 0
    for line_id, name, timestamp_ns, count in raw["lines"]:
        lines.append(Line(line_id, name, timestamp_ns, slice(first, first + count)))
        first += count
    plane = Plane(
        raw["id"],
        raw["name"],
        tuple(lines),
        Events(
            np.frombuffer(raw["event_line"], np.int32),
            np.frombuffer(raw["event_name"], np.int32),
            np.frombuffer(raw["event_offset"], np.int64),
            np.frombuffer(raw["event_duration"], np.int64),
        ),
        Stats(
            np.frombuffer(raw["stat_event"], np.int32),
            np.frombuffer(raw["stat_key"], np.int32),
            np.frombuffer(raw["stat_kind"], np.uint8),
            np.frombuffer(raw["stat_value"], np.int64),
        ),
        raw["names"],
        raw["display_names"],
        raw["name_stats"],
        raw["texts"],
        raw["blobs"],
        raw["properties"],
        raw["aggregated"],
    )
    return plane, plane_damage(plane.name, [line.name for line in plane.lines], raw["damage"])
