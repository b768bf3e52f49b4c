"""XPlane files as columns, by the compiled scanner if the package was built with one, else through protobuf."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

import numpy as np

from traceviz.parsers.shared.arrays.native import library, native
from traceviz.parsers.xplane.decode.raw import Events, Line, Plane, Space, Stats
from traceviz.parsers.xplane.decode.wire import (
    BYTES,
    Broken,
    BrokenMessageError,
    CutShortError,
    Damage,
    Data,
    damage_words,
    plane_damage,
    read_fields,
    text,
    view,
)

_PLANE, _ERROR, _WARNING, _HOSTNAME = 1, 2, 3, 4
_MOST_FIELDS = 1 << 14
"""Maximum number of planes and messages of one file that are read: captures have tens, and each takes time."""

_EVENT_COLUMNS = (
    ("event_line", np.int32),
    ("event_name", np.int32),
    ("event_offset", np.int64),
    ("event_duration", np.int64),
)
_STAT_COLUMNS = (("stat_event", np.int32), ("stat_key", np.int32), ("stat_kind", np.uint8), ("stat_value", np.int64))
"""Columns as the compiled scanner names them, in the order of :class:`Events` and :class:`Stats`."""

PlaneScanner = Callable[[Data, int, int], tuple[Plane, tuple[Damage, ...]]]


def read_space(data: bytes | memoryview, scanner: str | None = None) -> Space:
    """Return the columns of the XPlane file ``data``, up to any damage, which is in :attr:`Space.damage`.

    It never rejects a file: if nothing can be read, there are no planes.

    Args:
        data: The file. It is not copied.
        scanner: ``compiled`` or ``protobuf``; ``None`` for the available one, see :func:`available_scanner`.
    """
    scanner = scanner or available_scanner()
    scan: PlaneScanner = scan_compiled
    if scanner != "compiled":
        from traceviz.parsers.xplane.decode import protobuf  # noqa: PLC0415 (loaded only where needed)

        scan = protobuf.scan_plane
    whole = view(data)
    planes: list[tuple[Plane, tuple[Damage, ...]]] = []
    texts: dict[int, list[str]] = {_ERROR: [], _WARNING: [], _HOSTNAME: []}
    broken, begin = Broken(), 0
    try:
        for count, (number, wire, value, stop) in enumerate(read_fields(whole, 0, len(whole)), 1):
            if count > _MOST_FIELDS:
                broken.unread = len(whole) - begin
                break
            begin = stop
            if number == _PLANE and wire == BYTES:
                planes.append(scan(whole, value, stop))
            elif number in texts and wire == BYTES:
                texts[number].append(text(whole[value:stop]))
            elif _PLANE <= number <= _HOSTNAME:
                broken.mistyped += 1
    except BrokenMessageError as error:
        broken.record_end(error)
        if isinstance(error, CutShortError) and (error.number, error.wire) == (_PLANE, BYTES):
            planes.append(scan(whole, error.begin, len(whole)))
    damage = [Damage("file", sentence) for sentence in damage_words(broken.numbers())]
    return Space(
        # If no part of a damaged plane could be read, the file may be of any kind
        tuple(
            plane
            for plane, of_plane in planes
            if plane.name or plane.lines or plane.names or plane.properties or not of_plane
        ),
        tuple(texts[_ERROR]),
        tuple(texts[_WARNING]),
        tuple(texts[_HOSTNAME]),
        (*damage, *chain.from_iterable(of_plane for _, of_plane in planes)),
        scanner,
    )


def available_scanner() -> str:
    """Return ``compiled`` if the package was built with it and TRACEVIZ_SCANNER does not select protobuf."""
    return "protobuf" if native() is None else "compiled"


def scan_compiled(data: Data, begin: int, end: int) -> tuple[Plane, tuple[Damage, ...]]:
    """Return the plane encoded in ``data[begin:end]``, and its damage.

    Raises:
        OverflowError: it holds more than 2,147,483,647 events.
        RuntimeError: another thread writes to the data.
    """
    assert library is not None
    # NumPy's memory comes in large pages, which are ready many times as fast
    raw = library.scan_plane(data, begin, end, lambda size: np.empty(size, np.uint8))
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
