"""Operations on columns of millions of rows. Each exists in C and in NumPy; the NumPy version is the reference.

The compiled versions give the same results without temporary copies. Positions have 32 bits, which NumPy widens.
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
"""Rows per step, for operations whose temporary memory in NumPy exceeds their result."""


def stretches(rows: int) -> Iterator[slice]:
    """Return slices of :data:`STRETCH` rows that cover all rows."""
    return (slice(begin, begin + STRETCH) for begin in range(0, rows, STRETCH))


def looked_up(answers: Array, codes: Array) -> Array:
    """Return ``answers[codes]``; negative codes count from the end. Widens few codes to 64 bits at a time."""
    result = np.empty(codes.size, answers.dtype)
    for part in stretches(codes.size):
        result[part] = answers[codes[part]]
    return result


def at(values: Array, rows: Array) -> Array:
    """Do the same as :func:`take`; if ``rows`` (int32) are all rows in order, return ``values`` without a copy."""
    are_all = rows.size == values.size and all(
        np.array_equal(rows[part], np.arange(part.start, min(part.stop, rows.size), dtype=np.int32))
        for part in stretches(rows.size)
    )
    return values if are_all else take(values, rows)


def positions(selected: Array) -> Array:
    """Return the positions at which ``selected`` (bool) is true (int32)."""
    result, done = np.empty(int(np.count_nonzero(selected)), np.int32), 0
    for part in stretches(selected.size):
        found = np.flatnonzero(selected[part])
        result[done : done + found.size] = found + part.start
        done += found.size
    return result


def counted(codes: Array, size: int, selected: Array | None = None) -> Array:
    """Count each of ``codes`` (0 to ``size``), int64, among those that are ``selected`` (bool, ``None``: all)."""
    counts = np.zeros(size, np.int64)
    for part in stretches(codes.size):
        counts += np.bincount(codes[part] if selected is None else codes[part][selected[part]], minlength=size)
    return counts


def take(values: Array, index: Array, missing: int = NONE) -> Array:
    """Return ``values[index]``, and ``missing`` where ``index`` is negative.

    Args:
        values: Values of 1, 4 or 8 bytes.
        index: Positions in ``values`` (int32).
        missing: The value that stands for none; must fit the type of ``values``.
    """
    library = native()
    if library is None:
        padded = np.append(values, values.dtype.type(missing))
        return padded[np.where(index < 0, values.size, index)]
    result = np.empty(index.size, values.dtype)
    library.take(np.ascontiguousarray(values), values.itemsize, _positions(index), missing, result)
    return result


def used(codes: Array, size: int) -> Array:
    """Return whether each of the codes 0 to ``size`` occurs (bool); negative codes are ignored."""
    occurs = np.zeros(size, dtype=bool)
    library = native()
    if library is None:
        occurs[codes[codes >= 0]] = True
    else:
        library.mark(_positions(codes), occurs.view(np.uint8))
    return occurs


def inverted(index: Array, size: int) -> Array:
    """Return the place of each of the positions 0 to ``size`` in ``index`` (int32), :data:`NONE` if it is absent."""
    library = native()
    if library is None:
        place = np.full(size, NONE, np.int32)
        place[index] = np.arange(index.size, dtype=np.int32)
        return place
    place = np.empty(size, np.int32)
    library.invert(_positions(index), place)
    return place


def by_start(start: Array, kept: Array) -> Array:
    """Return positions (int32) of the ``kept`` rows (bool) in order of ``start`` (int64); the sort is stable.

    Each line is sorted already, one after the other: the compiled function merges them.
    """
    library = native()
    if library is None:
        rows = np.flatnonzero(kept).astype(np.int32)
        return rows[np.argsort(start[rows], kind="stable")]
    order = np.empty(int(np.count_nonzero(kept)), np.int32)
    library.order(np.ascontiguousarray(start), np.ascontiguousarray(kept).view(np.uint8), order)
    return order


def by_key(key: Array, keys: int) -> tuple[Array, Array]:
    """Return the offset of each key's first row (int64, ``keys`` + 1 elements), and all rows (int32) sorted by key.

    Args:
        key: Key of each row (int32), from 0 to ``keys``. Rows of one key keep their order.
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
    """Return pairs of rows (int32) of ``left`` and ``right`` with equal keys (int64), by left, then right row.

    A key with ``most`` or more rows on both sides joins nothing.
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
    """Return starts and durations in whole nanoseconds (int64); negative durations count as zero.

    Picoseconds are cut off at the start and at the end. The base of a line is a whole number of nanoseconds, and may be
    a time of day, which in picoseconds would not fit into 64 bits: it is therefore added after the division.

    Args:
        start_ps: Starts in picoseconds (int64).
        dur_ps: Durations in picoseconds (int64).
        line: Line of each span (int32).
        base_ns: Offset of the starts of each line (int64).
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
