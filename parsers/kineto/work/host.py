"""Host work: operations and their arguments, calls, steps, overhead, and allocations of memory."""

from __future__ import annotations

import re
from collections.abc import Sequence
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
from traceviz.parsers.shared.arrays.operations import NONE, Array, at, looked_up, positions, take
from traceviz.parsers.shared.events.columns import Numbers, constant, encoded, masked, nullable, table
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
_MARKER = "ProfilerStep"
_NUMBERED = "step"
LEAST_NUMBERED = 3
"""Minimum number of steps of a process that events are numbered with."""
MOST_LAPPING = 0.1
"""Maximum share of the steps' time in which the next one has started; pipelines overlap a little."""
_CPU = 0
_DEVICE_TYPES = {1: "CUDA", 6: "HIP", 9: "XLA", 12: "XPU", 13: "MPS", 15: "HPU", 19: "MTIA", 20: "PRIVATEUSE1"}
"""Kinds of devices as PyTorch numbers them."""


def time_columns(events: Events, rows: Array) -> Columns:
    """Return the columns ``start_ns`` and ``dur_ns``."""
    return {"start_ns": at(events.start, rows), "dur_ns": nullable(at(events.dur, rows), pa.int64())}


def place_columns(events: Events, identity: Identity, rows: Array) -> Columns:
    """Return the columns of time, process and thread of the events ``rows``."""
    thread = at(identity.thread_id, rows)
    return {**time_columns(events, rows), "process_id": looked_up(identity.process_of, thread), "thread_id": thread}


def operations(forest: Forest, identity: Identity, needed: frozenset[str] | None) -> pa.Table:
    """Return table ``host_ops``.

    Args:
        forest: The events on threads, nested.
        identity: Processes, threads and devices.
        needed: Nullable columns that matter; ``None`` for all.
    """
    events, rows = forest.events, forest.op_rows
    columns: Columns = {
        **place_columns(events, identity, rows),
        "op_id": np.arange(rows.size),
        "name": events.name.at(rows).to_arrow(),
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
    declared = schema.table("op_args").arrow
    parts = []
    for name in names:
        if name not in forest.events.frame.columns:
            continue
        key, kind = _KEYS[name]
        is_stated = pl.col("value").is_not_null()
        if kind is Kind.TEXT:
            is_stated &= ~pl.col("value").is_in(_NOTHING)
        values = pl.DataFrame({"op_id": forest.op_id, "value": forest.events.frame[name]})
        arguments = values.filter((pl.col("op_id") >= 0) & is_stated)
        rows = arguments.height
        if not rows:
            continue
        value: Any = arguments["value"].to_arrow()
        if kind is Kind.TEXT:
            value = value.combine_chunks() if isinstance(value, pa.ChunkedArray) else value
            value = pa.DictionaryArray.from_arrays(value.indices.cast(pa.int32()), value.dictionary.cast(pa.string()))
        columns: dict[str, Any] = {
            "op_id": pa.array(arguments["op_id"].to_numpy().astype(np.int64)),
            "key": constant(key, rows),
            "integer": schema.nulls(rows, pa.int64()),
            "real": schema.nulls(rows, pa.float64()),
            "text": schema.nulls(rows, schema.NAME),
            "text" if kind is Kind.TEXT else "integer": value,
        }
        parts.append(pa.table([columns[field.name] for field in declared], schema=declared))
    return pa.concat_tables(parts).unify_dictionaries() if parts else schema.table("op_args").empty()


def calls(launches: Launches) -> pa.Table:
    """Return table ``cuda_api``: calls of the runtime and the driver of devices."""
    events = launches.events
    rows = events.rows(Role.API)
    label, name = events.label.at(rows), events.name.at(rows)
    known = {word for word in label.words if CATEGORIES.get(word.lower(), UNKNOWN).role == Role.API}
    if known:
        domain = label.map_texts(lambda word: CATEGORIES.get(word.lower(), UNKNOWN).domain)
    else:
        domain = name.map_texts(lambda word: "driver" if re.match("cu[A-Z]", word) else "runtime")
    columns = {
        **place_columns(events, launches.identity, rows),
        "correlation_id": launches.correlation(rows, rows),
        "name": name.map_texts(lambda word: re.sub(VERSION_SUFFIX, "", word)),
        "domain": domain,
        "status": narrow(numbers(events.frame, "status", rows), pa.int32()),
    }
    return table("cuda_api", columns)


def steps(events: Events, identity: Identity) -> pa.Table:
    """Return table ``steps``: the markers of the host, else the steps that events are numbered with.

    Copies of the markers on the timelines of devices would be duplicates.
    """
    rows = np.flatnonzero((events.role == Role.HOST) & (events.category == CODES["step"])).astype(np.int32)
    if not rows.size and (numbered := _numbered_steps(events, identity)) is not None:
        return numbered
    names = events.name.at(rows)
    columns = {
        **place_columns(events, identity, rows),
        "step": nullable(names.each(step_number, -1, np.int64), pa.int64()),
        "name": names.to_arrow(),
        "marker": constant(_MARKER, rows.size),
    }
    return table("steps", columns)


def _numbered_steps(events: Events, identity: Identity) -> pa.Table | None:
    """Return the steps of the numbers in argument ``step``, if they divide each process's time.

    A step lasts from the first to the last of its events on any thread. Numbers that count anything else (the steps of
    each thread, the parts of a loop) overlap in time, or do not rise.
    """
    rows = events.rows(Role.HOST)
    number = numbers(events.frame, "step", rows)
    rows = rows[number.known & (take(events.dur, rows) > 0)]
    if not rows.size:
        return None
    thread = at(identity.thread_id, rows)
    start = at(events.start, rows)
    frame = pl.DataFrame(
        {
            "process_id": looked_up(identity.process_of, thread),
            "step": numbers(events.frame, "step", rows).value,
            "start_ns": start,
            "end_ns": start + at(events.dur, rows),
        }
    )
    spans = frame.group_by("process_id", "step").agg(pl.col("start_ns").min(), pl.col("end_ns").max())
    spans = spans.sort("process_id", "step").with_columns(pl.col("start_ns").shift(-1).over("process_id").alias("next"))
    overlap = (pl.col("end_ns") - pl.max_horizontal("start_ns", "next")).clip(0)
    length = pl.col("end_ns") - pl.col("start_ns")
    lapping = spans.drop_nulls("next").select(overlap.sum() / length.sum()).item()
    most = max(spans.group_by("process_id").len()["len"].to_list())
    if most < LEAST_NUMBERED or lapping > MOST_LAPPING:
        return None
    columns = {
        "start_ns": spans["start_ns"].to_numpy(),
        "dur_ns": (spans["end_ns"] - spans["start_ns"]).to_numpy(),
        "process_id": spans["process_id"].to_numpy(),
        "step": spans["step"].to_numpy(),
        "name": constant(_NUMBERED, spans.height),
        "marker": constant(_NUMBERED, spans.height),
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
        **time_columns(events, rows),
        "process_id": take(identity.process_of, thread, identity.program),
        "thread_id": nullable(thread, pa.int32()),
        "name": events.name.at(rows).to_arrow(),
    }
    return table("overhead", columns)


def memory_events(launches: Launches) -> pa.Table:
    """Return table ``memory_events``: allocations and releases by the framework's allocators."""
    events, identity = launches.events, launches.identity
    rows = events.rows(Role.MEMORY)
    if not rows.size:
        return schema.table("memory_events").empty()
    size = numbers(events.frame, "memory_bytes", rows)
    kind, number = numbers(events.frame, "device_type", rows), numbers(events.frame, "device_id", rows)
    on_device = kind.known & (kind.value != _CPU) & (number.value >= 0)
    device = identity.device_id(Numbers(number.value, number.known & on_device))
    cause = launches.forest.causes[rows]
    address = numbers(events.frame, "address", rows)
    keys, place = np.unique(np.where(on_device, (kind.value << 16) + number.value + 1, 0), return_inverse=True)
    pools = [
        f"{_DEVICE_TYPES.get(key >> 16, f'device type {key >> 16}')}:{(key & 0xFFFF) - 1}" if key else "CPU"
        for key in keys.tolist()
    ]
    columns = {
        "start_ns": events.start[rows],
        "process_id": identity.process_of[identity.thread_id[rows]],
        "device_id": masked(device.astype(np.int16), device < 0, pa.int16()),
        "kind": encoded((size.value < 0).astype(np.int32), ["alloc", "free"]),
        "memory": encoded(on_device.astype(np.int32), ["pageable", "device"]),
        "pool": encoded(place.astype(np.int32), pools),
        "address": masked(address.value, ~address.known, pa.int64()),
        "bytes": narrow(Numbers(np.abs(size.value), size.known), pa.int64()),
        "op": encoded(np.where(cause >= 0, events.name.codes[cause], NONE).astype(np.int32), events.name.words),
        "in_use_bytes": narrow(numbers(events.frame, "in_use", rows), pa.int64()),
        "reserved_bytes": narrow(numbers(events.frame, "reserved", rows), pa.int64()),
    }
    return table("memory_events", columns)
