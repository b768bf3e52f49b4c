"""Tiny traces from literals: a test shows the few numbers that matter, the rest is filled with defaults.

::

    view = trace(
        kernels=[(0, 10, "gemm"), (20, 5, "add", {"device_id": 1})],
        cuda_api=[(0, 3, "cudaLaunchKernel", {"correlation_id": 7})],
        nvtx=[(0, 100, "step 0")],
    )

An argument that is left out is a table that the capture does not have; ``[]`` is a table without rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.options import AnalysisOptions
from traceviz.core.arrays import intervals
from traceviz.trace import schema
from traceviz.trace.tables import TraceTables

Literal = Sequence[Any]
"""Values in the order of :data:`POSITIONS`, optionally followed by a dict of other columns."""

POSITIONS = {
    "kernels": ("start_ns", "dur_ns", "name"),
    "memcpy": ("start_ns", "dur_ns", "kind", "src_memory", "dst_memory", "bytes"),
    "memset": ("start_ns", "dur_ns", "bytes"),
    "graphs": ("start_ns", "dur_ns", "graph_id"),
    "graph_nodes": ("start_ns", "graph_node_id", "original_node_id"),
    "cuda_api": ("start_ns", "dur_ns", "name"),
    "sync": ("start_ns", "dur_ns", "kind"),
    "overhead": ("start_ns", "dur_ns", "name"),
    "nvtx": ("start_ns", "dur_ns", "name"),
    "host_ops": ("start_ns", "dur_ns", "name", "category"),
    "op_args": ("op_id", "key"),
    "device_ops": ("start_ns", "dur_ns", "name", "kind"),
    "os_calls": ("start_ns", "dur_ns", "name"),
    "scheduling": ("start_ns", "dur_ns"),
    "steps": ("start_ns", "dur_ns", "step"),
    "memory_events": ("start_ns", "kind", "bytes"),
    "collectives": ("start_ns", "dur_ns", "name"),
    "samples": ("start_ns", "metric", "value"),
    "stacks": ("start_ns", "dur_ns", "stack_id", "samples"),
    "stack_frames": ("stack_id", "parent_id", "function", "file", "line", "origin"),
    "phases": ("start_ns", "dur_ns", "kind", "name"),
    "metrics": ("start_ns", "name", "value", "step", "epoch"),
    "windows": ("start_ns", "dur_ns", "recorded"),
    "totals": ("kind", "name", "calls", "total_ns"),
    "settings": ("key", "value"),
    "notes": ("code", "severity", "message"),
    "devices": ("device_id", "name"),
    "processes": ("process_id", "name"),
    "threads": ("thread_id", "process_id", "name"),
}
"""Columns that a literal gives by position."""

DEFAULTS: dict[str, Any] = {
    "process_id": 0,
    "thread_id": 0,
    "device_id": 0,
    "stream": 7,
    "context_id": 1,
    "domain": "",
    "memory": "device",
    "category": "op",
    "marker": "ProfilerStep",
    "unit": "count",
    "severity": "info",
    **dict.fromkeys(("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"), 1),
}
DEFAULTS_OF: dict[str, dict[str, Any]] = {
    "cuda_api": {"domain": "runtime", "status": 0},
    "nvtx": {"kind": "push_pop", "category": None},
    "sync": {"kind": "context"},
    "steps": {"name": "step"},
    "stacks": {"samples": 1},
    "phases": {"name": "train.py"},
    "metrics": {"source": "program"},
    "devices": {"kind": "gpu"},
    "processes": {"pid": 0},
    "threads": {"tid": 0},
    "stack_frames": {"origin": "program"},
    "windows": {"source": "torch"},
}
NUMBERED = {"nvtx": "range_id", "host_ops": "op_id"}


def trace(
    *,
    options: AnalysisOptions | None = None,
    span_ns: int | None = None,
    run: Mapping[str, Any] | None = None,
    **literals: Sequence[Literal],
) -> TraceView:
    """Return a view on the trace that :func:`tables` builds."""
    return TraceView(tables(span_ns=span_ns, run=run, **literals), options)


def tables(
    *, span_ns: int | None = None, run: Mapping[str, Any] | None = None, **literals: Sequence[Literal]
) -> TraceTables:
    """Return tables from literals by table name (see :data:`POSITIONS`).

    Processes, threads and devices are those that events name. ``run.span_ns`` is the end of the last event where
    ``span_ns`` is not given. NVTX ranges and host operations get their row numbers, depths and parents.
    """
    rows = {name: [_row(name, literal) for literal in given] for name, given in literals.items()}
    rows |= {name: _nested(rows[name], key) for name, key in NUMBERED.items() if name in rows}
    rows = _dimensions(rows) | rows
    end = span_ns if span_ns is not None else _last_end(rows)
    facts = {"format": "literal", "producer": "test", "reader": "literal", "span_ns": end, **(run or {})}
    return TraceTables({"run": _arrow("run", [facts]), **{name: _arrow(name, found) for name, found in rows.items()}})


def _row(name: str, literal: Literal) -> dict[str, Any]:
    values, extra = (literal[:-1], literal[-1]) if literal and isinstance(literal[-1], dict) else (literal, {})
    declared = {column.name for column in schema.table(name).columns}
    unknown = set(extra) - declared
    assert not unknown, f"{name} has no columns {unknown}"
    defaults = {key: value for key, value in {**DEFAULTS, **DEFAULTS_OF.get(name, {})}.items() if key in declared}
    given = dict(zip(POSITIONS[name], values, strict=False))
    return {**defaults, **given, **extra}


def _nested(rows: list[dict[str, Any]], key: str) -> list[dict[str, Any]]:
    """Return rows in order of start, numbered in column ``key``, with depth and parent if they nest on a thread."""
    rows = sorted(rows, key=lambda row: row["start_ns"])
    numbered = [{**row, key: number} for number, row in enumerate(rows)]
    nests = [row for row in numbered if row.get("kind", "push_pop") == "push_pop"]
    starts = np.array([row["start_ns"] for row in nests], dtype=np.int64)
    ends = starts + np.array([row["dur_ns"] or 0 for row in nests], dtype=np.int64)
    depth, parent = intervals.nesting(starts, ends, [row["thread_id"] for row in nests])
    for row, level, around in zip(nests, depth.tolist(), parent.tolist(), strict=True):
        row["depth"] = level
        row["parent_id"] = nests[around][key] if around >= 0 else None
    return numbered


def _dimensions(rows: Mapping[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    events = [row for found in rows.values() for row in found]
    threads = {row["thread_id"]: row["process_id"] for row in events if row.get("thread_id") is not None}
    processes = {row["process_id"] for row in events if row.get("process_id") is not None}
    devices = {row["device_id"] for row in events if row.get("device_id") is not None}
    return {
        "threads": [{"thread_id": t, "process_id": p, "tid": 100 + t} for t, p in sorted(threads.items())],
        "processes": [{"process_id": p, "pid": 1000 + p} for p in sorted(processes)],
        "devices": [{"device_id": d, "ordinal": d, "kind": "gpu"} for d in sorted(devices)],
    }


def _last_end(rows: Mapping[str, list[dict[str, Any]]]) -> int:
    events = [row for found in rows.values() for row in found if "start_ns" in row]
    return max((row["start_ns"] + (row.get("dur_ns") or 0) for row in events), default=0)


def _arrow(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    """Return rows as the declared table; columns that no literal names are null."""
    declared = schema.table(name)
    columns = [
        pa.array([row.get(column.name) for row in rows], pa.string()).dictionary_encode().cast(column.type)
        if pa.types.is_dictionary(column.type)
        else pa.array([row.get(column.name) for row in rows], column.type)
        for column in declared.columns
    ]
    return pa.table(columns, schema=declared.arrow)
