"""Host threads: kinds of events, and driver calls, ranges and allocations as tables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from traceviz.parsers.shared.arrays.nesting import depths, enclosing, nearest
from traceviz.parsers.shared.arrays.operations import NONE, inverted, take
from traceviz.parsers.shared.events import launch_details as details
from traceviz.parsers.shared.events.columns import encoded, nullable
from traceviz.parsers.xplane.decode.raw import Array, Plane
from traceviz.parsers.xplane.device import Columns, concatenate, pairs_of
from traceviz.parsers.xplane.hosts import Host, Role, Times
from traceviz.parsers.xplane.identity import is_nvtx
from traceviz.parsers.xplane.stats import Facts, map_words, per_word, take_values
from traceviz.trace.schema import HOST_CATEGORIES

CODES = {category: code for code, category in enumerate(HOST_CATEGORIES)}
"""Code of each category."""

MEMORY_NAMES = ("MemoryAllocation", "MemoryDeallocation")
"""Names of the instants that report allocations and releases of an allocator."""

_COPY = (
    r"MemcpyH|MemcpyD|MemCpy|memcpy|TransferTo|TransferFrom|BufferFromHost|InfeedEnqueue|OutfeedDequeue|LinearizeInto"
)
_COMPILE = (
    r".*(?:[Cc]ompil(?:e\b|er::|ation|eAndLoad)|compile_and_load|graph_building|trace_to_jaxpr)"
    r"|HLO passes|Codegen|lower_|[A-Z]\w*Pass$|LLVM|ptxas|BuildExecutable|RunHloPasses|Grappler"
)
_CATEGORIES = (
    ("python", r"\$"),
    ("input", r"(?i:IteratorGetNext)"),
    ("pipeline", r"Iterator::|InstantiatedCapturedFunction::|\w+(?:Produce|Consume)$"),
    ("transfer", rf"{_COPY}|DevicePut|(?!Eager).*(?:CopyToDevice|CopyToHost|CopyRawToHost|BufferFromHost)"),
    # A TensorFlow op: a scoped name and a type. XLA's passes have no such names.
    ("op", r"[A-Za-z0-9.][\w.\\/>-]*:[A-Z_]\w*$|PjitFunction\("),
    ("compile", _COMPILE),
)
_CATEGORY = re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in _CATEGORIES))

_PROFILER = re.compile(
    r"\$(?:profiler\.py:\d+ (?:start|stop)_trace"  # JAX
    r"|profiler_v2\.py:\d+ (?:warmup|start|stop)"  # TensorFlow
    r"|[\w.]+:\d+ _(?:start|stop)_profiler)$"  # Keras' callback, around TensorFlow's
)

_ENDINGS = ("_trace", " warmup", " start", " stop", "_profiler")
"""Suffixes of the names that :data:`_PROFILER` matches: few names have them."""

_API = re.compile(r"(?:cu|cuda|hip)[A-Z]\w*")
_VERSION = re.compile(r"_v\d+$")
_OLD_COPY = re.compile(r"Memcpy(?P<source>[HDA])(?:2|to)(?P<target>[HDA])", re.IGNORECASE)

API = len(HOST_CATEGORIES)
"""Code of a driver call, after those of the categories."""
NVTX = API + 1
"""Code of an NVTX range."""

_STAGE = "_ipl_stage_name"


@dataclass(frozen=True)
class Threads:
    """A plane of host threads, with the kinds of its events.

    Args:
        host: The host.
        place: Position of the plane.
        plane: The plane.
        thread_ids: Thread of each line (int32).
    """

    host: Host
    place: int
    plane: Plane
    thread_ids: Array

    @cached_property
    def codes(self) -> Array:
        """For each event, the code of its category, :data:`API` or :data:`NVTX` (int8)."""
        plane, runtime = self.plane, CODES["runtime"]
        by_name = np.array([CODES[_categorise(name)] for name in plane.names] or [runtime], dtype=np.int8)
        codes = take(by_name, plane.events.name)
        of_programs = plane.stats_of("hlo_op").event
        codes[of_programs] = np.where(codes[of_programs] == runtime, CODES["op"], codes[of_programs])
        # Stages of the program's own input pipeline: in the outermost, the program takes its next batch
        staged = np.unique(plane.stats_of(_STAGE).event)
        is_stage = np.zeros(len(plane.events), dtype=bool)
        is_stage[staged] = True
        inside = np.zeros(staged.size, dtype=bool)
        above = self.parent[staged] if staged.size else staged
        while (above >= 0).any():
            inside |= (above >= 0) & is_stage[above]
            above = np.where(above >= 0, self.parent[above], NONE)
        codes[staged] = np.where(inside, CODES["pipeline"], CODES["input"])
        groups = self.host.groups
        if groups is not None:
            codes[groups.planes[self.place].marker] = CODES["step"]
        self._mark_others(codes, API, NVTX)
        return codes

    @cached_property
    def is_operation(self) -> Array:
        """Mask of the events that are neither driver calls nor NVTX ranges (bool): their code is that of a category."""
        are_operations = np.ones(len(self.plane.events), dtype=bool)
        self._mark_others(are_operations, 0, 0)
        return are_operations

    def _mark_others(self, column: Array, api: int, nvtx: int) -> None:
        """Write ``api`` for driver calls and ``nvtx`` for NVTX ranges."""
        if self.host.has_gpu:
            column[self.plane.stats_of("correlation_id").event] = api
        for line in self.plane.lines:
            if is_nvtx(line):
                column[line.events] = nvtx

    @cached_property
    def parent(self) -> Array:
        """Innermost event of its line that encloses each event (int32), -1 at the top."""
        events = self.plane.events
        return enclosing(events.line, events.offset_ps, events.dur_ps)

    def times(self, rows: Array | slice = slice(None)) -> Times:
        """Return times of the events at ``rows``."""
        return self.host.times(self.plane, rows)

    def rows(self, *codes: int) -> Array:
        """Return positions of the events with one of ``codes``."""
        return np.flatnonzero(np.isin(self.codes, codes))

    @cached_property
    def memory_rows(self) -> Array:
        """Positions of the events that report an allocation or a release."""
        names = np.array([name in MEMORY_NAMES for name in self.plane.names], dtype=bool)
        return np.flatnonzero(take(names, self.plane.events.name, False)) if names.any() else np.empty(0, np.int64)

    def place_columns(self, rows: Array) -> Columns:
        """Return the columns of the rows of all tables: time and place."""
        start, duration = self.times(rows)
        return {
            "start_ns": start,
            "dur_ns": duration,
            "process_id": np.full(rows.size, self.host.process_id, dtype=np.int32),
            "thread_id": self.thread_ids[self.plane.events.line[rows]],
        }


def threads_of(hosts: Sequence[Host], thread_ids: Mapping[tuple[int, int], Array]) -> tuple[Threads, ...]:
    """Return all planes of host threads of ``hosts``."""
    return tuple(
        Threads(host, place, plane, thread_ids[host.process_id, place])
        for host in hosts
        for place, plane in host.planes(Role.HOST)
        if len(plane.events)
    )


def ranges(parts: Sequence[Threads]) -> pa.Table:
    """Return table ``nvtx``."""
    by_plane: list[Columns] = []
    first = 0
    for part in parts:
        kept = part.codes == NVTX
        if not kept.any():
            continue
        plane, rows = part.plane, np.flatnonzero(kept)
        rows = rows[np.argsort(part.times(rows).start_ns, kind="stable")]
        parent = renumber_parents(part.parent, rows, inverted(rows, kept.size), kept)
        names = [_split_nvtx(name) for name in plane.names]
        columns = {
            **part.place_columns(rows),
            "range_id": np.arange(first, first + rows.size),
            "kind": encoded((plane.events.dur_ps[rows] == 0).astype(np.int32), ["push_pop", "mark"]),
            "name": encoded(plane.events.name[rows], [text for _, text in names]),
            "domain": encoded(plane.events.name[rows], [domain for domain, _ in names]),
            "depth": depths(parent),
            "parent_id": pa.array(parent.astype(np.int64) + first, mask=parent < 0),
        }
        by_plane.append(columns)
        first += rows.size  # number the ranges of the next plane after those of this one
    return concatenate("nvtx", by_plane)


def overheads(part: Threads) -> Columns:
    """Return rows of table ``overhead``: the program's calls that start and stop the profiler."""
    plane = part.plane
    named = np.array([_is_profiler(name) for name in plane.names], dtype=bool)
    rows = np.flatnonzero(take(named, plane.events.name, False))
    return {**part.place_columns(rows), "name": encoded(plane.events.name[rows], plane.names)}


def driver_calls(part: Threads) -> Columns:
    """Return rows of table ``cuda_api``: the calls that launched device work, or waited for it."""
    plane, rows = part.plane, part.rows(API)
    facts = Facts.of(plane, rows)
    texts, blocking = per_word(
        facts.texts("memcpy_details"), plane.texts, lambda text: details.fields(text).get("async") == "0", False
    )
    pairs, place = pairs_of(plane.events.name[rows], texts)
    amd = any(plane.properties.get("device_vendor") == "AMD" for _, plane in part.host.planes(Role.GPU))
    calls = [_api_name(plane.names[name], blocking=blocking[text], amd=amd) for name, text in pairs]
    return {
        **part.place_columns(rows),
        "correlation_id": facts.integers("correlation_id").arrow(pa.int64()),
        "name": encoded(place, calls),
        "domain": encoded(place, ["runtime" if call.startswith(("cuda", "hip")) else "driver" for call in calls]),
        "group_id": nullable(part.host.group_id(part.place, rows), pa.int64()),
    }


def renumber_parents(parent: Array, rows: Array, place: Array, kept: Array) -> Array:
    """Return parents of ``rows`` as positions in ``rows`` (int32): the nearest ``kept`` ancestor, -1 without one.

    Args:
        parent: Parent of each event (int32), negative at the top.
        rows: The kept events (int32), in any order.
        place: Position of each event in ``rows`` (int32).
        kept: Mask of the kept events (bool).
    """
    if kept.all():
        return take(place, take(parent, rows))
    above = take(nearest(parent, kept), take(parent, rows))
    return take(place[kept], above)


def allocations(part: Threads, device_ids: Mapping[tuple[int, int], int]) -> Columns:
    """Return rows of table ``memory_events`` that the framework's allocators report.

    Args:
        part: A host plane.
        device_ids: Device id by process and number of the GPU.
    """
    plane, rows = part.plane, part.memory_rows
    facts = Facts.of(plane, rows)
    released = [name == MEMORY_NAMES[1] for name in plane.names]
    numbers = {
        "address": ("addr", "address"),
        "in_use_bytes": ("bytes_allocated",),
        "peak_bytes": ("peak_bytes_in_use",),
        "available_bytes": ("bytes_available",),
        "requested_bytes": ("requested_bytes",),
    }
    size = facts.integers("allocation_bytes")
    # The allocator's name states the device, else the TPU's number does
    stated = facts.integers("index_on_host")
    ordinals = np.where(stated.known & (stated.value >= 0) & (stated.value < 2**15), stated.value, NONE)
    pairs, place = pairs_of(facts.texts("allocator_name", "id") + 1, ordinals + 1)
    texts = [None, *plane.texts]
    pools = [_describe_pool(texts[name], number - 1, part.host.process_id, device_ids) for name, number in pairs]
    return {
        **part.place_columns(rows),
        "device_id": take_values([device for device, _, _ in pools], pa.int16(), place),
        "memory": encoded(place, [memory for _, memory, _ in pools]),
        "pool": encoded(place, [name for _, _, name in pools]),
        "kind": encoded(np.array(released, dtype=np.int32)[plane.events.name[rows]], ["alloc", "free"]),
        "bytes": pa.array(np.abs(size.value), mask=~size.known),
        # XLA's allocators write "(null)" for an unknown op.
        "op": map_words(facts.texts("tf_op"), plane.texts, lambda op: None if op in ("", "(null)") else op),
        **{name: facts.integers(*keys).arrow(pa.int64()) for name, keys in numbers.items()},
    }


def _describe_pool(
    name: str | None, number: int, process: int, device_ids: Mapping[tuple[int, int], int]
) -> tuple[int | None, str, str | None]:
    """Return device, kind of memory and name of a pool. Pools of TPUs have no names and differ by number."""
    if name is not None:
        own = details.pool_device(name)
        return None if own is None else device_ids.get((process, own)), details.pool_memory(name), name
    if number < 0:
        return None, "unknown", None
    device = device_ids.get((process, number))
    return device, "device", None if device is not None else f"device {number}"


def _categorise(name: str) -> str:
    """Return one of the categories of host operations; ``runtime`` if the name shows none."""
    if name.startswith("$"):  # most names of a capture with a Python tracer
        return "python"
    match = _CATEGORY.match(name)
    return match.lastgroup or "runtime" if match else "runtime"


def _is_profiler(name: str) -> bool:
    """Return whether a Python frame starts or stops the profiler."""
    return name.endswith(_ENDINGS) and _PROFILER.match(name) is not None


def _api_name(name: str, *, blocking: bool, amd: bool = False) -> str:
    """Return the name of the driver call behind an event with a correlation id.

    Since 2021 the event has the name of the call, ``cuMemcpyHtoDAsync_v2``. Before, it had the name of the launched
    work: a copy (``MemcpyH2D``), a fill, or a kernel.

    Args:
        name: Name of the event.
        blocking: True if its details state that the call was not asynchronous.
        amd: True if the GPUs are AMD's: then the call is one of HIP, not of CUDA.
    """
    call = _API.match(name)
    if call:
        return _VERSION.sub("", call[0])
    copy = _OLD_COPY.match(name)
    library, ending = "hip" if amd else "cu", "" if blocking else "Async"
    if copy:
        return f"{library}Memcpy{copy['source'].upper()}to{copy['target'].upper()}{ending}"
    if name.startswith("Memcpy"):
        return f"{library}Memcpy{ending}"
    return f"{library}MemsetD8{ending}" if name.lower().startswith("memset") else f"{library}LaunchKernel"


def _split_nvtx(name: str) -> tuple[str, str]:
    """Return domain and text of an NVTX range, which is named ``NVTX:domain:text`` or ``NVTX:text``."""
    rest = name.removeprefix("NVTX:")
    domain, colon, text = rest.partition(":")
    return (domain, text) if colon and name != rest else ("", rest)
