"""Conversion of traces in the format of Chrome's trace viewer to the tables of the contract, one at a time."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from traceviz.core.errors import DamagedTraceError, UsageError
from traceviz.core.process.memory import give_back
from traceviz.parsers.base import ReadRequest
from traceviz.parsers.kineto import capture as facts
from traceviz.parsers.kineto.categories import DEVICE_ROLES, Role
from traceviz.parsers.kineto.decode.document import decode
from traceviz.parsers.kineto.dialects import Dialect, dialect_of, with_host_nodes, with_python_frames
from traceviz.parsers.kineto.events import Events, classify_events, with_ranges_of_the_program
from traceviz.parsers.kineto.folder import choose
from traceviz.parsers.kineto.identity import identify_all, without_rank
from traceviz.parsers.kineto.in_order import with_streams_in_order
from traceviz.parsers.kineto.raw import ARGUMENTS, RawTrace
from traceviz.parsers.kineto.recordings import split_recordings
from traceviz.parsers.kineto.work import device as device_tables
from traceviz.parsers.kineto.work import host as host_tables
from traceviz.parsers.kineto.work.collectives import collectives
from traceviz.parsers.kineto.work.launches import Launches
from traceviz.parsers.kineto.work.nesting import Forest
from traceviz.parsers.ranks.merge import merged
from traceviz.parsers.shared.log_folders import note_choice
from traceviz.parsers.shared.notes import Notes
from traceviz.parsers.shared.rows_to_tables import Builder, build_tables, unless_empty

_BYTES_PER_EVENT = 40
"""Minimum memory of the tables per event, in addition to the columns of the decoder."""


def read_traces(path: Path, options: ReadRequest) -> Iterator[tuple[str, pa.Table]]:
    """Yield the tables of a trace, or of the traces of one run in a folder, one at a time; ``notes`` last."""
    if not path.is_dir():
        if options.run is not None:
            raise UsageError(f"{path.name} is one trace, not a folder of runs.", fix="Leave --run out.")
        yield from _read_file(path, options)
        return
    run, others = choose(path, options.run)
    parts = [dict(_read_file(recording.path, options, recording.rank)) for recording in run.recordings]
    chosen = Notes()
    cycles = 1 + sum(not run.workers.isdisjoint(other.workers) for other in others)
    if cycles > 1 and options.run is None:
        chosen.add("run-chosen", "warning", ONE_CYCLE.format(cycles) + note_choice(run, others, options.run))
    elif others:
        chosen.add("run-chosen", "info", note_choice(run, others, options.run))
    yield from _merge(parts, [recording.path.name for recording in run.recordings], chosen)


ONE_CYCLE = "The same program wrote {} recordings, one per cycle of torch.profiler.schedule(repeat=...). "


def _merge(
    parts: list[dict[str, pa.Table]], names: list[str], notes: Notes, *, one_clock: bool = False
) -> Iterator[tuple[str, pa.Table]]:
    """Yield the tables of several recordings as those of ranks; ``notes`` come before those of the recordings."""
    for name, table in merged(parts, names, one_clock=one_clock):
        yield name, pa.concat_tables([notes.table(), table]) if name == "notes" and notes.rows else table


def _read_file(path: Path, options: ReadRequest, rank: int | None = None) -> Iterator[tuple[str, pa.Table]]:
    raw = decode(
        path,
        _needed_arguments(options),
        max_size=options.max_size,
        progress=options.progress,
        halves_from=None if options.max_memory is None else sys.maxsize,  # the memory of both halves would go unseen
    )
    options.allowance.check(raw.events.height * _BYTES_PER_EVENT, path.name)
    return tables_of(raw, path, options, rank)


def _needed_arguments(options: ReadRequest) -> frozenset[str]:
    """Return the columns that the decoder must fill: arguments of operations are most of a file."""
    every = frozenset(argument.column for argument in ARGUMENTS)
    of_ops = frozenset(host_tables.ARGUMENTS_OF_OPS) - {"external_id"}
    return (every - of_ops) | (of_ops & frozenset(host_tables.wanted_properties(options)))


def tables_of(
    raw: RawTrace, path: Path, options: ReadRequest, rank: int | None = None
) -> Iterator[tuple[str, pa.Table]]:
    """Yield the tables of a decoded file, ``notes`` last.

    Args:
        raw: The file.
        path: Its path, for messages.
        options: The request.
        rank: Rank of the program if the file does not state it.

    Raises:
        DamagedTraceError: it holds no usable event.
    """
    dialect = dialect_of(raw)
    pytorch = dialect is not None or facts.is_pytorch(raw)
    raw = dialect.translate(raw) if dialect is not None else with_python_frames(with_host_nodes(raw))
    events = with_streams_in_order(classify_events(raw))
    raw = replace(raw, events=raw.events.clear())  # the rest of the frame is not needed any more
    give_back()
    if not (events.role != Role.IGNORED).any():
        raise _no_events(path, raw)
    if not pytorch:
        events = with_ranges_of_the_program(events)
    several = split_recordings(events)
    if not several:
        yield from _tables(raw, events, options, dialect, pytorch=pytorch, rank=rank)
        return
    names = [recording.name for recording in several]
    raw = replace(raw, header=without_rank(raw.header))
    parts = [dict(_tables(raw, recording.events, options, dialect, pytorch=pytorch)) for recording in several]
    del events, several
    notes = Notes()
    notes.add("recordings-in-one-file", "info", MERGED.format(len(names)), len(names))
    yield from _merge(parts, names, notes, one_clock=True)


MERGED = "The file holds the recordings of {} processes: calls and device work are matched within each of them."


def _tables(
    raw: RawTrace,
    events: Events,
    options: ReadRequest,
    dialect: Dialect | None,
    *,
    pytorch: bool,
    rank: int | None = None,
) -> Iterator[tuple[str, pa.Table]]:
    """Yield the tables of one recording, ``notes`` last.

    Args:
        raw: The file.
        events: The events of the recording.
        options: The request.
        dialect: The profiler's dialect, from which ``events`` are already translated.
        pytorch: True if PyTorch's profiler or a dialect wrote the file.
        rank: Rank of the program if the file does not state it.
    """
    notes = Notes()
    facts.note_source(raw, notes)
    yield "run", facts.run(raw, events, notes, facts.name_writer(raw, dialect, pytorch=pytorch))
    identity = identify_all(events, raw.header, notes, rank=rank, one_program=pytorch)
    yield from identity.tables.items()
    forest = Forest.of(events, identity.thread_id, identity.tables["threads"].num_rows)
    give_back()
    launches = Launches(events, forest, identity)
    # The capture recorded a device, or could have
    listed = raw.header.get("deviceProperties")
    device = bool(identity.tables["devices"].num_rows or events.rows(Role.API).size or listed)
    facts.note_events(events, notes, pytorch=pytorch)
    facts.note_links(launches, notes)
    facts.note_device(events, notes, device=device, pytorch=pytorch and dialect is None)
    op_columns = options.columns.get("host_ops")
    works = device and not events.is_counted_only
    if not pytorch:  # calls of a device's API do not show that its work would have been recorded
        works = works and events.rows(*DEVICE_ROLES).size > 0
    # A builder returns None if the capture could not contain the table
    builders: dict[str, Builder] = {
        "kernels": lambda: device_tables.kernels(launches) if works else None,
        "memcpy": lambda: device_tables.copies(launches) if works else None,
        "memset": lambda: device_tables.fills(launches) if works else None,
        "graph_nodes": lambda: unless_empty(device_tables.graph_nodes(launches)),
        "cuda_api": lambda: host_tables.calls(launches) if device else None,
        "sync": lambda: unless_empty(device_tables.synchronisations(launches)),
        "overhead": lambda: unless_empty(host_tables.overhead(events, identity)),
        "device_ops": lambda: unless_empty(device_tables.scopes(launches)),
        "collectives": lambda: collectives(launches) if works else None,
        "memory_events": lambda: unless_empty(host_tables.memory_events(launches)),
        "steps": lambda: host_tables.steps(events, identity),
        "settings": lambda: facts.settings(raw.header, notes, keep_private=options.keep_private),
        "host_ops": lambda: host_tables.operations(forest, identity, op_columns),
        "op_args": lambda: host_tables.properties(forest, host_tables.wanted_properties(options)),
    }
    yield from build_tables(builders, options)
    yield "notes", notes.table()


def _no_events(path: Path, raw: RawTrace) -> DamagedTraceError:
    unusable = "; ".join(f"{count:,} {reason}" for reason, count in raw.unusable.items())
    if unusable:
        return DamagedTraceError(
            f"{path.name} holds no events that can be used.",
            f"Left out: {unusable}. {raw.damage}".rstrip(),
            "Copy the file again, or record again.",
        )
    return DamagedTraceError(
        f"{path.name} holds no events.",
        raw.damage or "The profiler was stopped before anything ran, or nothing was recorded.",
        "Record again, and let the profiler cover a few steps.",
    )
