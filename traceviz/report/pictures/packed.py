"""A timeline as two texts of a page: a JSON header, and all number columns, delta-coded, deflated, in base64.

``<script type="application/json" id="tv-timeline">`` holds the header::

    {"version": 1, "start": ns, "end": ns, "events": N, "kept": N,
     "names": [text, ...], "families": [{"key", "label"}, ...], "familyOf": [number, ...],
     "lanes": [{"key", "label", "kind", "group",
                "rows": [{"count": n, "columns": [gap, duration, name, event],
                          "levels": [{"width": ns, "count": n, "columns": [cell, name, covered]}, ...]}, ...]}, ...],
     "curves": [{"key", "label", "group", "unit", "count": n, "columns": [time], "values": [number or null, ...]}, ...],
     "arrows": [{"kind", "count": n, "columns": [source, target]}, ...],
     "details": [{"start", "end", "reason"}, ...],
     "places": [{"code", "start", "end", "lane", "label"}, ...],
     "columns": [[byte offset, byte length], ...]}

where each number in a ``columns`` of a row, level, curve or arrows is a place in the header's own list ``columns``.

``<script type="application/octet-stream" id="tv-timeline-data">`` holds base64 of all columns, one after the other,
as one stream of raw deflate (``DecompressionStream("deflate-raw")``). A column is a sequence of unsigned LEB128
varints:

* gap: start of a span, counted from the end of the previous one; of the first, from the start of the timeline;
* duration, name of a span, name and covered of a cell: as they are;
* event, source: difference to the previous one (of the first: to 0), zigzag;
* cell: difference to the previous one; of the first, as it is;
* time: difference to the previous one; of the first, to the start of the timeline;
* target: difference to the source of the same arrow, zigzag.

Times are whole nanoseconds, exact up to 2^53 from the start of the timeline on. Values of curves keep four significant
digits; null means not measured. All texts are sanitized (:mod:`traceviz.core.sanitize`), up to 2,000 characters.
"""

from __future__ import annotations

import json
import math
import zlib
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from traceviz.core.sanitize import bounded, visible
from traceviz.report.pictures.values import Array, Arrows, Curve, Lane, Level, Place, Row, Timeline

_LENGTHS = 2_000, 1_000, 500, 250, 120
"""Limits of the length of a name, tried in order until all names fit."""


def plain(text: str) -> str:
    """Return a sanitized text of up to 2,000 characters."""
    return bounded(visible(bounded(text)))


def fitting(texts: Iterable[str], most_characters: int) -> list[str]:
    """Sanitize texts, and cut the middle of the longest until all have at most ``most_characters`` together.

    Each text keeps at least 120 characters: names of kernels differ at both ends.
    """
    shown = [plain(text) for text in texts]
    lengths = np.array([len(text) for text in shown], np.int64)
    most = next((length for length in _LENGTHS if np.minimum(lengths, length).sum() <= most_characters), _LENGTHS[-1])
    tail = most // 3
    return [text if len(text) <= most else f"{text[: most - tail - 1]}…{text[-tail:]}" for text in shown]


VERSION = 1
"""Version of the packing."""
MOST_CHARACTERS = 800_000
"""Limit of the characters of all names together, unless 120 of each exceed it."""
_RAW = -15
"""Window of zlib without header and checksum: deflate-raw."""
_AT_ONCE = 1 << 18
"""Numbers coded per batch, which keeps temporary arrays small."""
_MASK, _MORE, _BITS = np.uint64(0x7F), np.uint8(0x80), 7
_DIGITS = 4
_UNSAFE = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}
"""Characters that could end a script element or a line of a script; in JSON they occur only in strings."""

Bytes = npt.NDArray[np.uint8]
Unsigned = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Packed:
    """The two texts. Neither can end the script element that contains it.

    Args:
        header: JSON.
        data: Base64.
    """

    header: str
    data: str


def packed(timeline: Timeline, places: Iterable[Place] = ()) -> Packed:
    """Encode ``timeline`` and ``places`` for a page.

    Raises:
        ValueError: spans of a row overlap, or a column that must ascend does not.
    """
    columns = _Columns()
    start = timeline.start_ns
    header = {
        "version": VERSION,
        "start": start,
        "end": timeline.end_ns,
        "events": timeline.events,
        "kept": timeline.kept,
        "names": fitting(timeline.names, MOST_CHARACTERS),
        "families": [{"key": plain(family.key), "label": plain(family.label)} for family in timeline.families],
        "familyOf": timeline.family_of.tolist(),
        "lanes": [_lane(lane, start, columns) for lane in timeline.lanes],
        "curves": [_curve(curve, start, columns) for curve in timeline.curves],
        "arrows": [_arrows(arrows, columns) for arrows in timeline.arrows],
        "details": [
            {"start": one.start_ns, "end": one.end_ns, "reason": plain(one.reason)} for one in timeline.details
        ],
        "places": [_place(place) for place in places],
    }
    data = columns.text()
    text = json.dumps({**header, "columns": columns.spans}, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Packed(text.translate(_UNSAFE), data)


def _lane(lane: Lane, start: int, columns: _Columns) -> dict[str, Any]:
    levels = lane.levels or ((),) * len(lane.rows)
    rows = [_row(row, of_row, start, columns) for row, of_row in zip(lane.rows, levels, strict=True)]
    texts = {"key": lane.key, "label": lane.label, "kind": lane.kind, "group": lane.group}
    return {**{key: plain(text) for key, text in texts.items()}, "rows": rows}


def _row(row: Row, levels: Sequence[Level], start: int, columns: _Columns) -> dict[str, Any]:
    ends = np.concatenate([[start], row.starts[:-1] + row.durations[:-1]]) if row.starts.size else row.starts
    written = (row.starts - ends, row.durations, row.names, _zigzag(_differences(row.events)))
    return {
        "count": row.starts.size,
        "columns": columns.add(*written),
        "levels": [_level(level, columns) for level in levels],
    }


def _level(level: Level, columns: _Columns) -> dict[str, Any]:
    written = columns.add(_differences(level.cells), level.names, level.covered)
    return {"width": level.width_ns, "count": level.cells.size, "columns": written}


def _curve(curve: Curve, start: int, columns: _Columns) -> dict[str, Any]:
    texts = {"key": curve.key, "label": curve.label, "group": curve.group, "unit": curve.unit}
    return {
        **{key: plain(text) for key, text in texts.items()},
        "count": curve.times.size,
        "columns": columns.add(_differences(curve.times, start)),
        "values": [_rounded(value) for value in curve.values.tolist()],
    }


def _rounded(value: float) -> float | int | None:
    """Round ``value`` to four significant digits; ``None`` for values that are not finite."""
    if not math.isfinite(value):
        return None
    short = float(f"{value:.{_DIGITS}g}")
    return int(short) if short.is_integer() else short


def _arrows(arrows: Arrows, columns: _Columns) -> dict[str, Any]:
    written = columns.add(_zigzag(_differences(arrows.sources)), _zigzag(arrows.targets - arrows.sources))
    return {"kind": arrows.kind, "count": arrows.sources.size, "columns": written}


def _place(place: Place) -> dict[str, Any]:
    texts = {"code": place.code, "lane": place.lane, "label": place.label}
    return {"start": place.start_ns, "end": place.end_ns, **{key: plain(text) for key, text in texts.items()}}


def _differences(values: Array, first: int = 0) -> Array:
    return np.diff(values, prepend=np.int64(first))


def _zigzag(values: Array) -> Array:
    """Map 0, -1, 1, -2 ... to 0, 1, 2, 3 ..., so that small numbers stay small."""
    return (values << 1) ^ (values >> 63)


@dataclass
class _Columns:
    """Columns as one stream of deflated bytes, with the place of each in the uncompressed bytes."""

    spans: list[list[int]] = field(default_factory=list)
    _deflated: list[bytes] = field(default_factory=list)
    _length: int = 0
    _deflate: Any = field(default_factory=lambda: zlib.compressobj(9, zlib.DEFLATED, _RAW))

    def add(self, *columns: Array) -> list[int]:
        """Add columns and return their places in the header's list."""
        return [self._add(column) for column in columns]

    def _add(self, column: Array) -> int:
        if column.size and column.min() < 0:
            raise ValueError("A row has spans that overlap, or a column that must ascend does not.")
        begin = self._length
        for part in _varints(column):
            self._deflated.append(self._deflate.compress(part))
            self._length += len(part)
        self.spans.append([begin, self._length - begin])
        return len(self.spans) - 1

    def text(self) -> str:
        """Return all columns in base64."""
        return b64encode(b"".join([*self._deflated, self._deflate.flush()])).decode("ascii")


def _varints(values: Array) -> Iterator[bytes]:
    """Encode ``values`` as LEB128, in batches."""
    for begin in range(0, values.size, _AT_ONCE):
        yield _coded(values[begin : begin + _AT_ONCE].astype(np.uint64))


def _coded(values: Unsigned) -> bytes:
    sizes = np.ones(values.size, np.int64)
    for bits in range(_BITS, max(int(values.max()).bit_length(), 1), _BITS):
        sizes += values >= np.uint64(1 << bits)
    ends = sizes.cumsum()
    result = np.empty(int(ends[-1]), np.uint8)
    positions, left = ends - sizes, values
    while positions.size:
        result[positions] = (left & _MASK).astype(np.uint8) | _MORE
        more = left > _MASK
        positions, left = positions[more] + 1, left[more] >> np.uint64(_BITS)
    result[ends - 1] &= ~_MORE
    return result.tobytes()
