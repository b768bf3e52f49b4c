"""Tables ``host_ops`` and ``op_args``, which hold most of a capture: columns are freed as soon as they are used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from traceviz import schema
from traceviz.parsers.shared.arrays import NONE, by_start, inverted, take
from traceviz.parsers.shared.columns import encoded, masked, nullable, table
from traceviz.parsers.shared.nesting import depths
from traceviz.parsers.xplane.device import Columns, group_column
from traceviz.parsers.xplane.host import API, Threads, renumbered
from traceviz.parsers.xplane.raw import Array, Kind, Stats
from traceviz.schema import HOST_CATEGORIES

_PLUMBING = frozenset({"_r", "_pt", "_p", "_ct", "_c", "_a", "_pid", "_src", "group_id"})
"""Stats by which the profiler links events; the columns of the contract say the same."""


@dataclass(frozen=True, slots=True, eq=False)
class Arguments:
    """The stats of a plane, for table ``op_args``.

    Args:
        stats: The stats of its events.
        texts: Their keys and texts.
        elsewhere: Positions of the events whose stats are rows of another table: allocations.
    """

    stats: Stats
    texts: list[str]
    elsewhere: Array

    @classmethod
    def of(cls, part: Threads) -> Arguments:
        """The stats of ``part``."""
        return cls(part.plane.stats, part.plane.texts, part.memory_rows)


@dataclass(frozen=True, slots=True, eq=False)
class Operations:
    """Table ``host_ops``, and which of its rows each event became.

    Args:
        table: The table, in order of start.
        op_ids: For each plane the row of each event (int32), -1 where it is none.
    """

    table: pa.Table
    op_ids: tuple[Array, ...]


def lay_out(parts: Sequence[Threads], needed: frozenset[str] | None) -> Columns:
    """The events of all planes as columns for table ``host_ops``, in the order of the files.

    After that the planes can be freed, and each of these columns as soon as it has become one of the table: they may
    have a million rows each.

    Args:
        parts: The host planes.
        needed: Nullable columns to fill; ``None`` for all.
    """
    columns: Columns = {"bounds": np.cumsum([0, *(len(part.plane.events) for part in parts)]).tolist()}
    if needed is None or needed & {"depth", "parent_id"}:
        columns["parent"] = _parents(parts, columns["bounds"])
    if needed is None or "group_id" in needed:
        columns["group_id"] = _joined([part.host.group_id(part.place) for part in parts])
    columns["code"] = _joined([part.codes for part in parts])
    columns["words"] = [name for part in parts for name in part.plane.names]
    columns["name"] = _names(parts)
    columns["thread_id"] = _joined([take(part.thread_ids, part.plane.events.line) for part in parts])
    columns["process_id"] = [part.host.process_id for part in parts]
    columns["start_ns"], columns["dur_ns"] = map(_joined, zip(*(part.times() for part in parts), strict=True))
    return columns


def _joined(arrays: Sequence[Array]) -> Array:
    """Arrays of all planes one after the other; there is nearly always one plane, which is not copied."""
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _parents(parts: Sequence[Threads], bounds: Sequence[int]) -> Array:
    return _joined(
        [
            np.where(part.parent >= 0, part.parent + first, NONE) if first else part.parent
            for part, first in zip(parts, bounds, strict=False)
        ]
    )


def _names(parts: Sequence[Threads]) -> Array:
    """Positions of the names of events in those of all planes one after the other."""
    firsts = np.cumsum([0, *(len(part.plane.names) for part in parts)]).tolist()
    return _joined(
        [
            part.plane.events.name + np.int32(first) if first else part.plane.events.name
            for part, first in zip(parts, firsts, strict=False)
        ]
    )


def operations(given: Columns) -> Operations:
    """Table ``host_ops``: every event of a thread that is neither a driver call nor an NVTX range.

    Args:
        given: Columns as :func:`laid_out` makes them; they are used up.
    """
    kept = given["code"] < API
    rows = by_start(given["start_ns"], kept)
    columns: Columns = {name: take(given.pop(name), rows) for name in ("start_ns", "dur_ns", "thread_id")}
    columns["process_id"] = _process_column(given["process_id"], given["bounds"], rows)
    columns["name"] = encoded(take(given.pop("name"), rows), given.pop("words"))
    columns["category"] = encoded(take(given.pop("code"), rows), HOST_CATEGORIES)
    if "parent" in given:
        parent = renumbered(given.pop("parent"), rows, kept)
        columns.update(depth=depths(parent), parent_id=nullable(parent, pa.int64()))
        del parent
    if "group_id" in given:
        columns["group_id"] = group_column(take(given.pop("group_id"), rows))
    columns["op_id"] = np.arange(rows.size)
    op_of = inverted(rows, kept.size)
    op_ids = tuple(op_of[begin:end] for begin, end in pairwise(given["bounds"]))
    return Operations(table("host_ops", columns), op_ids)


def _process_column(processes: Sequence[int], bounds: Sequence[int], rows: Array) -> Array:
    if len(set(processes)) <= 1:
        return np.full(rows.size, processes[0] if processes else 0, dtype=np.int32)
    return take(np.repeat(np.array(processes, dtype=np.int32), np.diff(bounds)), rows)


def properties(parts: Sequence[Arguments], op_ids: Sequence[Array]) -> pa.Table:
    """Table ``op_args``: stats of each operation, except those that link events.

    Args:
        parts: The stats of each plane.
        op_ids: As in :class:`Operations`.
    """
    tables = [_properties(part, ids) for part, ids in zip(parts, op_ids, strict=True)]
    return pa.concat_tables(tables).unify_dictionaries()


def _properties(part: Arguments, op_ids: Array) -> pa.Table:
    owner = take(op_ids, part.stats.event)
    kept = _is_argument(part)
    kept &= owner >= 0
    stats = part.stats
    if not kept.all():
        rows = np.flatnonzero(kept).astype(np.int32)
        owner, stats = take(owner, rows), _at(stats, rows)
    whole = (stats.kind == Kind.SIGNED) | (stats.kind == Kind.UNSIGNED)
    columns: dict[str, Any] = {
        "op_id": pa.array(owner.astype(np.int64)),
        "key": encoded(stats.key, part.texts),
        "integer": masked(stats.value, ~whole, pa.int64()),
        "real": masked(stats.value.view(np.float64), stats.kind != Kind.REAL, pa.float64()),
        "text": encoded(np.where(stats.kind == Kind.TEXT, stats.value, NONE), part.texts),
    }
    return pa.table(columns, schema=schema.table("op_args").arrow)


def _is_argument(part: Arguments) -> Array:
    """Which stats are properties of their operations (bool)."""
    is_argument = np.array([text not in _PLUMBING for text in part.texts], dtype=bool)
    kept = take(is_argument, part.stats.key, False)
    kept &= part.stats.kind != Kind.BYTES
    if part.elsewhere.size:
        is_elsewhere = np.zeros(int(part.elsewhere[-1]) + 1, dtype=bool)
        is_elsewhere[part.elsewhere] = True
        early = part.stats.event <= part.elsewhere[-1]
        kept[early] &= ~is_elsewhere[part.stats.event[early]]
    return kept


def _at(stats: Stats, rows: Array) -> Stats:
    """As :meth:`Stats.of`, for very many."""
    return Stats(*(take(column, rows, 0) for column in (stats.event, stats.key, stats.kind, stats.value)))


def tables_of(
    parts: Sequence[Threads], needed: frozenset[str] | None, *, ops: bool, args: bool
) -> Iterator[tuple[str, pa.Table]]:
    """Tables ``host_ops`` and ``op_args``, where they are asked for.

    Args:
        parts: The host planes. To save memory, the caller keeps no reference to them.
        needed: As in :func:`laid_out`.
        ops: Whether ``host_ops`` is asked for.
        args: Whether ``op_args`` is asked for.
    """
    arguments = [Arguments.of(part) for part in parts] if args else []
    given = lay_out(parts, needed if ops else frozenset())
    del parts
    built = operations(given)
    op_ids, ops_table = built.op_ids, built.table
    del built
    if ops:
        yield "host_ops", ops_table
    del ops_table
    if args:
        yield "op_args", properties(arguments, op_ids)
