"""Host work: operations and their arguments, calls, steps, overhead."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from traceviz.parsers.base import ReadRequest
from traceviz.parsers.kineto.categories import CATEGORIES, CODES, UNKNOWN, Role, is_profiler, step_number
from traceviz.parsers.kineto.columns import Columns, narrow, numbers
from traceviz.parsers.kineto.events import Events
from traceviz.parsers.kineto.identity import Identity
from traceviz.parsers.kineto.raw import ARGUMENTS, Kind
from traceviz.parsers.kineto.work.launches import Launches
from traceviz.parsers.kineto.work.nesting import Forest
from traceviz.parsers.shared.arrays.nesting import depths
from traceviz.parsers.shared.arrays.operations import Array, at, looked_up, positions, take
from traceviz.parsers.shared.events.columns import constant, encoded, nullable, table
from traceviz.parsers.shared.events.mapping import VERSION_SUFFIX
from traceviz.trace import schema
from traceviz.trace.schema import HOST_CATEGORIES

ARGUMENTS_OF_OPS = (
    "external_id",
    "sequence",
    "forward_thread",
    "input_shapes",
    "input_types",
    "inputs",
    "call_stack",
    "module_hierarchy",
    "python_id",
    "python_parent",
    "python_module",
)
"""Arguments that become rows of table ``op_args``."""

_KEYS = {argument.column: (argument.keys[0], argument.kind) for argument in ARGUMENTS}
_NOTHING = ("", "[]", "null")
"""Texts of arguments that stand for "none"."""
MARKER = "ProfilerStep"


def times(events: Events, rows: Array) -> Columns:
    """Return the columns ``start_ns`` and ``dur_ns``."""
    return {"start_ns": at(events.start, rows), "dur_ns": nullable(at(events.dur, rows), pa.int64())}


def placed(events: Events, identity: Identity, rows: Array) -> Columns:
    """Return the columns of time, process and thread of the events ``rows``."""
    thread = at(identity.thread_id, rows)
    return {**times(events, rows), "process_id": looked_up(identity.process_of, thread), "thread_id": thread}


def operations(forest: Forest, identity: Identity, needed: frozenset[str] | None) -> pa.Table:
    """Return table ``host_ops``.

    Args:
        forest: The events on threads, nested.
        identity: Processes, threads and devices.
        needed: Nullable columns that matter; ``None`` for all.
    """
    events, rows = forest.events, forest.op_rows
    columns: Columns = {
        **placed(events, identity, rows),
        "op_id": np.arange(rows.size),
        "name": events.name.at(rows).arrow(),
        "category": encoded(at(events.category, rows), HOST_CATEGORIES),
    }
    if needed is None or needed & {"depth", "parent_id"}:
        columns["depth"] = depths(forest.op_parent)
        columns["parent_id"] = nullable(forest.op_parent, pa.int64())
    return table("host_ops", columns)


def wanted_properties(options: ReadRequest) -> tuple[str, ...]:
    """Return the requested ones of :data:`ARGUMENTS_OF_OPS`."""
    return tuple(name for name in ARGUMENTS_OF_OPS if options.wants_property(_KEYS[name][0]))


def properties(forest: Forest, names: Sequence[str] = ARGUMENTS_OF_OPS) -> pa.Table:
    """Return table ``op_args``: arguments ``names`` of operations, without empty ones."""
    parts = [part for name in names for part in _property(forest, name)]
    return pa.concat_tables(parts).unify_dictionaries() if parts else schema.table("op_args").empty()


def _property(forest: Forest, name: str) -> Iterator[pa.Table]:
    """Yield the rows of one argument; none if no operation has it."""
    if name not in forest.events.frame.columns:
        return
    key, kind = _KEYS[name]
    values = pl.DataFrame({"op_id": forest.op_id, "value": forest.events.frame[name]})
    says_something = pl.col("value").is_not_null()
    if kind is Kind.TEXT:
        says_something &= ~pl.col("value").is_in(_NOTHING)
    arguments = values.filter((pl.col("op_id") >= 0) & says_something)
    if arguments.is_empty():
        return
    rows = arguments.height
    columns: dict[str, Any] = {
        "op_id": pa.array(arguments["op_id"].to_numpy().astype(np.int64)),
        "key": constant(key, rows),
        "real": schema.nulls(rows, pa.float64()),
    }
    columns["integer"] = schema.nulls(rows, pa.int64()) if kind is Kind.TEXT else arguments["value"].to_arrow()
    columns["text"] = as_name(arguments["value"]) if kind is Kind.TEXT else schema.nulls(rows, schema.NAME)
    declared = schema.table("op_args").arrow
    yield pa.table([columns[field.name] for field in declared], schema=declared)


def as_name(column: pl.Series) -> Any:
    """Return a categorical column as the contract's dictionary column."""
    coded: Any = column.to_arrow()
    if isinstance(coded, pa.ChunkedArray):
        coded = coded.combine_chunks()
    return pa.DictionaryArray.from_arrays(coded.indices.cast(pa.int32()), coded.dictionary.cast(pa.string()))


def calls(launches: Launches) -> pa.Table:
    """Return table ``cuda_api``: calls of the runtime and the driver of devices."""
    events = launches.events
    rows = events.rows(Role.API)
    columns = {
        **placed(events, launches.identity, rows),
        "correlation_id": launches.correlation(rows, rows),
        "name": events.name.at(rows).mapped(lambda name: re.sub(VERSION_SUFFIX, "", name)),
        "domain": events.label.at(rows).mapped(lambda label: CATEGORIES.get(label.lower(), UNKNOWN).domain),
        "status": narrow(numbers(events.frame, "status", rows), pa.int32()),
    }
    return table("cuda_api", columns)


def steps(events: Events, identity: Identity) -> pa.Table:
    """Return table ``steps``: the markers of the host. Their copies on the timelines of devices would be duplicates."""
    rows = np.flatnonzero((events.role == Role.HOST) & (events.category == CODES["step"])).astype(np.int32)
    names = events.name.at(rows)
    columns = {
        **placed(events, identity, rows),
        "step": nullable(names.each(step_number, -1, np.int64), pa.int64()),
        "name": names.arrow(),
        "marker": constant(MARKER, rows.size),
    }
    return table("steps", columns)


def overhead(events: Events, identity: Identity) -> pa.Table:
    """Return table ``overhead``: the profiler's own events, and the program's calls of it.

    The profiler states no thread if all threads are blocked.
    """
    called = (events.role == Role.HOST) & (events.category == CODES["python"])
    if called.any():
        called &= events.name.each(is_profiler, False, np.bool_)
    rows = positions(called | (events.role == Role.OVERHEAD))
    thread = take(identity.thread_id, rows)
    columns = {
        **times(events, rows),
        "process_id": take(identity.process_of, thread, identity.program),
        "thread_id": nullable(thread, pa.int32()),
        "name": events.name.at(rows).arrow(),
    }
    return table("overhead", columns)
