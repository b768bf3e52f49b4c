"""Conversion of the files of a run to the tables of the contract, one at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
import pyarrow as pa

from traceviz.parsers.base import ReadRequest
from traceviz.parsers.shared.events.columns import with_column
from traceviz.parsers.shared.events.launch_details import copy_kind, memory_kinds
from traceviz.parsers.shared.notes import Notes
from traceviz.parsers.shared.prefetch import run_early
from traceviz.parsers.shared.rows_to_tables import Builder, build_tables, unless_empty
from traceviz.parsers.xplane import capture as facts
from traceviz.parsers.xplane import device as device_tables
from traceviz.parsers.xplane import host as host_tables
from traceviz.parsers.xplane import operations
from traceviz.parsers.xplane.decode.raw import Space
from traceviz.parsers.xplane.device import Device, EventKind, concatenate, devices_of
from traceviz.parsers.xplane.groups.groups import group_with_annotations
from traceviz.parsers.xplane.host import Threads, threads_of
from traceviz.parsers.xplane.hosts import Clock, Grouped, Host, common_clock, ordinal
from traceviz.parsers.xplane.identity import identify_all
from traceviz.parsers.xplane.steps import steps
from traceviz.parsers.xplane.strays import without_strays
from traceviz.trace import schema

_UNGROUPED = frozenset({*schema.REQUIRED, "samples", "settings", "overhead"})
"""Tables without groups and nesting."""
_MANY_EVENTS = 1 << 17
"""Minimum number of events for which another thread is worthwhile."""
_CALL_KEY = ["process_id", "correlation_id"]
_DIRECTION = ["kind", "src_memory", "dst_memory"]
_UNKNOWN = "unknown"
_CLOCKS = "The hosts' files do not all say when profiling began: the clock of each starts at its own first event."


@dataclass(frozen=True, slots=True)
class Source:
    """One host's file.

    Args:
        name: Its name, which is private.
        space: Its content.
    """

    name: str
    space: Space


@dataclass(frozen=True, slots=True)
class Provenance:
    """Origin of the tables.

    Args:
        format: Identifier of the format, for ``run.format``.
        route: Reader and scanner, for ``run.reader``.
        notes: Rows for table ``notes``: code, severity, message.
    """

    format: str
    route: str
    notes: tuple[tuple[str, str, str], ...] = ()


def read_spaces(
    sources: Sequence[Source], options: ReadRequest, provenance: Provenance
) -> Iterator[tuple[str, pa.Table]]:
    """Yield the tables of a run, ``notes`` last.

    Args:
        sources: The files of its hosts, sorted.
        options: The request.
        provenance: Their origin.
    """
    notes = Notes()
    for code, severity, message in provenance.notes:
        notes.add(code, severity, message)
    sources = [Source(source.name, without_strays(source.space, notes)) for source in sources]
    clock = common_clock([source.space for source in sources])
    if not clock.aligned:
        notes.add("clocks-not-aligned", "warning", _CLOCKS)
    grouped = not _UNGROUPED.issuperset(schema.TABLES if options.tables is None else options.tables)
    is_large = sum(len(plane.events) for source in sources for plane in source.space.planes) >= _MANY_EVENTS
    in_background = grouped and is_large and options.max_memory is None
    hosts = _hosts(sources, clock, grouped=grouped, in_background=in_background)
    origin = facts.Origin(provenance.format, provenance.route, clock.last_ns, clock.t0_unix_ns)
    yield "run", facts.run(hosts, origin, notes, keep_private=options.keep_private)
    identity = identify_all(hosts, notes, keep_private=options.keep_private)
    yield from identity.tables.items()
    threads = threads_of(hosts, identity.thread_ids)
    devices = devices_of(hosts, identity.device_ids)
    largest = _operations(threads, options)
    facts.note_captures(hosts, notes)
    facts.note_devices(devices, notes)
    facts.note_events(hosts, notes)
    for name, table in _small_tables(hosts, threads, devices, options, notes):
        yield name, table
        del table  # release it: the caller may have freed it
    del hosts, devices, sources, threads
    yield from largest
    yield "notes", notes.table()


def _hosts(sources: Sequence[Source], clock: Clock, *, grouped: bool, in_background: bool) -> tuple[Host, ...]:
    """Return the hosts. A background thread may form their groups, if these are needed."""
    spaces = [source.space for source in sources]

    def form_groups() -> list[Grouped]:
        formed: list[Grouped] = []
        first = 0  # ids continue from host to host
        for space in spaces:
            groups = group_with_annotations(space) if grouped else None
            formed.append(Grouped(groups, first))
            first += 1 + max((group.id for group in groups.groups), default=-1) if groups else 0
        return formed

    forming = run_early(form_groups, in_background=in_background)
    return tuple(
        Host(number, source.name, source.space, zero_ns, lambda number=number: forming()[number])  # type: ignore[misc]
        for number, (source, zero_ns) in enumerate(zip(sources, clock.zero_ns, strict=True))
    )


def _small_tables(
    hosts: Sequence[Host], threads: Sequence[Threads], devices: Sequence[Device], options: ReadRequest, notes: Notes
) -> Iterator[tuple[str, pa.Table]]:
    """Yield all tables except those of host operations, if requested and possible in the capture."""
    has_gpu = any(host.has_gpu for host in hosts)
    builders: dict[str, Builder] = {
        "kernels": lambda: concatenate("kernels", map(device_tables.kernels, devices)) if devices else None,
        "memcpy": lambda: (
            _with_directions(concatenate("memcpy", map(device_tables.copies, devices)), lambda: _calls(threads))
            if has_gpu
            else None
        ),
        "memset": lambda: concatenate("memset", map(device_tables.fills, devices)) if has_gpu else None,
        "graphs": lambda: unless_empty(concatenate("graphs", map(device_tables.graphs, devices))),
        "cuda_api": lambda: _calls(threads) if has_gpu else None,
        "overhead": lambda: unless_empty(
            concatenate("overhead", [*map(device_tables.overheads, devices), *map(host_tables.overheads, threads)])
        ),
        "nvtx": lambda: unless_empty(host_tables.ranges(threads)),
        "device_ops": lambda: unless_empty(concatenate("device_ops", map(device_tables.stretches, devices))),
        "steps": lambda: steps(hosts, threads, devices, notes),
        "memory_events": lambda: _memory_events(threads, devices),
        "samples": lambda: unless_empty(concatenate("samples", map(device_tables.samples, devices))),
        "settings": lambda: facts.settings(hosts, notes, keep_private=options.keep_private),
    }
    return build_tables(builders, options, more=2)


def _with_directions(copies: pa.Table, calls: Callable[[], pa.Table]) -> pa.Table:
    """Return table ``memcpy`` with the directions of copies that state none, from calls such as ``hipMemcpyDtoDAsync``.

    Args:
        copies: The copies.
        calls: Makes table ``cuda_api``; it is only called if a copy states no kind.
    """

    def frame_of(table: pa.Table, *columns: str) -> pl.DataFrame:
        frame = pl.from_arrow(table.select([*_CALL_KEY, *columns]))
        assert isinstance(frame, pl.DataFrame)
        return frame.with_columns(pl.col(columns).cast(pl.String))

    stated = frame_of(copies, *_DIRECTION)
    if not (stated["kind"] == _UNKNOWN).any():
        return copies
    names = frame_of(calls(), "name").unique(_CALL_KEY, keep="first", maintain_order=True)
    kinds = {name: copy_kind(name, {}, None) for name in names["name"].unique()}
    sides = {kind: memory_kinds(kind, {}) for kind in kinds.values()}
    by_name = (kinds, *({name: sides[kind][side] for name, kind in kinds.items()} for side in (0, 1)))
    joined = stated.join(names, on=_CALL_KEY, how="left", maintain_order="left")
    for column, of_call in zip(_DIRECTION, by_name, strict=True):
        other = pl.col("name").replace_strict(of_call, default=None, return_dtype=pl.String)
        value = pl.when(pl.col("kind") == _UNKNOWN).then(pl.coalesce(other, column)).otherwise(column)
        words: Any = joined.select(value).to_series().to_arrow()
        copies = with_column(copies, column, words.cast(pa.string()).dictionary_encode().cast(schema.NAME))
    return copies


def _calls(threads: Sequence[Threads]) -> pa.Table:
    return concatenate("cuda_api", map(host_tables.driver_calls, threads))


def _memory_events(threads: Sequence[Threads], devices: Sequence[Device]) -> pa.Table | None:
    """Return allocations by the framework's allocators and, if recorded, by the driver."""
    by_number = {(device.host.process_id, ordinal(device.plane)): device.device_id for device in devices}
    of_hosts = (host_tables.allocations(part, by_number) for part in threads if part.memory_rows.size)
    parts = [concatenate("memory_events", of_hosts)]
    if any((device.kinds == EventKind.ALLOCATION).any() for device in devices):
        parts.append(concatenate("memory_events", map(device_tables.allocations, devices)))
    return unless_empty(pa.concat_tables(parts).unify_dictionaries())


def _operations(threads: Sequence[Threads], options: ReadRequest) -> Iterator[tuple[str, pa.Table]]:
    """Return tables ``host_ops`` and ``op_args``, if requested and possible in the capture.

    Work that needs no groups is done at once, while another thread forms them.
    """
    ops, args = options.wants("host_ops"), options.wants("op_args")
    if not threads or not (ops or args):
        return iter(())
    laid_out, op_ids = operations.lay_out(threads, options.columns.get("host_ops") if ops else frozenset())
    args_table = operations.properties(threads, op_ids) if args else None
    return operations.tables_of(threads, laid_out if ops else None, args_table)
