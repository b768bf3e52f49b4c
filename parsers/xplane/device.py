"""Device work: planes of GPUs and TPUs as kernels, copies, fills, programs, allocations and samples."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum, unique
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from traceviz.parsers.shared.arrays.arrow import Array as Arrow
from traceviz.parsers.shared.arrays.arrow import DictionaryArray
from traceviz.parsers.shared.events import launch_details as details
from traceviz.parsers.shared.events.columns import Numbers, encoded, nullable, table
from traceviz.parsers.xplane.decode.raw import Array, Kind, Plane
from traceviz.parsers.xplane.hosts import Host, Role, Times, is_derived, ordinal, role
from traceviz.parsers.xplane.stats import Facts, as_reals, map_words, per_word, take_values
from traceviz.trace import schema

Columns = dict[str, Any]


@unique
class EventKind(IntEnum):
    """Kind of an event of a device plane."""

    DERIVED = 0
    UNKNOWN = 1
    KERNEL = 2
    COPY = 3
    FILL = 4
    ALLOCATION = 5
    SAMPLE = 6
    OVERHEAD = 7
    CONTAINER = 8
    MODULE = 9
    STEP = 10
    ASYNC_OP = 11
    SCOPE = 12
    MARKER = 13
    GRAPH = 14


STRETCHES = {
    EventKind.MODULE: "module",
    EventKind.STEP: "step",
    EventKind.CONTAINER: "container",
    EventKind.ASYNC_OP: "async_op",
    EventKind.SCOPE: "scope",
    EventKind.MARKER: "marker",
}
"""Values of ``device_ops.kind``, all of :data:`traceviz.trace.schema.DEVICE_OP_KINDS`."""

_TPU_LINES = {
    "XLA Ops": EventKind.KERNEL,
    "XLA Modules": EventKind.MODULE,
    "Steps": EventKind.STEP,
    "Async XLA Ops": EventKind.ASYNC_OP,
    "XLA TraceMe": EventKind.MARKER,
    "Framework Name Scope": EventKind.SCOPE,
    "TensorFlow Name Scope": EventKind.SCOPE,
    "XLA TensorFlow Name Scope": EventKind.SCOPE,
    "Framework Ops": EventKind.DERIVED,
    "TensorFlow Ops": EventKind.DERIVED,
    "XLA TensorFlow Ops": EventKind.DERIVED,
    "Source code": EventKind.DERIVED,
}
_COUNTERS = "_counters_"
_OVERHEAD = "CUPTI overhead"
_NO_METRICS = frozenset({"group_id", "flow", "correlation_id", "is_eager"})
"""Stats that link events; files saved after grouping also have some on samples."""

_NAMES = re.compile(
    rf"(?P<GRAPH>CudaGraphExec\b)|(?P<COPY>memcpy|copy(?:device|host)to|{details.ROCM_COPY})|(?P<FILL>memset|{details.ROCM_FILL})"
    r"|(?P<ALLOCATION>mem(?:alloc|free|ory))",
    re.IGNORECASE,
)
_COPY_STATS = ("memcpy_details",)
_FILL_STATS = ("Memset_details", "memset_details")
_ALLOCATION_STATS = ("memalloc_details", "MemAlloc_details", "MemFree_details", "MemoryResidency_details")
_OP_STATS = ("tf_op", "hlo_op", "annotation")

_GRAPH_NUMBER = re.compile(r"CudaGraphExec:(\d{1,18})$")
"""Names of CUDA graphs that were recorded as a whole."""

NOTHING: dict[str, str] = {}
"""Details of an event that has none."""

_UNITS = {"mw": "mW", "w": "W", "c": "°C", "mhz": "MHz", "pct": "%", "bytes": "bytes"}


@dataclass(frozen=True)
class Device:
    """A device plane of a host, with the kinds of its events.

    Args:
        host: The host.
        place: Position of the plane.
        plane: The plane.
        device_id: Its device.
    """

    host: Host
    place: int
    plane: Plane
    device_id: int

    def times(self, rows: Array) -> Times:
        """Return times of the events at ``rows``."""
        return self.host.times(self.plane, rows)

    @cached_property
    def kinds(self) -> Array:
        """A :class:`EventKind` per event (int8)."""
        return _gpu_events(self.plane) if role(self.plane) is Role.GPU else _tpu_events(self.plane)

    def rows(self, *kinds: EventKind) -> Array:
        """Return positions of the events that are one of ``kinds``."""
        return np.flatnonzero(np.isin(self.kinds, kinds))


def devices_of(hosts: Sequence[Host], device_ids: Mapping[tuple[int, int], int]) -> tuple[Device, ...]:
    """Return all device planes of ``hosts``."""
    return tuple(
        Device(host, place, plane, device_ids[host.process_id, place])
        for host in hosts
        for place, plane in host.planes(Role.GPU, Role.TPU)
    )


def _gpu_events(plane: Plane) -> Array:
    """Return kinds of a GPU's events. On streams, names or details state it; other lines hold one kind each."""
    by_line = np.full(len(plane.lines) or 1, EventKind.KERNEL if plane.lines else EventKind.UNKNOWN, dtype=np.int8)
    for number, line in enumerate(plane.lines):
        if is_derived(line):
            by_line[number] = EventKind.DERIVED
        elif line.name.startswith((_COUNTERS, _OVERHEAD)):
            by_line[number] = EventKind.SAMPLE if line.name.startswith(_COUNTERS) else EventKind.OVERHEAD
    matches = map(_NAMES.match, plane.names)
    kinds = [EventKind[match.lastgroup] if match and match.lastgroup else EventKind.KERNEL for match in matches]
    by_name = np.array(kinds or [EventKind.KERNEL], dtype=np.int8)
    by_event = by_line[plane.events.line]
    work = by_event == EventKind.KERNEL
    by_stat = by_name[plane.events.name]
    for kind, keys in (
        (EventKind.ALLOCATION, _ALLOCATION_STATS),
        (EventKind.FILL, _FILL_STATS),
        (EventKind.COPY, _COPY_STATS),
    ):
        by_stat[plane.stats_of(*keys).event] = kind
    return np.where(work, by_stat, by_event)


def _tpu_events(plane: Plane) -> Array:
    """Return kinds of a TPU's events. Lines hold one kind each; an op around others (a loop, a call) is a container.

    Instants do not make an op a container: a start of a copy that took less than a tick of the clock may seem to lie
    within the op that follows it.
    """
    by_line = np.array(
        [
            (EventKind.SAMPLE if line.name.startswith(_COUNTERS) else _TPU_LINES.get(line.name, EventKind.UNKNOWN))
            for line in plane.lines
        ]
        or [EventKind.UNKNOWN],
        dtype=np.int8,
    )
    kinds = by_line[plane.events.line]
    ops = np.flatnonzero((kinds == EventKind.KERNEL) & (plane.events.dur_ps > 0))
    line, start = plane.events.line[ops], plane.events.offset_ps[ops]
    end = start + plane.events.dur_ps[ops]
    # Events are sorted by start, the longer first: an op that encloses any event encloses its successor.
    encloses = (line[1:] == line[:-1]) & (start[1:] >= start[:-1]) & (end[1:] <= end[:-1])
    kinds[ops[:-1][encloses]] = EventKind.CONTAINER
    return kinds


def concatenate(name: str, parts: Iterable[Columns]) -> pa.Table:
    """Return table ``name`` of the contract from the rows of all planes."""
    tables = [table(name, columns) for columns in parts if len(columns["start_ns"])]
    return pa.concat_tables(tables).unify_dictionaries() if tables else schema.table(name).empty()


def _placed(device: Device, rows: Array) -> Columns:
    """Return the columns of all rows of a device: time and place."""
    start, duration = device.times(rows)
    return {
        "start_ns": start,
        "dur_ns": duration,
        "device_id": np.full(rows.size, device.device_id, dtype=np.int16),
        "process_id": np.full(rows.size, device.host.process_id, dtype=np.int32),
    }


def _work(device: Device, rows: Array, facts: Facts) -> Columns:
    """Return the columns that kernels, copies and fills share."""
    return {**_launched(device, rows, facts), "graph_node_id": facts.integers("cuda_graph_node_id").arrow(pa.int64())}


def _launched(device: Device, rows: Array, facts: Facts) -> Columns:
    """Return the columns of all work."""
    plane = device.plane
    streams = np.array([line.id for line in plane.lines], dtype=np.int64)
    return {
        **_placed(device, rows),
        "stream": streams[plane.events.line[rows]],
        "context_id": _contexts(facts),
        "correlation_id": facts.integers("correlation_id").arrow(pa.int64()),
        "group_id": nullable(device.host.group_id(device.place, rows), pa.int64()),
        "op": _op(plane, rows, facts),
    }


def _contexts(facts: Facts) -> Arrow:
    """Return CUDA contexts: texts such as ``$$7``, a form that prevents sums, or numbers; 32 bits wide."""

    def number_of(text: str) -> int | None:
        digits = text.removeprefix("$$")
        return int(digits) if digits.isdecimal() and len(digits) < 10 else None

    codes, numbers = per_word(facts.texts("context_id"), facts.plane.texts, number_of, None)
    from_text = take_values(numbers, pa.int32(), codes)
    if from_text.null_count < facts.rows:
        return from_text
    stated = facts.integers("context_id")
    fits = stated.known & (stated.value >= 0) & (stated.value < 2**31)
    return Numbers(np.where(fits, stated.value, 0), fits).arrow(pa.int32())


def _op(plane: Plane, rows: Array, facts: Facts) -> DictionaryArray:
    """Return the framework op by the annotations of the event, else by the stats of its name."""
    codes = facts.texts(*_OP_STATS)
    is_stated = (codes >= 0).any()
    return map_words(codes, plane.texts, details.framework_op) if is_stated else _by_name(plane, rows, "tf_op")


def _by_name(plane: Plane, rows: Array, key: str) -> DictionaryArray:
    """Return a text that the file states once per name, for all events of that name."""
    stated = [plane.name_stats.get(place, {}).get(key) for place in range(len(plane.names))]
    words = [value if isinstance(value, str) and value else None for value in stated]
    return encoded(plane.events.name[rows], words)


def kernels(device: Device) -> Columns:
    """Return rows of table ``kernels``: executions of kernels on GPUs, of XLA ops on TPUs."""
    plane, rows = device.plane, device.rows(EventKind.KERNEL)
    facts = Facts.of(plane, rows)
    described = facts.texts("kernel_details")
    codes, launches = per_word(described, plane.texts, details.launch, dict.fromkeys(details.LAUNCH_COLUMNS))
    percent = facts.reals("theoretical_occupancy_pct")
    known = percent.known & (percent.value > 0) & (percent.value <= 100)  # zero stands for "not computed"
    of_text, ratios = per_word(described, plane.texts, details.occupancy, None)
    in_text = np.array([np.nan if ratio is None else ratio for ratio in ratios])[of_text]
    occupancy = np.where(known, percent.value / 100, in_text)
    return {
        **_work(device, rows, facts),
        "name": _kernel_names(plane, rows),
        **{
            name: take_values([shape[name] for shape in launches], pa.int32(), codes) for name in details.LAUNCH_COLUMNS
        },
        "occupancy": pa.array(occupancy, mask=np.isnan(occupancy)),
        "category": _by_name(plane, rows, "hlo_category"),
        "module": _modules(plane, rows, facts),
    }


def _kernel_names(plane: Plane, rows: Array) -> DictionaryArray:
    """Return names of kernels; for XLA ops the short name, because the long one is the whole instruction."""
    if role(plane) is Role.GPU:
        return encoded(plane.events.name[rows], plane.names)
    words = [display or name for display, name in zip(plane.display_names, plane.names, strict=True)]
    return encoded(plane.events.name[rows], words)


def _modules(plane: Plane, rows: Array, facts: Facts) -> DictionaryArray:
    """Return the compiled program of each kernel: stated, or, on TPUs, the one with the op's program number."""
    codes = facts.texts("hlo_module")
    if (codes >= 0).any():
        return encoded(codes, plane.texts)
    programs = {match[1]: name for name in plane.names if (match := re.search(r"\((\d+)\)$", name))}
    stated = (plane.name_stats.get(place, {}).get("program_id") for place in range(len(plane.names)))
    return encoded(plane.events.name[rows], [programs.get(str(program)) for program in stated])


def copies(device: Device) -> Columns:
    """Return rows of table ``memcpy``."""
    plane, rows = device.plane, device.rows(EventKind.COPY)
    facts = Facts.of(plane, rows)
    texts, fields = per_word(facts.texts(*_COPY_STATS), plane.texts, details.fields, NOTHING)
    pairs, place = pairs_of(plane.events.name[rows], texts)
    kinds = [details.copy_kind(plane.names[name], fields[text], ordinal(plane)) for name, text in pairs]
    memory = [details.memory_kinds(kind, fields[text]) for kind, (_, text) in zip(kinds, pairs, strict=True)]
    return {
        **_work(device, rows, facts),
        "kind": encoded(place, kinds),
        "src_memory": encoded(place, [source for source, _ in memory]),
        "dst_memory": encoded(place, [target for _, target in memory]),
        "bytes": take_values([details.size(fact) for fact in fields], pa.int64(), texts),
    }


def pairs_of(first: Array, second: Array) -> tuple[list[tuple[int, int]], Array]:
    """Return the distinct pairs of two columns of codes, and each row's position among these (int32)."""
    unique, place = np.unique((first.astype(np.int64) << 32) | second.astype(np.int64), return_inverse=True)
    return [(pair >> 32, pair & 0xFFFFFFFF) for pair in unique.tolist()], place.astype(np.int32)


def fills(device: Device) -> Columns:
    """Return rows of table ``memset``."""
    plane, rows = device.plane, device.rows(EventKind.FILL)
    facts = Facts.of(plane, rows)
    texts, fields = per_word(facts.texts(*_FILL_STATS), plane.texts, details.fields, NOTHING)
    return {
        **_work(device, rows, facts),
        "memory": encoded(texts, [details.memory_kind(fact.get("kind"), "device") for fact in fields]),
        "bytes": take_values([details.size(fact) for fact in fields], pa.int64(), texts),
    }


def graphs(device: Device) -> Columns:
    """Return rows of table ``graphs``: those that were recorded as a whole."""
    plane, rows = device.plane, device.rows(EventKind.GRAPH)
    numbers = [int(match[1]) if (match := _GRAPH_NUMBER.match(name)) else None for name in plane.names]
    return {
        **_launched(device, rows, Facts.of(plane, rows)),
        "graph_id": take_values(numbers, pa.int64(), plane.events.name[rows]),
    }


def stretches(device: Device) -> Columns:
    """Return rows of table ``device_ops``: programs, steps and other intervals that contain work."""
    plane, rows = device.plane, device.rows(*STRETCHES)
    kinds = [STRETCHES.get(kind) for kind in EventKind]
    return {
        **_placed(device, rows),
        "name": _kernel_names(plane, rows),
        "kind": encoded(device.kinds[rows].astype(np.int32), kinds),
        "category": _by_name(plane, rows, "hlo_category"),
        "run_id": Facts.of(plane, rows).integers("run_id").arrow(pa.int64()),
        "group_id": nullable(device.host.group_id(device.place, rows), pa.int64()),
    }


def overheads(device: Device) -> Columns:
    """Return rows of table ``overhead``: CUPTI's own time."""
    rows = device.rows(EventKind.OVERHEAD)
    return {**_placed(device, rows), "name": encoded(device.plane.events.name[rows], device.plane.names)}


def allocations(device: Device) -> Columns:
    """Return rows of table ``memory_events`` that the driver reports."""
    plane, rows = device.plane, device.rows(EventKind.ALLOCATION)
    facts = Facts.of(plane, rows)
    texts, fields = per_word(facts.texts(*_ALLOCATION_STATS), plane.texts, details.fields, NOTHING)
    released = np.isin(plane.events.name[rows], [i for i, name in enumerate(plane.names) if "free" in name.lower()])
    released |= np.isin(rows, plane.stats_of("MemFree_details").event)
    addresses = [_address(fact.get("addr")) for fact in fields]
    return {
        **_placed(device, rows),
        "correlation_id": facts.integers("correlation_id").arrow(pa.int64()),
        "kind": encoded(released.astype(np.int32), ["alloc", "free"]),
        "memory": encoded(texts, [details.memory_kind(fact.get("kind")) for fact in fields]),
        "address": take_values(addresses, pa.int64(), texts),
        "bytes": take_values([details.size(fact) for fact in fields], pa.int64(), texts),
        "op": _op(plane, rows, facts),
    }


def _address(text: str | None) -> int | None:
    """Return a hexadecimal address; ``None`` if it is not one or does not fit 64 bits."""
    try:
        address = int(text or "", 16)
    except ValueError:
        return None
    return address if 0 <= address < 2**63 else None


def samples(device: Device) -> Columns:
    """Return rows of table ``samples``: power, clocks, temperature and counters of devices.

    One row per number of an event: under its key, or under the name of the event if the key is only "value".
    """
    plane, is_sample = device.plane, device.kinds == EventKind.SAMPLE
    measured = np.array([text not in _NO_METRICS for text in plane.texts], dtype=bool)[plane.stats.key]
    stats = plane.stats.of(is_sample[plane.stats.event] & measured & (plane.stats.kind <= Kind.SIGNED))
    generic = [place for place, text in enumerate(plane.texts) if text in ("counter_value", "value")]
    named_by_event = np.isin(stats.key, generic)
    words = [*plane.texts, *plane.names]
    codes = np.where(named_by_event, plane.events.name[stats.event] + len(plane.texts), stats.key)
    return {
        "start_ns": device.times(stats.event).start_ns,
        "device_id": np.full(len(stats), device.device_id, dtype=np.int16),
        "metric": encoded(codes, words),
        # The last word of a name is its unit: power_mw.
        "unit": encoded(codes, [_UNITS.get(word.rsplit("_", 1)[-1].lower(), "") for word in words]),
        "value": as_reals(stats),
    }
