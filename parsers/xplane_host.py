"""What ran on the host's threads: framework operations and their properties, driver calls, ranges, allocations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from traceviz import schema
from traceviz.parsers import device_details as details
from traceviz.parsers.arrow import Array as Arrow
from traceviz.parsers.xplane_columns import NONE, Facts, encoded, per_word, taken
from traceviz.parsers.xplane_depths import depths
from traceviz.parsers.xplane_device import Columns, group_column, pairs_of, table
from traceviz.parsers.xplane_host_names import CODES, MEMORY_NAMES, api_domain, api_name, categories, nvtx_parts
from traceviz.parsers.xplane_hosts import Host, Role, Times
from traceviz.parsers.xplane_identity import is_nvtx
from traceviz.parsers.xplane_nesting import nearest
from traceviz.parsers.xplane_raw import Array, Kind, Plane, Stats
from traceviz.schema import HOST_CATEGORIES

API = len(HOST_CATEGORIES)
"""Code of a driver call, after those of the categories."""
NVTX = API + 1
"""Code of an NVTX range."""

_PLUMBING = frozenset({"_r", "_pt", "_p", "_ct", "_c", "_a", "_pid", "_src", "group_id"})
"""Stats by which the profiler links events; the columns of the contract say the same."""
_STAGE = "_ipl_stage_name"


@dataclass(frozen=True)
class Threads:
    """A plane of host threads, sorted into what its events are.

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
    def what(self) -> Array:
        """Per event the code of its category, :data:`API` or :data:`NVTX` (int8)."""
        plane, runtime = self.plane, CODES["runtime"]
        found = categories(plane.names)[plane.events.name]
        of_programs = plane.stats_of("hlo_op").event
        found[of_programs] = np.where(found[of_programs] == runtime, CODES["op"], found[of_programs])
        self._mark_stages(found)
        groups = self.host.groups
        if groups is not None:
            found[groups.planes[self.place].marker] = CODES["step"]
        if self.host.has_gpu:
            found[plane.stats_of("correlation_id").event] = API
        for line in plane.lines:
            if is_nvtx(line):
                found[line.events] = NVTX
        return found

    def _mark_stages(self, found: Array) -> None:
        """Stages of an input pipeline of the program's own: the outermost is where the program takes its next batch."""
        staged = np.unique(self.plane.stats_of(_STAGE).event)
        if not staged.size:
            return
        is_stage = np.zeros(len(self.plane.events), dtype=bool)
        is_stage[staged] = True
        inside = np.zeros(staged.size, dtype=bool)
        above = self.parent[staged]
        while (above >= 0).any():
            inside |= (above >= 0) & is_stage[above]
            above = np.where(above >= 0, self.parent[above], NONE)
        found[staged] = np.where(inside, CODES["pipeline"], CODES["input"])

    @property
    def parent(self) -> Array:
        """Innermost event of its line that encloses each event (int32), -1 at the top."""
        if self.host.groups is None:
            return np.full(len(self.plane.events), NONE, dtype=np.int32)
        return self.host.groups.planes[self.place].parent

    def times(self, rows: Array | slice = slice(None)) -> Times:
        """When the events at ``rows`` ran."""
        return self.host.times(self.plane, rows)

    def rows(self, *codes: int) -> Array:
        """Positions of the events with one of ``codes``."""
        return np.flatnonzero(np.isin(self.what, codes))

    @cached_property
    def memory_rows(self) -> Array:
        """Positions of the events that tell of an allocation or a release."""
        names = [name in MEMORY_NAMES for name in self.plane.names] or [False]
        return np.flatnonzero(np.array(names)[self.plane.events.name])

    def placed(self, rows: Array) -> Columns:
        """Columns that the rows of all tables have: when, where."""
        start, duration = self.times(rows)
        return {
            "start_ns": start,
            "dur_ns": duration,
            "process_id": np.full(rows.size, self.host.process_id, dtype=np.int32),
            "thread_id": self.thread_ids[self.plane.events.line[rows]],
        }


def threads_of(hosts: Sequence[Host], thread_ids: Mapping[tuple[int, int], Array]) -> tuple[Threads, ...]:
    """All planes of host threads of ``hosts``."""
    return tuple(
        Threads(host, place, plane, thread_ids[host.process_id, place])
        for host in hosts
        for place, plane in host.planes(Role.HOST)
        if len(plane.events)
    )


def driver_calls(parts: Sequence[Threads]) -> pa.Table:
    """Table ``cuda_api``: the calls that set device work off, or waited for it."""
    return _concatenated("cuda_api", [_driver_calls(part) for part in parts])


def ranges(parts: Sequence[Threads]) -> pa.Table:
    """Table ``nvtx``."""
    found = [_ranges(part) for part in parts if (part.what == NVTX).any()]
    first = 0
    for columns in found:
        first = _shift(columns, first)
    return _concatenated("nvtx", found)


def _shift(columns: Columns, first: int) -> int:
    """Number the ranges of a plane after those of the planes before it; returns the next free number."""
    columns["range_id"] = columns["range_id"] + first
    parent = columns["parent_id"]
    columns["parent_id"] = pa.array(parent + first, mask=parent < 0)
    return first + len(parent)


def memory_events(parts: Sequence[Threads], device_ids: Mapping[tuple[int, int], int]) -> pa.Table:
    """Rows of table ``memory_events`` that the framework's allocators report.

    Args:
        parts: The host planes.
        device_ids: Device id by process and number of the GPU.
    """
    return _concatenated("memory_events", [_memory(part, device_ids) for part in parts if part.memory_rows.size])


def _concatenated(name: str, parts: Sequence[Columns]) -> pa.Table:
    tables = [table(name, columns) for columns in parts]
    return pa.concat_tables(tables).unify_dictionaries() if tables else schema.table(name).empty()


def _driver_calls(part: Threads) -> Columns:
    plane, rows = part.plane, part.rows(API)
    facts = Facts.of(plane, rows)
    texts, blocking = per_word(facts.texts("memcpy_details"), plane.texts, _is_blocking, False)
    pairs, place = pairs_of(plane.events.name[rows], texts)
    calls = [api_name(plane.names[name], blocking=blocking[text]) for name, text in pairs]
    return {
        **part.placed(rows),
        "correlation_id": facts.integers("correlation_id").arrow(pa.int64()),
        "name": encoded(place, calls),
        "domain": encoded(place, [api_domain(call) for call in calls]),
        "group_id": group_column(part.host.group_id(part.place, rows)),
    }


def _is_blocking(text: str) -> bool:
    return details.fields(text).get("async") == "0"


def _ranges(part: Threads) -> Columns:
    plane, rows = part.plane, part.rows(NVTX)
    names = [nvtx_parts(name) for name in plane.names]
    order = np.argsort(part.times(rows).start_ns, kind="stable")
    rows = rows[order]
    parent = _renumbered(part.parent, rows, part.what == NVTX)
    return {
        **part.placed(rows),
        "range_id": np.arange(rows.size),
        "kind": encoded((plane.events.dur_ps[rows] == 0).astype(np.int32), ["push_pop", "mark"]),
        "name": encoded(plane.events.name[rows], [text for _, text in names]),
        "domain": encoded(plane.events.name[rows], [domain for domain, _ in names]),
        "depth": depths(parent),
        "parent_id": parent.astype(np.int64),
    }


def _renumbered(parent: Array, rows: Array, kept: Array) -> Array:
    """Parents of ``rows`` as positions in ``rows`` (int32): the nearest ancestor that is ``kept``, -1 without one."""
    place = np.full(kept.size + 1, NONE, dtype=np.int32)  # the last one is that of no parent
    place[rows] = np.arange(rows.size, dtype=np.int32)
    above = parent[rows]
    if not kept.all():
        reached = np.append(nearest(parent, kept), np.int32(NONE))
        above = reached[above]
    return place[above]


def _memory(part: Threads, device_ids: Mapping[tuple[int, int], int]) -> Columns:
    plane, rows = part.plane, part.memory_rows
    facts = Facts.of(plane, rows)
    pools = facts.texts("allocator_name", "id")
    codes, devices = per_word(pools, plane.texts, details.pool_device, None)
    released = [name == MEMORY_NAMES[1] for name in plane.names]
    numbers = {
        "address": ("addr", "address"),
        "in_use_bytes": ("bytes_allocated",),
        "peak_bytes": ("peak_bytes_in_use",),
        "available_bytes": ("bytes_available",),
        "requested_bytes": ("requested_bytes",),
    }
    size = facts.integers("allocation_bytes")
    return {
        **part.placed(rows),
        "device_id": _device_ids(part.host, codes, devices, device_ids),
        "kind": encoded(np.array(released, dtype=np.int32)[plane.events.name[rows]], ["alloc", "free"]),
        "memory": _words(pools, plane.texts, details.pool_memory),
        "pool": encoded(pools, plane.texts),
        "bytes": pa.array(np.abs(size.value), mask=~size.known),
        "op": encoded(facts.texts("tf_op"), plane.texts),
        **{name: facts.integers(*keys).arrow(pa.int64()) for name, keys in numbers.items()},
    }


def _words(codes: Array, texts: Sequence[str], function: Any) -> Any:
    places, answers = per_word(codes, texts, function, "unknown")
    return encoded(places, answers)


def _device_ids(
    host: Host, codes: Array, numbers: Sequence[int | None], device_ids: Mapping[tuple[int, int], int]
) -> Arrow:
    ids = [None if number is None else device_ids.get((host.process_id, number)) for number in numbers]
    return taken(ids, pa.int16(), codes)


@dataclass(frozen=True, slots=True, eq=False)
class Operations:
    """Table ``host_ops``, and which of its rows each event became.

    Args:
        table: The table, in order of start.
        op_ids: For each plane the row of each event (int32), -1 where it is none.
    """

    table: pa.Table
    op_ids: tuple[Array, ...]


def operations(parts: Sequence[Threads], wanted: frozenset[str] | None) -> Operations:
    """Table ``host_ops``: every event of a thread that is neither a driver call nor an NVTX range.

    Args:
        parts: The host planes.
        wanted: Nullable columns that matter; ``None`` for all.
    """
    kept = _joined([part.what < API for part in parts])
    starts, durations = (_joined(columns) for columns in zip(*(part.times() for part in parts), strict=True))
    rows = _in_order(starts, kept)
    op_of = np.full(kept.size, NONE, dtype=np.int32)
    op_of[rows] = np.arange(rows.size, dtype=np.int32)
    bounds = np.cumsum([0, *(len(part.plane.events) for part in parts)]).tolist()
    columns: Columns = {"start_ns": starts[rows], "dur_ns": durations[rows]}
    del starts, durations
    columns["process_id"] = _process_column(parts, rows)
    columns["thread_id"] = _joined([part.thread_ids[part.plane.events.line] for part in parts])[rows]
    columns["op_id"] = np.arange(rows.size)
    columns["name"] = _names(parts, rows)
    columns["category"] = encoded(_joined([part.what for part in parts])[rows], HOST_CATEGORIES)
    if wanted is None or wanted & {"depth", "parent_id"}:
        columns.update(_nesting(parts, bounds, rows, kept))
    if wanted is None or "group_id" in wanted:
        columns["group_id"] = group_column(_joined([part.host.group_id(part.place) for part in parts])[rows])
    return Operations(table("host_ops", columns), tuple(op_of[begin:end] for begin, end in pairwise(bounds)))


def _joined(arrays: Sequence[Array]) -> Array:
    """Arrays of all planes one after the other; there is nearly always one plane, which is not copied."""
    return arrays[0] if len(arrays) == 1 else np.concatenate([np.empty(0, np.int8), *arrays])


def _in_order(starts: Array, kept: Array) -> Array:
    """Positions of the ``kept`` events in order of start, equal ones as they come."""
    if kept.all():
        # Lines are sorted each: a merge sort finds their runs.
        return np.argsort(starts, kind="stable").astype(np.int32)
    rows = np.flatnonzero(kept).astype(np.int32)
    return rows[np.argsort(starts[rows], kind="stable")]


def _process_column(parts: Sequence[Threads], rows: Array) -> Array:
    if len({part.host.process_id for part in parts}) <= 1:
        return np.full(rows.size, parts[0].host.process_id if parts else 0, dtype=np.int32)
    sizes = [len(part.plane.events) for part in parts]
    return np.repeat(np.array([part.host.process_id for part in parts], dtype=np.int32), sizes)[rows]


def _names(parts: Sequence[Threads], rows: Array) -> Any:
    """Names of the operations, from the names of all planes one after the other."""
    words = [name for part in parts for name in part.plane.names]
    firsts = np.cumsum([0, *(len(part.plane.names) for part in parts)], dtype=np.int32)
    codes = [
        part.plane.events.name + np.int32(first) if first else part.plane.events.name
        for part, first in zip(parts, firsts.tolist(), strict=False)
    ]
    return encoded(_joined(codes)[rows], words)


def _nesting(parts: Sequence[Threads], bounds: Sequence[int], rows: Array, kept: Array) -> Columns:
    """Columns ``depth`` and ``parent_id``."""
    parents = [
        np.where(part.parent >= 0, part.parent + first, NONE) if first else part.parent
        for part, first in zip(parts, bounds, strict=False)
    ]
    parent = _renumbered(_joined(parents), rows, kept)
    missing = parent < 0
    return {"depth": depths(parent), "parent_id": pa.array(parent.astype(np.int64), mask=missing)}


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """What remains of a plane once its operations are a table: the stats, and whose they are.

    Args:
        stats: The stats of its events.
        texts: Their keys and texts.
        op_ids: Operation of each event (int32), -1 where its stats are told elsewhere.
    """

    stats: Stats
    texts: list[str]
    op_ids: Array

    @classmethod
    def of(cls, part: Threads, op_ids: Array) -> Told:
        """What is left to tell of ``part``: allocations are rows of a table of their own."""
        if part.memory_rows.size:
            op_ids = op_ids.copy()
            op_ids[part.memory_rows] = NONE
        return cls(part.plane.stats, part.plane.texts, op_ids)


def properties(parts: Sequence[Told]) -> pa.Table:
    """Table ``op_args``: what the trace records of each operation, but for what links events."""
    return pa.concat_tables([_properties(part) for part in parts]).unify_dictionaries()


def _properties(part: Told) -> pa.Table:
    owner = part.op_ids[part.stats.event]
    is_told = np.array([text not in _PLUMBING for text in part.texts] or [False])
    chosen = is_told[part.stats.key]
    chosen &= part.stats.kind != Kind.BYTES
    chosen &= owner >= 0
    stats = part.stats
    if not chosen.all():
        rows = np.flatnonzero(chosen)
        owner, stats = owner[rows], stats.of(rows)
    whole = (stats.kind == Kind.SIGNED) | (stats.kind == Kind.UNSIGNED)
    text = np.where(stats.kind == Kind.TEXT, stats.value, NONE)
    columns = {
        "op_id": pa.array(owner.astype(np.int64)),
        "key": encoded(stats.key, part.texts),
        "integer": pa.array(stats.value, mask=~whole),
        "real": pa.array(stats.value.view(np.float64), mask=stats.kind != Kind.REAL),
        "text": encoded(text, part.texts),
    }
    return pa.table(columns, schema=schema.table("op_args").arrow)
