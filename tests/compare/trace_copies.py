"""Copies of traces that state the same in another way, or of a program that differs in one known respect.

The formats are parsed here without the readers of traceviz, so that the copies do not share their mistakes.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from xplane_space import Space

Times = npt.NDArray[np.int64]
Warp = Callable[[Times], Times]
"""Moves instants, in nanoseconds."""
Row = tuple[Any, ...]
RowsOf = Callable[[str, Sequence[str], list[Row]], list[Row]]
"""Rows of a table by its name, its columns and its rows in another trace."""

_TIMES = ("start", "end", "timestamp", "queued", "submitted", "completed", "startTime", "stopTime")
"""Columns of instants, in the databases of nsys and nvprof."""


_KEY = "_id_"
"""Column of nvprof by which SQLite keeps rows in order."""
_THREAD = 0xFFFFFF
"""Bits of a globalTid of nsys that number the thread; the others are those of the process."""


# SQLite databases of nsys and nvprof


def shuffled_database(source: Path, target: Path, shift_ns: int = 0, seed: int = 1) -> Path:
    """Return the same rows in another physical order, every instant later by ``shift_ns``."""
    generator = random.Random(seed)

    def rows_of(table: str, columns: Sequence[str], rows: list[Row]) -> list[Row]:
        places = [place for place, name in enumerate(columns) if name in _TIMES]
        moved = [_shifted(row, places, shift_ns) for row in rows]
        keys = [place for place, name in enumerate(columns) if name == _KEY]
        if keys and not table.startswith("CUPTI_ACTIVITY_KIND"):
            return moved  # other tables refer to the rows by their keys
        order = generator.sample(range(len(moved)), len(moved))
        return [_with_key_of(moved[place], moved[index], keys) for index, place in enumerate(order)]

    return _copied(source, target, rows_of)


def _shifted(row: Row, places: Sequence[int], shift_ns: int) -> Row:
    """Instants later; those that are 0 or missing were not recorded."""
    changed = list(row)
    for place in places:
        changed[place] = row[place] + shift_ns if row[place] else row[place]
    return tuple(changed)


def _with_key_of(row: Row, other: Row, keys: Sequence[int]) -> Row:
    return tuple(other[place] if place in keys else value for place, value in enumerate(row))


def longer_kernels(source: Path, target: Path, percent: int) -> Path:
    """Return an nsys database in which every kernel takes ``percent`` percent longer, and nothing else does.

    Kernels of a stream follow each other, and what follows waits: longer ones push all that comes later. So time
    itself is stretched for each process while one of its kernels runs, for its calls and ranges too::

        before    kernel |##########|    |####|     | 10 + 4 of kernels, 4 + 5 of idle device
        after     kernel |###########|    |####.4|     | 11 + 4.4, and still 4 + 5

    Where kernels of a process do not overlap, each gets longer by exactly as much, up to a nanosecond of rounding at
    either end; what happens while no kernel runs keeps its duration.
    """
    with closing(sqlite3.connect(source)) as database:
        kernels = database.execute("SELECT globalPid, start, end FROM CUPTI_ACTIVITY_KIND_KERNEL ORDER BY start")
        spans: dict[int, list[tuple[int, int]]] = {}
        for process, start, end in kernels:
            spans.setdefault(process, []).append((start, end))
    warps = {process: stretching(of_process, percent) for process, of_process in spans.items()}

    def rows_of(_table: str, columns: Sequence[str], rows: list[Row]) -> list[Row]:
        owner = next((columns.index(name) for name in ("globalPid", "globalTid") if name in columns), None)
        places = [place for place, name in enumerate(columns) if name in ("start", "end")]
        return rows if owner is None or not places else _warped(rows, owner, places, warps)

    return _copied(source, target, rows_of)


def _warped(rows: list[Row], owner: int, places: Sequence[int], warps: dict[int, Warp]) -> list[Row]:
    """Return rows with their instants as the warp of their process has them; of another process, as they are."""
    changed = [list(row) for row in rows]
    for process, warp in warps.items():
        for place in places:
            own = [row for row in changed if row[place] is not None and row[owner] & ~_THREAD == process]
            for row, moved in zip(own, warp(np.array([row[place] for row in own], np.int64)), strict=True):
                row[place] = int(moved)
    return [tuple(row) for row in changed]


def stretching(spans: Sequence[tuple[int, int]], percent: int) -> Warp:
    """Extend time within ``spans``, which are in order of their start; squeeze it if ``percent`` is negative."""
    merged: list[list[int]] = []
    for start, end in spans:
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    starts, ends = np.array(merged, np.int64).T
    before = np.concatenate([[0], np.cumsum(ends - starts)])

    def warp(times: Times) -> Times:
        index = np.searchsorted(starts, times, side="right")
        last = np.maximum(index - 1, 0)
        within = np.where(index > 0, np.minimum(times, ends[last]) - starts[last], 0)
        busy = before[last] + within
        return times + (busy * percent + 50) // 100

    return warp


def _copied(source: Path, target: Path, rows_of: RowsOf) -> Path:
    """Return a database with the tables of ``source`` and the rows that ``rows_of`` makes of theirs."""
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new, new:
        named = old.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
        for name, definition in named.fetchall():
            new.execute(definition)
            cursor = old.execute(f'SELECT * FROM "{name}"')
            columns = [column[0] for column in cursor.description]
            marks = ", ".join("?" * len(columns))
            new.executemany(f'INSERT INTO "{name}" VALUES ({marks})', rows_of(name, columns, cursor.fetchall()))
    return target


# Kineto


def shuffled_kineto(source: Path, target: Path, shift_ns: int = 0, seed: int = 1) -> Path:
    """Return the same events in another order, every instant later by ``shift_ns``: whole microseconds, digits kept."""
    marked = json.loads(gzip.decompress(source.read_bytes()), parse_float=lambda digits: f"\0{digits}")
    events = marked["traceEvents"]
    for event in events:
        if "ts" in event:
            event["ts"] = _later(event["ts"], shift_ns // 1000)
    random.Random(seed).shuffle(events)
    text = re.sub(r'"\\u0000([^"]*)"', r"\1", json.dumps(marked))
    target.write_bytes(gzip.compress(text.encode(), 1, mtime=0))
    return target


def _later(stamp: str | int, micros: int) -> str | int:
    """Return a time in microseconds; one with decimals is text that starts with a mark."""
    if isinstance(stamp, int):
        return stamp + micros
    whole, _, decimals = stamp[1:].partition(".")
    return f"\0{int(whole) + micros}.{decimals}"


# XPlane


def squeezed_space(space: Space, within: str, percent: int) -> None:
    """Change how long everything takes while an event called ``within`` runs, by ``percent`` percent."""
    lines = [line for plane in space.planes for line in plane.lines]
    events = [event for line in lines for event in line.events]
    warp = stretching(sorted((start, start + dur) for start, dur, name, _ in events if name == within), percent)
    for line in lines:
        moved = [warp(np.array([start, start + dur])).tolist() for start, dur, _, _ in line.events]
        rest = [(name, stats) for _, _, name, stats in line.events]
        line.events = [
            (start, end - start, *name_and_stats) for (start, end), name_and_stats in zip(moved, rest, strict=True)
        ]


_PLANES, _LINES, _EVENTS, _TIMESTAMP = 1, 3, 4, 3
"""Fields of XSpace, XPlane and XLine."""

Field = tuple[int, int, int | bytes]
"""Number, wire type, content."""


def shuffled_xplane(source: Path, target: Path, shift_ns: int = 0, seed: int = 1) -> Path:
    """Return the same planes, lines and events in another order, every line beginning later by ``shift_ns``."""
    generator = random.Random(seed)

    def plane(content: bytes) -> bytes:
        return _shuffled(
            content, _LINES, lambda line: _shuffled(_later_line(line, shift_ns), _EVENTS, None, generator), generator
        )

    data = source.read_bytes()
    data = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    target.write_bytes(_shuffled(data, _PLANES, plane, generator))
    return target


def _shuffled(message: bytes, number: int, inner: Callable[[bytes], bytes] | None, generator: random.Random) -> bytes:
    """Return a message whose fields ``number`` have another order, in their places, each transformed by ``inner``."""
    fields = list(_fields(message))
    places = [place for place, field in enumerate(fields) if field[0] == number]
    changed = list(fields)
    for place, other in zip(places, generator.sample(places, len(places)), strict=True):
        _, wire, content = fields[other]
        changed[place] = (number, wire, inner(content) if inner else content)
    return b"".join(map(_encoded, changed))


def _later_line(line: bytes, shift_ns: int) -> bytes:
    fields = list(_fields(line))
    begun = next((content for tag, _, content in fields if tag == _TIMESTAMP), 0)
    rest = [field for field in fields if field[0] != _TIMESTAMP]
    return b"".join(map(_encoded, [*rest, (_TIMESTAMP, 0, begun + shift_ns)]))


def _fields(message: bytes) -> Iterator[Field]:
    """Yield the fields of a protobuf message."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        if key & 7 == 0:
            value, at = _varint(message, at)
            yield key >> 3, 0, value
            continue
        size, at = _varint(message, at) if key & 7 == 2 else ({1: 8, 5: 4}[key & 7], at)
        yield key >> 3, key & 7, message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (message[at] & 0x7F) << shift
        shift += 7
        at += 1
        if not message[at - 1] & 0x80:
            return value, at


def _encoded(field: Field) -> bytes:
    tag, wire, content = field
    head = _as_varint(tag << 3 | wire)
    if isinstance(content, int):
        return head + _as_varint(content)
    return head + (_as_varint(len(content)) if wire == 2 else b"") + content


def _as_varint(value: int) -> bytes:
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*groups, value])
