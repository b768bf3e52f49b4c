"""Operations on columns of millions of rows. Each is written twice: in C, and in NumPy, which says what it means.

The compiled ones give the same results without copies on the way; positions are 32 bits wide, which NumPy widens.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from traceviz.parsers.shared.arrays.native import native

Array = npt.NDArray[Any]

NONE = -1
"""Stands for no position."""
STRETCH = 1 << 20
"""Rows that are worked on at once, where NumPy needs more memory meanwhile than the result takes."""


def stretches(rows: int) -> Iterator[slice]:
    """All rows, :data:`STRETCH` at a time."""
    return (slice(begin, begin + STRETCH) for begin in range(0, rows, STRETCH))


def looked_up(answers: Array, codes: Array) -> Array:
    """``answers[codes]``: negative codes count from the end. NumPy widens all codes to 64 bits, these but a few."""
    result = np.empty(codes.size, answers.dtype)
    for part in stretches(codes.size):
        result[part] = answers[codes[part]]
    return result


def at(values: Array, rows: Array) -> Array:
    """As :func:`take`; where ``rows`` (int32) are all of them in order, ``values`` themselves and no copy."""
    return values if rows.size == values.size and _is_whole(rows) else take(values, rows)


def _is_whole(rows: Array) -> bool:
    return all(
        np.array_equal(rows[part], np.arange(part.start, min(part.stop, rows.size), dtype=np.int32))
        for part in stretches(rows.size)
    )


def positions(selected: Array) -> Array:
    """Where ``selected`` (bool) is true (int32)."""
    result, done = np.empty(int(np.count_nonzero(selected)), np.int32), 0
    for part in stretches(selected.size):
        found = np.flatnonzero(selected[part])
        result[done : done + found.size] = found + part.start
        done += found.size
    return result


def counted(codes: Array, size: int, selected: Array | None = None) -> Array:
    """How many of ``codes`` (0 to ``size``) are each (int64), of those that are ``selected`` (bool, ``None``: all)."""
    counts = np.zeros(size, np.int64)
    for part in stretches(codes.size):
        counts += np.bincount(codes[part] if selected is None else codes[part][selected[part]], minlength=size)
    return counts


def take(values: Array, index: Array, missing: int = NONE) -> Array:
    """``values[index]``, and ``missing`` where ``index`` is negative.

    Args:
        values: Values of 1, 4 or 8 bytes.
        index: Positions in ``values`` (int32).
        missing: What stands for no value; must fit the type of ``values``.
    """
    library = native()
    if library is None:
        padded = np.append(values, values.dtype.type(missing))
        return padded[np.where(index < 0, values.size, index)]
    result = np.empty(index.size, values.dtype)
    library.take(np.ascontiguousarray(values), values.itemsize, _positions(index), missing, result)
    return result


def used(codes: Array, size: int) -> Array:
    """Which of the codes 0 to ``size`` occur (bool); negative ones are none."""
    occurs = np.zeros(size, dtype=bool)
    library = native()
    if library is None:
        occurs[codes[codes >= 0]] = True
    else:
        library.mark(_positions(codes), occurs.view(np.uint8))
    return occurs


def inverted(index: Array, size: int) -> Array:
    """Where each of the positions 0 to ``size`` is in ``index`` (int32), :data:`NONE` where it is not."""
    library = native()
    if library is None:
        place = np.full(size, NONE, np.int32)
        place[index] = np.arange(index.size, dtype=np.int32)
        return place
    place = np.empty(size, np.int32)
    library.invert(_positions(index), place)
    return place


def by_start(start: Array, kept: Array) -> Array:
    """Positions (int32) of the ``kept`` rows (bool) in order of ``start`` (int64), equal ones as they come.

    Lines are sorted each, one after the other: the compiled function merges them.
    """
    library = native()
    if library is None:
        rows = np.flatnonzero(kept).astype(np.int32)
        return rows[np.argsort(start[rows], kind="stable")]
    order = np.empty(int(np.count_nonzero(kept)), np.int32)
    library.order(np.ascontiguousarray(start), np.ascontiguousarray(kept).view(np.uint8), order)
    return order


def by_key(key: Array, keys: int) -> tuple[Array, Array]:
    """Where the rows of each key begin (int64, one more than ``keys``), and all rows (int32) in order of their keys.

    Args:
        key: Key of each row (int32), from 0 to ``keys``. Rows of one key stay as they come.
        keys: Number of keys.
    """
    first = np.zeros(keys + 1, np.int64)
    library = native()
    if library is None:
        np.cumsum(np.bincount(key, minlength=keys), out=first[1:])
        return first, np.argsort(key, kind="stable").astype(np.int32)
    order = np.empty(key.size, np.int32)
    library.sort(_positions(key), first, order)
    return first, order


def joined(left: Array, right: Array, most: int) -> tuple[Array, Array]:
    """Pairs of rows (int32) of ``left`` and ``right`` with equal keys (int64), by ascending left, then right row.

    A key that ``most`` or more rows of both have joins nothing.
    """
    library = native()
    if library is not None:
        columns = (np.ascontiguousarray(keys, np.int64) for keys in (left, right))
        lefts, rights = library.join(*columns, most)
        return np.frombuffer(lefts, np.int32), np.frombuffer(rights, np.int32)
    order = np.argsort(right, kind="stable")
    first, last = (np.searchsorted(right[order], left, side=side) for side in ("left", "right"))
    alike = np.sort(left)
    same = np.searchsorted(alike, left, side="right") - np.searchsorted(alike, left, side="left")
    count = np.where((same >= most) & (last - first >= most), 0, last - first)
    place = np.repeat(first - np.cumsum(count) + count, count) + np.arange(count.sum())
    return np.repeat(np.arange(left.size, dtype=np.int32), count), order[place].astype(np.int32)


def nanoseconds(start_ps: Array, dur_ps: Array, line: Array, base_ns: Array) -> tuple[Array, Array]:
    """Starts and durations in whole nanoseconds (int64); negative durations count as zero.

    Picoseconds are cut off at the start and at the end. The base of a line is a whole number of nanoseconds, and may be
    a time of day, which in picoseconds would not fit into 64 bits: so it is added after the division.

    Args:
        start_ps: Starts in picoseconds (int64).
        dur_ps: Durations in picoseconds (int64).
        line: Line of each span (int32).
        base_ns: What is added to the starts of each line (int64).
    """
    library = native()
    if library is None:
        start, end = start_ps // 1000, (start_ps + np.maximum(dur_ps, 0)) // 1000
        return start + base_ns[line], end - start
    start, duration = np.empty(line.size, np.int64), np.empty(line.size, np.int64)
    columns = (np.ascontiguousarray(column) for column in (start_ps, dur_ps))
    library.nanoseconds(*columns, _positions(line), base_ns, start, duration)
    return start, duration


def _positions(column: Array) -> Array:
    return np.ascontiguousarray(column, np.int32)
