"""What is compiled about calls that nest on their threads, and about rows that are alike.

Each function has a twin in NumPy, which it must agree with, and which runs where nothing is compiled, or where the
compiled one declines: calls that cross, or are in another order.
"""

from __future__ import annotations

import os
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

try:
    from traceviz.nested import _compiled
except ImportError:
    library: ModuleType | None = None
else:
    library = None if os.environ.get("TRACEVIZ_SWEEPS") == "numpy" else _compiled

Array = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Rows = npt.NDArray[np.signedinteger[Any]]
"""Positions of any width: 32 bits where there are millions."""
Mask = npt.NDArray[np.bool_]
Owners = npt.NDArray[np.integer[Any]]
PairColumns = tuple[Owners, Array, Mask | None]


def nested(groups: Array, starts: Array, ends: Array) -> tuple[Array, Array] | None:
    """Depth and parent of calls in order of group and start, the longer first (:func:`traceviz.intervals.nesting`).

    ``None`` where they are in another order, where some cross, or where nothing is compiled.
    """
    if library is None:
        return None
    depth, parent = np.empty(starts.size, np.int64), np.empty(starts.size, np.int64)
    return (depth, parent) if library.nest(groups, starts, ends, depth, parent) else None


def nearest(parent: Array, selected: Mask) -> Array:
    """For each call, the row of the innermost ``selected`` call that is it or is around it; -1 for none.

    Args:
        parent: Row of the call around each one; -1 for none.
        selected: Which calls are selected.
    """
    if library is not None:
        found = np.empty(parent.size, np.int64)
        if library.nearest(np.ascontiguousarray(parent), np.ascontiguousarray(selected).view(np.uint8), found):
            return found
    found = np.where(selected, np.arange(parent.size), -1)
    climbing = np.flatnonzero(~selected & (parent >= 0))
    above = parent[climbing]
    while climbing.size:  # at most once per depth
        done = selected[above]
        found[climbing[done]] = above[done]
        above, climbing = parent[above[~done]], climbing[~done]
        inside = above >= 0
        above, climbing = above[inside], climbing[inside]
    return found


def outer_alike(groups: Array, ends: Array, codes: Codes) -> Mask:
    """Which calls end after all earlier ones of their group that have the same code: they lie in no other of these.

    Args:
        groups: Group of each call; rows are in order of group and start, the longer first.
        ends: End of each.
        codes: Code of each, small and not negative.
    """
    if library is not None:
        outer = np.empty(groups.size, dtype=bool)
        library.outer(groups, ends, codes, int(codes.max(initial=0)) + 1, outer.view(np.uint8))
        return outer
    order = np.lexsort((codes, groups))
    changes = np.diff(groups[order]) != 0
    parts = np.flatnonzero(changes | (np.diff(codes[order]) != 0)) + 1
    found = np.empty(groups.size, dtype=bool)
    for part in np.split(order, parts):  # once per code
        found[part] = ends[part] > np.concatenate([ends[part][:1] - 1, np.maximum.accumulate(ends[part])[:-1]])
    return found


def stretches(
    groups: Array, starts: Array, ends: Array, parent: Array, wanted: Mask | None = None
) -> tuple[Array, Array, Codes] | None:
    """Begin, end and call of all stretches in which a call is innermost that is ``wanted``; all are where not given.

    Calls are those of :func:`nested`. ``None`` where calls cross, or where nothing is compiled.
    """
    if library is None:
        return None
    room = 2 * starts.size
    begin, end, owner = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int32)
    mask = np.empty(0, np.uint8) if wanted is None else np.ascontiguousarray(wanted).view(np.uint8)
    count = library.innermost(groups, starts, ends, np.ascontiguousarray(parent), mask, begin, end, owner)
    return None if count < 0 else (begin[:count], end[:count], owner[:count])


def matched(sought: PairColumns, among: PairColumns, owners: Owners, least: int, width: int) -> Codes | None:
    """For each of ``sought``, the first row of ``among`` with the same owner and id; -1 for none.

    ``None`` where nothing is compiled, or owners are wider than 32 bits: :mod:`traceviz.matching` has the twin.

    Args:
        sought: Owners, ids, and which rows have an id, or ``None`` where all have.
        among: The same.
        owners: The owners of ``among``, in order, each once.
        least: The least id of ``among``.
        width: How many ids there are from that to the greatest.
    """
    if library is None or {owners.dtype, sought[0].dtype, among[0].dtype} != {np.dtype(np.int32)}:
        return None
    table, found = np.empty(owners.size * width, np.int32), np.empty(sought[1].size, np.int32)
    library.match(*_buffers(sought), *_buffers(among), owners, least, width, table, found)
    return found


def _buffers(pairs: PairColumns) -> tuple[Owners, Array, npt.NDArray[np.uint8]]:
    owners, ids, known = pairs
    flags = np.empty(0, np.uint8) if known is None else np.ascontiguousarray(known).view(np.uint8)
    return np.ascontiguousarray(owners), np.ascontiguousarray(ids, np.int64), flags


def alike(*columns: Rows) -> tuple[Codes, Codes]:
    """The group of each row, numbered as they first come, and the first row of each group; rows that are equal are one.

    Args:
        columns: Columns of numbers that fit into 32 bits, of one length.
    """
    rows = columns[0].size
    if library is not None:
        group, first = np.empty(rows, np.int32), np.empty(rows, np.int32)
        count = library.alike(tuple(np.ascontiguousarray(column, np.int32) for column in columns), group, first)
        return group, first[:count].copy()
    _, firsts, inverse = np.unique(np.stack(columns, axis=1), axis=0, return_index=True, return_inverse=True)
    order = np.argsort(firsts)
    number = np.empty(order.size, np.int32)
    number[order] = np.arange(order.size, dtype=np.int32)
    return number[inverse.ravel()], firsts[order].astype(np.int32)


def add_shared(  # noqa: PLR0917 (columns)
    opens: Array, closes: Array, done: Array, starts: Array, ends: Array, owners: Rows, total: Array
) -> bool:
    """Add time of a set within each span to the total of its owner, if it has one (negative: none); whether it did."""
    if library is not None:
        library.add(opens, closes, done, starts, ends, np.ascontiguousarray(owners, np.int32), total)
    return library is not None


def nesting_order(groups: Array, starts: Array, ends: Array, ties: Array) -> Array | None:
    """Rows in order of group, start, falling end, and ``ties``; ``None`` where this is the order in which they come.

    As ``np.lexsort``, for rows that mostly come by start, as profilers write them: then groups are put together by one
    stable sort of small numbers, and only rows that start together are compared.
    """
    order = _by_group(groups)
    group, start = (groups, starts) if order is None else (groups[order], starts[order])
    same = group[1:] == group[:-1]
    if np.any(same & (start[1:] < start[:-1])):
        return np.lexsort((ties, -ends, starts, groups))
    together = same & (start[1:] == start[:-1])
    first = np.flatnonzero(together)
    one, other = (first, first + 1) if order is None else (order[first], order[first + 1])
    if not np.any((ends[other] > ends[one]) | ((ends[other] == ends[one]) & (ties[other] < ties[one]))):
        return order
    tied = np.zeros(groups.size, dtype=bool)
    tied[first], tied[first + 1] = True, True
    order = np.arange(groups.size) if order is None else order
    rows = order[tied]
    order[tied] = rows[np.lexsort((ties[rows], -ends[rows], starts[rows], groups[rows]))]
    return order


def _by_group(groups: Array) -> Array | None:
    """Rows by group, those of one as they come: NumPy sorts 16 bits by their digits."""
    if not groups.size or np.all(groups[1:] >= groups[:-1]):
        return None
    low, high = int(groups.min()), int(groups.max())
    keys = (groups - low).astype(np.uint16) if high - low < 1 << 16 else groups
    return np.argsort(keys, kind="stable")
