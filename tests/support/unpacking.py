"""The timeline of a page as a value again, read by its format alone: see :mod:`traceviz.report.pictures.packed`."""

import json
import math
import zlib
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from traceviz.report.pictures.packed import Packed
from traceviz.report.pictures.values import Array, Arrows, Curve, Detail, Family, Lane, Level, Place, Row, Timeline


def unpacked(texts: Packed) -> tuple[Timeline, tuple[Place, ...]]:
    """Return the inverse of :func:`packed`: names as they are shown, values of curves as they are rounded."""
    header = json.loads(texts.header)
    columns = _Stored(zlib.decompress(b64decode(texts.data), -zlib.MAX_WBITS), header["columns"])
    start = header["start"]
    timeline = Timeline(
        start,
        header["end"],
        tuple(header["names"]),
        tuple(Family(one["key"], one["label"]) for one in header["families"]),
        np.array(header["familyOf"], np.int64),
        tuple(_stored_lane(lane, start, columns) for lane in header["lanes"]),
        tuple(_stored_curve(curve, start, columns) for curve in header["curves"]),
        tuple(_stored_arrows(arrows, columns) for arrows in header["arrows"]),
        header["events"],
        header["kept"],
        tuple(Detail(one["start"], one["end"], one["reason"]) for one in header["details"]),
    )
    places = (Place(one["code"], one["start"], one["end"], one["lane"], one["label"]) for one in header["places"])
    return timeline, tuple(places)


@dataclass(frozen=True)
class _Stored:
    """Columns of a page."""

    data: bytes
    spans: Sequence[Sequence[int]]

    def of(self, entry: Mapping[str, Any]) -> list[Array]:
        """Return the columns of a row, level, curve or arrows."""
        return [self._column(place) for place in entry["columns"]]

    def _column(self, place: int) -> Array:
        begin, length = self.spans[place]
        stored = np.frombuffer(self.data, np.uint8, length, begin)
        first = np.flatnonzero(np.concatenate([[True], stored[:-1] < 0x80])) if length else np.empty(0, np.int64)
        position = np.arange(length) - np.repeat(first, np.diff(first, append=length))
        parts = (stored & 0x7F).astype(np.int64) << (position * 7)
        return np.add.reduceat(parts, first) if length else parts


def _stored_lane(lane: Mapping[str, Any], start: int, columns: _Stored) -> Lane:
    rows = tuple(_stored_row(row, start, columns) for row in lane["rows"])
    levels = tuple(tuple(_stored_level(level, columns) for level in row["levels"]) for row in lane["rows"])
    return Lane(lane["key"], lane["label"], lane["kind"], lane["group"], rows, levels)


def _stored_row(row: Mapping[str, Any], start: int, columns: _Stored) -> Row:
    gaps, durations, names, events = columns.of(row)
    ends = start + np.cumsum(gaps + durations)
    return Row(ends - durations, durations, names, np.cumsum(_from_zigzag(events)))


def _stored_level(level: Mapping[str, Any], columns: _Stored) -> Level:
    cells, names, covered = columns.of(level)
    return Level(level["width"], np.cumsum(cells), names, covered)


def _stored_curve(curve: Mapping[str, Any], start: int, columns: _Stored) -> Curve:
    (times,) = columns.of(curve)
    values = np.array([math.nan if value is None else value for value in curve["values"]], np.float64)
    return Curve(curve["key"], curve["label"], curve["group"], curve["unit"], start + np.cumsum(times), values)


def _stored_arrows(arrows: Mapping[str, Any], columns: _Stored) -> Arrows:
    sources, targets = columns.of(arrows)
    begins = np.cumsum(_from_zigzag(sources))
    return Arrows(arrows["kind"], begins, begins + _from_zigzag(targets))


def _from_zigzag(values: Array) -> Array:
    return (values >> 1) ^ -(values & 1)
