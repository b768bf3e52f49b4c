"""Tables ``host_ops`` and ``op_args``, most of a capture: columns are freed as soon as they are used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from traceviz.parsers.shared.arrays.nesting import depths
from traceviz.parsers.shared.arrays.operations import NONE, by_start, inverted, take
from traceviz.parsers.shared.events.columns import encoded, masked, nullable, table
from traceviz.parsers.xplane.decode.raw import Array, Kind, Stats
from traceviz.parsers.xplane.device import Columns
from traceviz.parsers.xplane.host import Threads, renumber_parents
from traceviz.trace import schema
from traceviz.trace.schema import HOST_CATEGORIES

_PLUMBING = frozenset({"_r", "_pt", "_p", "_ct", "_c", "_a", "_pid", "_src", "group_id"})
"""Stats by which the profiler links events; columns of the contract hold the same."""


@dataclass(frozen=True, slots=True, eq=False)
class LaidOut:
    """Table ``host_ops`` without the columns that need groups.

    Args:
        columns: Its columns, as narrow as possible; those of groups and kinds are missing. They are consumed.
        rows: For each row of the table, the position of its event among those of all planes (int32).
        bounds: Start of each plane's events among those of all, and their total number.
        processes: The process of each plane.
        in_groups: True if the table has groups.
    """

    columns: Columns
    rows: Array
    bounds: Sequence[int]
    processes: Sequence[int]
    in_groups: bool


def lay_out(parts: Sequence[Threads], needed: frozenset[str] | None) -> tuple[LaidOut, tuple[Array, ...]]:
    """Lay out every event of a thread that is neither a driver call nor an NVTX range, in order of start.

    Columns of all planes may have a million rows each: each is freed as soon as the table's column exists.

    Args:
        parts: The host planes.
        needed: Nullable columns to fill; ``None`` for all.

    Returns:
        The table so far, and for each plane the row of each event (int32), -1 if it has none.
    """
    bounds = np.cumsum([0, *(len(part.plane.events) for part in parts)]).tolist()
    starts, durations = map(_joined, zip(*(part.times() for part in parts), strict=True))
    kept = _joined([part.is_operation for part in parts])
    rows = by_start(starts, kept)
    columns: Columns = {"start_ns": take(starts, rows)}
    del starts
    columns["dur_ns"] = take(durations, rows)
    del durations
    columns["thread_id"] = take(_joined([take(part.thread_ids, part.plane.events.line) for part in parts]), rows)
    firsts = np.cumsum([0, *(len(part.plane.names) for part in parts)]).tolist()
    names = [
        part.plane.events.name + np.int32(first) if first else part.plane.events.name
        for part, first in zip(parts, firsts, strict=False)
    ]
    columns["name"] = encoded(take(_joined(names), rows), [name for part in parts for name in part.plane.names])
    del names
    op_of = inverted(rows, kept.size)
    if needed is None or needed & {"depth", "parent_id"}:
        parents = [
            np.where(part.parent >= 0, part.parent + first, NONE) if first else part.parent
            for part, first in zip(parts, bounds, strict=False)
        ]
        parent = renumber_parents(_joined(parents), rows, op_of, kept)
        del parents
        columns.update(depth=depths(parent), parent_id=parent)
    op_ids = tuple(op_of[begin:end] for begin, end in pairwise(bounds))
    processes = [part.host.process_id for part in parts]
    return LaidOut(columns, rows, bounds, processes, needed is None or "group_id" in needed), op_ids


def _joined(arrays: Sequence[Array]) -> Array:
    """Return arrays of all planes in a row; the usual single plane is not copied."""
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _finish(laid_out: LaidOut) -> pa.Table:
    """Return table ``host_ops``; the layout is consumed."""
    columns, rows, processes = laid_out.columns, laid_out.rows, laid_out.processes
    if len(set(processes)) <= 1:
        columns["process_id"] = np.full(rows.size, processes[0] if processes else 0, dtype=np.int32)
    else:
        by_event = np.repeat(np.array(processes, dtype=np.int32), np.diff(laid_out.bounds))
        columns["process_id"] = take(by_event, rows)
    if "parent_id" in columns:
        columns["parent_id"] = nullable(columns["parent_id"], pa.int64())
    if "group_id" in columns:
        columns["group_id"] = nullable(columns["group_id"], pa.int64())
    columns["op_id"] = np.arange(rows.size)
    made = table("host_ops", columns)
    columns.clear()
    return made


def properties(parts: Sequence[Threads], op_ids: Sequence[Array]) -> pa.Table:
    """Return table ``op_args``: stats of each operation, except those that link events.

    Args:
        parts: The host planes.
        op_ids: As :func:`lay_out` returns them.
    """
    tables = [_properties(part, ids) for part, ids in zip(parts, op_ids, strict=True)]
    return pa.concat_tables(tables).unify_dictionaries()


def _properties(part: Threads, op_ids: Array) -> pa.Table:
    """Return the rows of one plane. A function of its own: its large temporary columns are freed when it returns."""
    stats, texts, allocations = part.plane.stats, part.plane.texts, part.memory_rows
    owner = take(op_ids, stats.event)
    kept = take(np.array([text not in _PLUMBING for text in texts], dtype=bool), stats.key, False)
    kept &= stats.kind != Kind.BYTES
    if allocations.size:  # their stats are rows of another table
        is_allocation = np.zeros(int(allocations[-1]) + 1, dtype=bool)
        is_allocation[allocations] = True
        early = stats.event <= allocations[-1]
        kept[early] &= ~is_allocation[stats.event[early]]
    kept &= owner >= 0
    if not kept.all():
        rows = np.flatnonzero(kept).astype(np.int32)
        owner = take(owner, rows)
        # As Stats.of, for very many rows
        stats = Stats(*(take(column, rows, 0) for column in (stats.event, stats.key, stats.kind, stats.value)))
    whole = (stats.kind == Kind.SIGNED) | (stats.kind == Kind.UNSIGNED)
    columns: dict[str, Any] = {
        "op_id": pa.array(owner.astype(np.int64)),
        "key": encoded(stats.key, texts),
        "integer": masked(stats.value, ~whole, pa.int64()),
        "real": masked(stats.value.view(np.float64), stats.kind != Kind.REAL, pa.float64()),
        "text": encoded(np.where(stats.kind == Kind.TEXT, stats.value, NONE), texts),
    }
    return pa.table(columns, schema=schema.table("op_args").arrow)


def tables_of(
    parts: Sequence[Threads], laid_out: LaidOut | None, args_table: pa.Table | None
) -> Iterator[tuple[str, pa.Table]]:
    """Yield tables ``host_ops``, once the groups of ``parts`` are formed, and ``op_args``, if given.

    Args:
        parts: The host planes. To save memory, the caller keeps no reference to them.
        laid_out: Their events.
        args_table: Their properties.
    """
    if laid_out is not None:
        columns, rows = laid_out.columns, laid_out.rows
        columns["category"] = encoded(take(_joined([part.codes for part in parts]), rows), HOST_CATEGORIES)
        if laid_out.in_groups:
            columns["group_id"] = take(_joined([part.host.group_id(part.place) for part in parts]), rows)
        del parts  # release it: only the columns are needed from here on
        ops_table = _finish(laid_out)
        del laid_out
        yield "host_ops", ops_table
        del ops_table
    if args_table is not None:
        yield "op_args", args_table
