"""Calls that nest on their threads, and equal rows, in compiled code (:mod:`traceviz.core.arrays.library`).

Rows that a compiled function declines go to its NumPy version.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from traceviz.core.arrays import portable
from traceviz.core.arrays.library import library

Array = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Rows = npt.NDArray[np.signedinteger[Any]]
"""Positions of any width; 32 bits for millions of rows."""
Mask = npt.NDArray[np.bool_]
Owners = npt.NDArray[np.integer[Any]]
PairColumns = tuple[Owners, Array, Mask | None]


def _narrow(numbers: Rows) -> Codes:
    return np.ascontiguousarray(numbers, np.int32)


def _flags(mask: Mask | None) -> npt.NDArray[np.uint8]:
    """Return ``mask`` as bytes; an empty array for ``None``."""
    return np.empty(0, np.uint8) if mask is None else np.ascontiguousarray(mask).view(np.uint8)


def nested(groups: Array, starts: Array, ends: Array) -> tuple[Codes, Codes] | None:
    """Return depth and parent of calls in order of group and start, the longer first (:func:`.intervals.nesting`).

    ``None`` if they are in another order, or if some cross.
    """
    depth, parent = np.empty(starts.size, np.int32), np.empty(starts.size, np.int32)
    return (depth, parent) if library.nest(groups, starts, ends, False, depth, parent) else None


def crossing(groups: Array, starts: Array, ends: Array) -> tuple[Codes, Codes] | None:
    """Do the same as :func:`nested`, also if some calls cross."""
    depth, parent = np.empty(starts.size, np.int32), np.empty(starts.size, np.int32)
    columns = groups, starts, ends, True, depth, parent
    return (depth, parent) if library.nest(*columns) or portable.nest(*columns) else None


def nearest(parent: Rows, selected: Mask) -> Codes:
    """Return, for each call, the row of the innermost ``selected`` call that is it or is around it; -1 for none.

    Args:
        parent: Row of the call around each one; -1 for none.
        selected: True for selected calls.
    """
    columns = _narrow(parent), _flags(selected), np.empty(parent.size, np.int32)
    if not library.nearest(*columns):
        portable.nearest(*columns)
    return columns[2]


def topmost(parent: Rows, selected: Mask) -> Codes:
    """Return, for each call, the row of the outermost ``selected`` call that is it or is around it; -1 for none.

    Args:
        parent: Row of the call around each one; -1 for none.
        selected: True for selected calls.
    """
    columns = _narrow(parent), _flags(selected), np.empty(parent.size, np.int32)
    if not library.topmost(*columns):
        portable.topmost(*columns)
    return columns[2]


def contexts(parent: Rows, codes: Codes) -> tuple[Codes, Codes]:
    """Return the context of each call, numbered in order of appearance, and the first call of each context.

    Calls share a context if they and the calls around them, from the outermost on, have the same codes.

    Args:
        parent: Row of the call around each one, which comes before it; -1 for none.
        codes: Code of each call.
    """
    context, first = np.empty(parent.size, np.int32), np.empty(parent.size, np.int32)
    return context, first[: library.contexts(_narrow(parent), _narrow(codes), context, first)].copy()


def outer_alike(groups: Array, ends: Array, codes: Codes) -> Mask:
    """Mark calls that end after all earlier ones of their group with the same code: none of these contains them.

    Args:
        groups: Group of each call. Rows are in order of group and start, the longer first.
        ends: End of each call.
        codes: Code of each call, small and not negative.
    """
    outer = np.empty(groups.size, dtype=bool)
    library.outer(groups, ends, codes, int(codes.max(initial=0)) + 1, outer.view(np.uint8))
    return outer


def stretches(  # noqa: PLR0917 (columns)
    groups: Array, starts: Array, ends: Array, parent: Rows, wanted: Mask | None = None, depth: Rows | None = None
) -> tuple[Array, Array, Codes]:
    """Return start, end and call of all intervals in which a ``wanted`` call is innermost. By default all are wanted.

    Calls are those of :func:`nested`, or with their ``depth`` those of :func:`crossing`.

    Raises:
        ValueError: calls cross, and no depth is given.
    """
    room = 2 * starts.size
    begin, end, owner = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int32)
    around = np.empty(0, np.int32) if depth is None else _narrow(depth)
    columns = groups, starts, ends, around, _narrow(parent), _flags(wanted), begin, end, owner
    count = library.innermost(*columns)
    if count < 0:
        count = portable.innermost(*columns)
    return begin[:count], end[:count], owner[:count]


def running(  # noqa: PLR0917 (columns)
    groups: Array, starts: Array, ends: Array, parent: Rows, keys: Array, moments: Array
) -> Rows:
    """Return the row of the innermost call that runs in each group of ``keys`` at each of ``moments``; -1 for none.

    That is the last call that started by then or, if it has ended, the innermost running call around it.

    Args:
        groups: Group of each call. Rows are in order of group and start.
        starts: Start of each call.
        ends: End of each call.
        parent: Row of the call around each one, which comes before it; -1 for none.
        keys: A group for each moment.
        moments: The moments.
    """
    found = np.empty(keys.size, np.int32)
    library.running(groups, starts, ends, _narrow(parent), keys, moments, found)
    return found


def matched(sought: PairColumns, among: PairColumns, owners: Owners, least: int, width: int) -> Codes:
    """Return, for each of ``sought``, the first row of ``among`` with the same owner and id; -1 for none.

    Args:
        sought: Owners, ids, and the mask of rows that have an id, or ``None`` if all have.
        among: The same columns of the rows to search.
        owners: The owners of ``among``, in order, each once.
        least: The least id of ``among``.
        width: Number of ids from the least to the greatest.
    """
    table, found = np.empty(owners.size * width, np.int32), np.empty(sought[1].size, np.int32)
    are_narrow = {owners.dtype, sought[0].dtype, among[0].dtype} == {np.dtype(np.int32)}
    match = library.match if are_narrow else portable.match
    match(*_buffers(sought), *_buffers(among), owners, least, width, table, found)
    return found


def _buffers(pairs: PairColumns) -> tuple[Owners, Array, npt.NDArray[np.uint8]]:
    owners, ids, known = pairs
    return np.ascontiguousarray(owners), np.ascontiguousarray(ids, np.int64), _flags(known)


def alike(*columns: Rows) -> tuple[Codes, Codes]:
    """Return the group of each row, numbered in order of appearance, and the first row of each group of equal rows.

    Args:
        columns: Columns of equal length whose numbers fit into 32 bits.
    """
    group, first = np.empty(columns[0].size, np.int32), np.empty(columns[0].size, np.int32)
    count = library.alike(tuple(np.ascontiguousarray(column, np.int32) for column in columns), group, first)
    return group, first[:count].copy()


def add_shared(  # noqa: PLR0917 (columns)
    opens: Array, closes: Array, done: Array, starts: Array, ends: Array, owners: Rows, total: Array
) -> None:
    """Add the time of a set within each span to the total of the span's owner. A negative owner means none."""
    library.add(opens, closes, done, starts, ends, _narrow(owners), total)


def add_own(  # noqa: PLR0917 (columns)
    first: int, parent: Rows, time: Array, counted: Mask, owners: Rows | None, total: Array
) -> int:
    """Add the time of each ``counted`` call, without the calls directly in it, and return the sum of these times.

    Args:
        first: Row of the first of these calls, which lie together.
        parent: Row of the call around each one, which is one of these calls; -1 for none.
        time: Time of each call.
        counted: True for calls that count.
        owners: Row of ``total`` that receives the time of each call; ``None`` for the call's own row.
        total: Time of all calls.
    """
    columns = _narrow(parent), np.ascontiguousarray(time), _flags(counted)
    return int(library.add_own(first, *columns, _narrow(np.empty(0, np.int32) if owners is None else owners), total))


def nesting_order(groups: Array, starts: Array, ends: Array, ties: Rows) -> Rows | None:
    """Return rows in order of group, start, falling end, and ``ties``; ``None`` if they already come in this order.

    Sorts as ``np.lexsort``, but for rows that mostly come by start, as profilers write them. It collects each group and
    compares only rows that start together.
    """
    if ties.size and ties.min() == ties.max():
        ties = np.zeros(ties.size, np.int64)  # zeros that are only read take no memory
    ordered = np.empty(groups.size, np.int32)
    columns = [np.ascontiguousarray(column, np.int64) for column in (groups, starts, ends, ties)]
    found = library.order(*columns, ordered)
    if found == _DECLINED:
        groups, starts, ends, ties = columns
        found = portable.order(groups, starts, ends, ties, ordered)
    return ordered if found else None


_DECLINED = 2
"""Result of the compiled function when it leaves the sorting to NumPy."""
