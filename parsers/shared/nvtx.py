"""NVTX ranges and marks of any profiler: order, nesting, and the table."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from traceviz.core.arrays.intervals import nesting
from traceviz.parsers.shared.arrays.arrow import Array, pc
from traceviz.trace import schema


def nvtx_table(rows: pa.Table, span_ns: int, named: Mapping[str, Array] | None = None) -> pa.Table:
    """Return table ``nvtx`` from ordered ``rows``, with the columns ``named``, the ids of ranges, and their nesting."""
    declared = schema.table("nvtx").arrow
    derived = {"range_id": pa.array(np.arange(rows.num_rows)), **push_pop_nesting(rows, span_ns), **(named or {})}
    columns: dict[str, Array] = {
        name: derived[name] if name in derived else rows.column(name) for name in declared.names
    }
    return pa.table(columns, schema=declared)


def ordered(rows: pa.Table) -> pa.Table:
    """Return rows by start. Of ranges that start together, the outer comes first; equal rows keep their order."""
    lasting = pc.fill_null(rows.column("dur_ns"), np.iinfo(np.int64).max)
    order = np.lexsort((-lasting.to_numpy(), rows.column("start_ns").to_numpy()))
    return rows if np.all(order[1:] > order[:-1]) else rows.take(order)


def push_pop_nesting(rows: pa.Table, span_ns: int) -> dict[str, Array]:
    """Return depth and parent of push/pop ranges, which nest within their thread; null for start/end ranges and marks.

    A range without an end lasts until the end of the capture.
    """
    nests = pc.equal(rows.column("kind").cast(pa.string()), "push_pop").to_numpy()
    nested = rows.filter(pa.array(nests))
    starts = nested.column("start_ns").to_numpy()
    ends = np.maximum(starts + pc.fill_null(nested.column("dur_ns"), span_ns).to_numpy(), starts)
    depth, parent = nesting(starts, ends, nested.column("thread_id").to_numpy())
    depths, parents = np.zeros(rows.num_rows, np.int32), np.full(rows.num_rows, -1, np.int64)
    position = np.flatnonzero(nests)
    depths[nests] = depth
    parents[nests] = np.where(parent >= 0, position[parent], -1) if len(position) else parent
    return {"depth": pa.array(depths, mask=~nests), "parent_id": pa.array(parents, mask=parents < 0)}
