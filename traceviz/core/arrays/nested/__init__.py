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
    from traceviz.core.arrays.nested import _compiled
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

_MOST_ROWS = np.iinfo(np.int32).max


def _narrow(numbers: Rows) -> Codes:
    return np.ascontiguousarray(numbers, np.int32)


def nested(groups: Array, starts: Array, ends: Array) -> tuple[Codes, Codes] | None:
    """Depth and parent of calls in order of group and start, the longer first (see ``intervals.nesting``).

    ``None`` where they are in another order, where some cross, or where nothing is compiled.
    """
    return _nest(groups, starts, ends, cross=False)


def crossing(groups: Array, starts: Array, ends: Array) -> tuple[Codes, Codes] | None:
    """As :func:`nested`, also where some cross."""
    return _nest(groups, starts, ends, cross=True)


def _nest(groups: Array, starts: Array, ends: Array, *, cross: bool) -> tuple[Codes, Codes] | None:
    if library is None or starts.size > _MOST_ROWS:
        return None
    depth, parent = np.empty(starts.size, np.int32), np.empty(starts.size, np.int32)
    return (depth, parent) if library.nest(groups, starts, ends, cross, depth, parent) else None


def nearest(parent: Rows, selected: Mask) -> Rows:
    """For each call, the row of the innermost ``selected`` call that is it or is around it; -1 for none.

    Args:
        parent: Row of the call around each one; -1 for none.
        selected: Which calls are selected.
    """
    if library is not None:
        rows = np.empty(parent.size, np.int32)
        if library.nearest(_narrow(parent), np.ascontiguousarray(selected).view(np.uint8), rows):
            return rows
    found: Rows = np.where(selected, np.arange(parent.size), -1)
    climbing = np.flatnonzero(~selected & (parent >= 0))
    above = parent[climbing]
    while climbing.size:  # at most once per depth
        done = selected[above]
        found[climbing[done]] = above[done]
        above, climbing = parent[above[~done]], climbing[~done]
        inside = above >= 0
        above, climbing = above[inside], climbing[inside]
    return found


def topmost(parent: Rows, selected: Mask) -> Rows:
    """For each call, the row of the outermost ``selected`` call that is it or is around it; -1 for none.

    Args:
        parent: Row of the call around each one, which comes before it; -1 for none.
        selected: Which calls are selected.
    """
    if library is not None:
        found = np.empty(parent.size, np.int32)
        if library.topmost(_narrow(parent), np.ascontiguousarray(selected).view(np.uint8), found):
            return found
    inner = nearest(parent, selected)
    around = np.where(parent >= 0, inner[parent], -1)
    return nearest(parent, selected & (around < 0))


def contexts(parent: Rows, codes: Codes) -> tuple[Codes, Codes]:
    """The context of each call, numbered as they first come, and the first call of each context.

    Calls have one context where they have the same code, and all those around them have, from the outermost on.

    Args:
        parent: Row of the call around each one, which comes before it; -1 for none.
        codes: Code of each.
    """
    if library is not None:
        context, first = np.empty(parent.size, np.int32), np.empty(parent.size, np.int32)
        return context, first[: library.contexts(_narrow(parent), _narrow(codes), context, first)].copy()
    number = np.full(parent.size, -1, np.int32)
    rows = np.flatnonzero(parent < 0)
    count = 0
    while rows.size:  # once per depth
        around = np.where(parent[rows] >= 0, number[parent[rows]], -1)
        group, first = alike(around, codes[rows])
        number[rows] = count + group
        count += first.size
        is_last = np.zeros(parent.size, dtype=bool)
        is_last[rows] = True
        rows = np.flatnonzero((parent >= 0) & is_last[parent])
    return alike(number)


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


def stretches(  # noqa: PLR0917 (columns)
    groups: Array, starts: Array, ends: Array, parent: Rows, wanted: Mask | None = None, depth: Rows | None = None
) -> tuple[Array, Array, Codes] | None:
    """Begin, end and call of all stretches in which a call is innermost that is ``wanted``; all are where not given.

    Calls are those of :func:`nested`, or with their ``depth`` those of :func:`crossing`. ``None`` where calls cross
    without it, or where nothing is compiled.
    """
    if library is None:
        return None
    room = 2 * starts.size
    begin, end, owner = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int32)
    mask = np.empty(0, np.uint8) if wanted is None else np.ascontiguousarray(wanted).view(np.uint8)
    around = np.empty(0, np.int32) if depth is None else _narrow(depth)
    count = library.innermost(groups, starts, ends, around, _narrow(parent), mask, begin, end, owner)
    return None if count < 0 else (begin[:count], end[:count], owner[:count])


def running(  # noqa: PLR0917 (columns)
    groups: Array, starts: Array, ends: Array, parent: Rows, keys: Array, moments: Array
) -> Rows:
    """Row of the innermost call that runs in each group of ``keys`` at each of ``moments``; -1 for none.

    That is the last call that began by then, or the first that runs of those around it.

    Args:
        groups: Group of each call; rows are in order of group and start.
        starts: Begin of each.
        ends: End of each.
        parent: Row of the call around each one, which is before it; -1 for none.
        keys: A group for each moment.
        moments: The moments.
    """
    if library is not None:
        found = np.empty(keys.size, np.int32)
        library.running(groups, starts, ends, _narrow(parent), keys, moments, found)
        return found
    begins, searched = _sortable(groups, starts, keys, moments)
    row = np.searchsorted(begins, searched, side="right") - 1  # the last that began by then
    if not row.size or not begins.size:
        return np.full(row.size, -1, np.int64)
    row = np.where((row >= 0) & (groups[row] == keys), row, -1)
    while (over := (row >= 0) & (ends[row] <= moments)).any():  # at most once per depth
        row[over] = parent[row[over]]
    return row


def _sortable(groups: Array, starts: Array, keys: Array, moments: Array) -> tuple[Array, Array]:
    """The pairs ``(groups, starts)`` and ``(keys, moments)`` as one integer each, which sorts the same way."""
    _, group = np.unique(np.concatenate([groups, keys]), return_inverse=True)
    _, rank = np.unique(np.concatenate([starts, moments]), return_inverse=True)
    key = group.astype(np.int64) * (rank.size + 1) + rank
    return key[: starts.size], key[starts.size :]


def matched(sought: PairColumns, among: PairColumns, owners: Owners, least: int, width: int) -> Codes | None:
    """For each of ``sought``, the first row of ``among`` with the same owner and id; -1 for none.

    ``None`` where nothing is compiled, or owners are wider than 32 bits: ``core.arrays.matching`` has the twin.

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


def add_own(  # noqa: PLR0917 (columns)
    first: int, parent: Rows, time: Array, counted: Mask, owners: Rows | None, total: Array
) -> int:
    """Add the time of each ``counted`` call without that of the calls directly in it, and return the sum of that.

    Args:
        first: Row of the first of these calls, which lie together.
        parent: Row of the call around each one, which is one of them; -1 for none.
        time: Time of each.
        counted: Which of them count.
        owners: To which row of ``total`` the time of each is added; ``None`` for its own.
        total: Time of all calls.
    """
    if library is not None:
        columns = _narrow(parent), np.ascontiguousarray(time), np.ascontiguousarray(counted).view(np.uint8)
        return int(
            library.add_own(first, *columns, _narrow(np.empty(0, np.int32) if owners is None else owners), total)
        )
    inside = parent >= 0
    alone = time.copy()
    np.subtract.at(alone, parent[inside] - first, time[inside])
    alone[~counted] = 0
    np.add.at(total, np.arange(first, first + parent.size) if owners is None else owners, alone)
    return int(alone.sum())


def nesting_order(groups: Array, starts: Array, ends: Array, ties: Rows) -> Rows | None:
    """Rows in order of group, start, falling end, and ``ties``; ``None`` where this is the order in which they come.

    As ``np.lexsort``, for rows that mostly come by start, as profilers write them: then groups are put together, and
    only rows that start together are compared.
    """
    if ties.size and ties.min() == ties.max():
        ties = np.zeros(ties.size, np.int64)  # memory that is only read is none
    if library is not None and groups.size <= _MOST_ROWS:
        columns = (np.ascontiguousarray(column, np.int64) for column in (groups, starts, ends, ties))
        ordered = np.empty(groups.size, np.int32)
        found = library.order(*columns, ordered)
        if found != _DECLINED:
            return ordered if found else None
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


_DECLINED = 2
"""The compiled function leaves rows in another order to NumPy."""


def _by_group(groups: Array) -> Array | None:
    """Rows by group, those of one as they come: NumPy sorts 16 bits by their digits."""
    if not groups.size or np.all(groups[1:] >= groups[:-1]):
        return None
    low, high = int(groups.min()), int(groups.max())
    keys = (groups - low).astype(np.uint16) if high - low < 1 << 16 else groups
    return np.argsort(keys, kind="stable")
