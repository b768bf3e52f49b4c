"""A decoded Chrome-format trace as columns: the output of the decoders and the input of the reader.

Chrome's trace format is a list of JSON objects, one per event, alone or as member ``traceEvents`` of an object whose
other members describe the capture. PyTorch's profiler (Kineto) writes it, and spells the names of the same argument
differently over the years: :data:`ARGUMENTS` maps all spellings to one column. Add new spellings there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import polars as pl


class Kind(Enum):
    """Kind of the values of an argument, and so the type of its column."""

    INTEGER = pl.Int64
    """Whole numbers; numbers written as text, and in hexadecimal (``0x1f``), count as well."""
    REAL = pl.Float64
    """Numbers, also written as text."""
    TEXT = pl.Categorical
    """A text unchanged; a list, an object or a number as its JSON text without blanks."""
    TRIPLE = pl.Array(pl.Int32, 3)
    """Three whole numbers, ``[x, y, z]``."""


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of events.

    Args:
        column: Column that it fills.
        kind: Its values.
        keys: All its spellings; if an event has several, the first of these counts.
    """

    column: str
    kind: Kind
    keys: tuple[str, ...]


ARGUMENTS: tuple[Argument, ...] = (
    Argument("correlation", Kind.INTEGER, ("correlation", "correlation id", "connection_id")),
    Argument("external_id", Kind.INTEGER, ("External id", "external id")),
    Argument("device", Kind.INTEGER, ("device",)),
    Argument("context", Kind.INTEGER, ("context",)),
    Argument("stream", Kind.INTEGER, ("stream",)),
    Argument("bytes", Kind.INTEGER, ("bytes", "size")),
    Argument("grid", Kind.TRIPLE, ("grid",)),
    Argument("block", Kind.TRIPLE, ("block",)),
    Argument("registers", Kind.INTEGER, ("registers per thread",)),
    Argument("shared_memory", Kind.INTEGER, ("shared memory",)),
    Argument("blocks_per_sm", Kind.REAL, ("blocks per SM",)),
    Argument(
        "achieved_occupancy",
        Kind.REAL,
        ("est. achieved occupancy %", "est. achieved occupancy", "theoretical achieved occupancy %"),
    ),
    Argument("graph", Kind.INTEGER, ("graph id",)),
    Argument("graph_node", Kind.INTEGER, ("graph node id",)),
    # Annotations of a part of a graph; its name is ``name``, below
    Argument("module_path", Kind.TEXT, ("module_fqn",)),
    Argument("autograd_phase", Kind.TEXT, ("autograd_phase",)),
    Argument("hardware_stream", Kind.INTEGER, ("original_stream",)),
    Argument("sync_kind", Kind.TEXT, ("cuda_sync_kind",)),
    Argument("copy_kind", Kind.TEXT, ("copy kind", "kind", "direction")),
    Argument("src_kind", Kind.TEXT, ("src kind",)),
    Argument("dst_kind", Kind.TEXT, ("dst kind",)),
    Argument("memory_kind", Kind.TEXT, ("memory kind",)),
    Argument("status", Kind.INTEGER, ("result", "return value")),
    Argument("sequence", Kind.INTEGER, ("Sequence number",)),
    Argument("forward_thread", Kind.INTEGER, ("Fwd thread id",)),
    Argument("input_shapes", Kind.TEXT, ("Input Dims", "Input dims")),
    Argument("input_types", Kind.TEXT, ("Input type",)),
    Argument("inputs", Kind.TEXT, ("Concrete Inputs",)),
    Argument("call_stack", Kind.TEXT, ("Call stack",)),
    Argument("module_hierarchy", Kind.TEXT, ("Module Hierarchy",)),
    Argument("python_id", Kind.INTEGER, ("Python id",)),
    Argument("python_parent", Kind.INTEGER, ("Python parent id",)),
    Argument("python_module", Kind.INTEGER, ("Python module id",)),
    Argument("collective", Kind.TEXT, ("Collective name",)),
    Argument("in_elements", Kind.INTEGER, ("In msg nelems",)),
    Argument("out_elements", Kind.INTEGER, ("Out msg nelems",)),
    Argument("dtype", Kind.TEXT, ("dtype",)),
    Argument("group", Kind.TEXT, ("Process Group Name",)),
    Argument("group_size", Kind.INTEGER, ("Group size",)),
    # Allocations and releases
    Argument("memory_bytes", Kind.INTEGER, ("Bytes",)),
    Argument("address", Kind.INTEGER, ("Addr",)),
    Argument("device_type", Kind.INTEGER, ("Device Type",)),
    Argument("device_id", Kind.INTEGER, ("Device Id",)),
    Argument("in_use", Kind.INTEGER, ("Total Allocated",)),
    Argument("reserved", Kind.INTEGER, ("Total Reserved",)),
    # Training step of an event, in traces of other programs
    Argument("step", Kind.INTEGER, ("step", "iteration", "global_step")),
    # Thread that ran a callback of a CUDA graph
    Argument("host_process", Kind.TEXT, ("host process",)),
    Argument("host_thread", Kind.TEXT, ("host thread",)),
    # PaddlePaddle repeats the start, to the nanosecond
    Argument("exact_start", Kind.TEXT, ("start_time",)),
    # Kind of a task of a stream, in profiles of torch_npu
    Argument("task_type", Kind.TEXT, ("Task Type",)),
    # Names of processes and threads, and of parts of graphs
    Argument("label", Kind.TEXT, ("name", "labels")),
)
"""Every argument that is read; all others are skipped."""

PHASES = "XBEiInCM"
"""Phases of the events that are kept: complete, start and end, instants (three spellings), counters, names."""


@dataclass(frozen=True, slots=True, eq=False)
class RawTrace:
    """A decoded file.

    Args:
        header: The members next to the events, as Python values; empty for a bare list.
        events: Events of :data:`PHASES` in the order of the file. Texts (categorical): ``phase``, ``name``,
            ``category`` (empty if there is none), ``pid`` and ``tid``, for which programs write numbers and words.
            Integers: ``start_ns``, which is ``ts`` in nanoseconds, exact to the last decimal written (further decimals
            are cut), and ``dur_ns``, null if the event has no ``dur``. And the arguments of :data:`ARGUMENTS`; an
            argument that no event has may lack its column.
        passed_over: Events of other phases (flows, asynchronous ones ...) by phase.
        unusable: Events left out because a value makes no sense, by reason, a phrase that continues "events" ("with a
            time out of range" ...).
        damage: Losses because the file is cut or broken, as a sentence; empty if it is complete.
        decoder: Name of the decoder, for the note of provenance.
        repaired: Values left out or repaired while their events are kept, by kind, a phrase in the plural ("negative
            durations", "values of device out of range" ...).
    """

    header: dict[str, Any]
    events: pl.DataFrame
    passed_over: dict[str, int] = field(default_factory=dict)
    unusable: dict[str, int] = field(default_factory=dict)
    damage: str = ""
    decoder: str = ""
    repaired: dict[str, int] = field(default_factory=dict)
