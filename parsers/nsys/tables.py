"""Conversion of the raw tables of an export to the tables of the contract, one at a time.

The order of work: the export's facts about its capture, a survey of all event tables (clock and identities), then one
event table after the other, streamed batch by batch into the narrow types of the contract.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceviz.core.arrays.sweeps import put_in_order
from traceviz.core.errors import DamagedTraceError
from traceviz.core.sanitize import without_paths
from traceviz.parsers.base import ReadRequest
from traceviz.parsers.nsys.calls import CALLS, drop_repeated_calls, with_ids
from traceviz.parsers.nsys.cpu_samples import read_stacks
from traceviz.parsers.nsys.events import event_reader, read_nvtx
from traceviz.parsers.nsys.identity import Identity, Survey, has_cpu_samples, identify_all, take_survey
from traceviz.parsers.nsys.mapping import (
    CHAINS,
    EVENT_TABLES,
    EVIDENCE,
    GRAPHS,
    PAGE_FAULTS,
    SAMPLES,
    SCHEDULE,
    SCHEDULE_COLUMNS,
    SEVERITY,
    Evidence,
)
from traceviz.parsers.nsys.samples import has_samples, read_samples
from traceviz.parsers.nsys.schedule import read_schedule
from traceviz.parsers.nsys.spilled import merge_notes, spill_table
from traceviz.parsers.shared.arrays.arrow import ChunkedArray, StringArray, pc
from traceviz.parsers.shared.cupti import cuda_version
from traceviz.parsers.shared.events.names import count_rows
from traceviz.parsers.shared.events.prescan import present
from traceviz.parsers.shared.events.reader import EventReader
from traceviz.parsers.shared.events.source_tables import RawTables
from traceviz.parsers.shared.events.table import first
from traceviz.parsers.shared.frameworks import identify_framework, pool, texts
from traceviz.parsers.shared.notes import Notes
from traceviz.trace import schema
from traceviz.trace.names.framework_signs import SignKind, stated_versions
from traceviz.trace.rows_to_table import rows_to_table, stated_integer
from traceviz.trace.spill import Spill

_PROCESS_OPTION = re.compile(r"^PROCESS_\d+:")
_DRIVER_DIGITS = re.compile(r"^(\d{3})(\d{2,3})(\d{2})$")


@dataclass(frozen=True, slots=True)
class Capture:
    """Facts about the capture.

    Args:
        export: META_DATA_EXPORT, or EXPORT_META_DATA of schemas 2.9.1 to 3.1.2; empty before.
        options: Rows (name, value) of META_DATA_CAPTURE (since 3.4.0) in their order, without environment variables.
        system: TARGET_INFO_SYSTEM_ENV, without the environment.
        session_start_unix_ns: Wall-clock time of the session's start.
        framework_versions: Versions of frameworks in the environment, by framework; the rest of the environment is not
            kept.
    """

    export: Mapping[str, str] = field(default_factory=dict)
    options: tuple[tuple[str, str], ...] = ()
    system: Mapping[str, str] = field(default_factory=dict)
    session_start_unix_ns: int | None = None
    framework_versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def product(self) -> str | None:
        """Name of the program that exported, if stated."""
        return self.export.get("EXPORT_PRODUCT_NAME", "").removeprefix("NVIDIA ") or None

    @property
    def driver_version(self) -> str | None:
        """Driver version; older captures write 470.103.01 as ``47010301``."""
        stated = self.system.get("NvDriverVersion", "")
        packed = _DRIVER_DIGITS.match(stated)
        return ".".join(packed.groups()) if packed else stated if "." in stated else None

    @property
    def cuda_version(self) -> str | None:
        """CUDA version of the driver; 11.6 is written as ``11060``."""
        number = stated_integer(self.system.get("CudaDriverVersion"))
        return cuda_version(number) if number and number > 0 else None

    @property
    def command(self) -> str | None:
        """Command line of the first process."""
        words = [
            value
            for name, value in self.options
            if name == "PROCESS_0:COMMAND" or name.startswith("PROCESS_0:ARGUMENT_")
        ]
        return " ".join(words) or None

    @property
    def host(self) -> str | None:
        """Name of the machine."""
        return self.system.get("Hostname") or dict(self.options).get("DEVICE_DISPLAY_NAME")

    def zero_unix_ns(self, zero_ns: int) -> int | None:
        """Return the wall-clock time of the raw time ``zero_ns``.

        Raw times are relative to the session's start unless the export was made with ``--ts-normalize``. They may
        include a shift (``--ts-shift``).
        """
        shift = stated_integer(self.export.get("EXPORT_PARAM_TIME_SHIFT")) or 0
        if self.export.get("EXPORT_PARAM_TIME_NORMALIZE") == "true":
            return zero_ns - shift
        return None if self.session_start_unix_ns is None else self.session_start_unix_ns + zero_ns - shift

    def shows(self, evidence: Evidence, tables: frozenset[str]) -> bool:
        """Return whether the capture could contain the table of ``evidence``."""
        options = {(_PROCESS_OPTION.sub("", name), value) for name, value in self.options}
        return bool(options & evidence.capture) or any(name.startswith(evidence.tables) for name in tables)


def read_capture(raw: RawTables) -> Capture:
    """Collect the facts; facts that the version lacks stay empty."""
    exported = [row for table in ("META_DATA_EXPORT", "EXPORT_META_DATA") for row in _pairs(raw, table)]
    sessions = raw.small("TARGET_INFO_SESSION_START_TIME", ("utcEpochNs",))
    captured = _pairs(raw, "META_DATA_CAPTURE")
    variables = (value.partition("=")[::2] for name, value in captured if "ENVIRONMENT" in name)
    return Capture(
        dict(exported),
        tuple((name, value) for name, value in captured if "ENVIRONMENT" not in name),
        {name: value for name, value in _pairs(raw, "TARGET_INFO_SYSTEM_ENV") if name != "DeviceEnvironment"},
        sessions[0]["utcEpochNs"] if sessions else None,
        stated_versions(variables),
    )


def _pairs(raw: RawTables, table: str) -> list[tuple[str, str]]:
    return [(row["name"] or "", row["value"] or "") for row in raw.small(table, (), ("name", "value"))]


PRODUCER = "Nsight Systems"


@dataclass(frozen=True, slots=True)
class Provenance:
    """Origin of an export.

    Args:
        route: The steps from the file to the tables, for ``run.reader``.
        capture_version: Version of the nsys that recorded, if the file states it.
        notes: Rows for table ``notes``: code, severity, message.
    """

    route: str
    capture_version: str | None = None
    notes: tuple[tuple[str, str, str], ...] = ()


def read_tables(raw: RawTables, options: ReadRequest, provenance: Provenance) -> Iterator[tuple[str, pa.Table]]:
    """Yield the tables of an export, ``notes`` last.

    Raises:
        DamagedTraceError: a table cannot be decoded.
    """
    notes = Notes()
    for code, severity, message in provenance.notes:
        notes.add(code, severity, message)
    capture = read_capture(raw)
    survey = take_survey(raw, notes)
    identity = identify_all(raw, survey, notes)
    strings, ranges = pool(raw), texts(raw, "NVTX_EVENTS", "text")
    names: dict[SignKind, StringArray] = {
        "names": strings,
        "ranges": pa.concat_arrays([strings, ranges]),
        "libraries": strings,
        "programs": identity.tables["processes"]["name"].combine_chunks(),
    }
    found = identify_framework(names, capture.framework_versions)  # the same for any requested tables
    row = _run(capture, survey, provenance, keep_private=options.keep_private) | {"framework": found.framework}
    yield "run", rows_to_table("run", [row], notes)
    yield from identity.tables.items()
    stated = [*found.evidence, *_count_page_faults(raw)] if options.wants("settings") else []
    if stated:
        yield "settings", rows_to_table("settings", [{"key": key, "value": value} for key, value in stated])
    yield from _event_tables(raw, options, capture, survey, identity, notes)
    if options.wants("samples") and has_samples(raw):
        yield "samples", read_samples(raw, survey.clock.zero_ns, identity.gpu_devices)
    is_sampled = has_cpu_samples(raw)
    if is_sampled and (options.wants("stacks") or options.wants("stack_frames")):
        frames, stacks = read_stacks(raw, identity, survey.clock.zero_ns, survey.clock.last_ns)
        yield "stack_frames", frames
        yield "stacks", stacks
    is_scheduled = raw.columns(SCHEDULE) >= set(SCHEDULE_COLUMNS)
    if is_scheduled and options.wants("scheduling"):
        yield "scheduling", read_schedule(raw, identity, survey.clock.zero_ns, survey.clock.last_ns)
    notes.add("graph-kernels-hidden", "warning", HIDDEN, survey.rows.get("graphs", 0))
    # Note tables of events that no code here reads.
    read = {source.table for sources in EVENT_TABLES.values() for source in present(raw, sources)} | _READ_ELSEWHERE
    read |= {"GENERIC_EVENTS"} if has_samples(raw) else set()
    read |= {SAMPLES, CHAINS} if is_sampled else set()
    read |= {SCHEDULE} if is_scheduled else set()
    read |= set(PAGE_FAULTS)
    unread = sorted(name for name in raw.plain_names - read if _has_events(raw, name))
    if unread:
        shown = ", ".join(unread[:_MOST_NAMED]) + (", ..." if len(unread) > _MOST_NAMED else "")
        notes.add("unread-tables", "info", f"Tables of events that traceviz does not read: {shown}.")
    # Warnings and errors of the profiler (since schema 3.13).
    rows = raw.small("DIAGNOSTIC_EVENT", ("severity",), ("text",))
    serious = Counter(
        (SEVERITY[row["severity"]], without_paths(row["text"] or "")) for row in rows if row["severity"] in SEVERITY
    )
    for (severity, text), count in serious.items():
        notes.add("profiler-diagnostic", severity, f"Nsight Systems: {text}", count)
    yield "notes", notes.table()


def _event_tables(  # noqa: PLR0917 (what was found before events are read)
    raw: RawTables, options: ReadRequest, capture: Capture, survey: Survey, identity: Identity, notes: Notes
) -> Iterator[tuple[str, pa.Table]]:
    """Yield the event tables, one at a time, except those that :attr:`ReadRequest.spill` takes."""

    def reader(taking: Notes) -> EventReader:
        return event_reader(raw, survey, identity, taking, with_ids(options))

    events = reader(notes)
    for name, sources in EVENT_TABLES.items():
        if not options.wants(name):
            continue
        if not survey.rows.get(name):
            if capture.shows(EVIDENCE[name], survey.telling):
                yield name, schema.table(name).empty()
            continue
        if options.spill is not None and _is_spilled(name, options.spill, reader, capture, notes):
            continue
        table = read_nvtx(events, survey, identity) if name == "nvtx" else events.read(name, sources)
        if name == CALLS:
            table = drop_repeated_calls(table, notes)
            _note_hidden_graphs(raw, capture, table, notes)
        made = [sort_by_start(table)]
        del table  # hold no reference here, so that the caller can free the table
        yield name, made.pop()


def _is_spilled(
    name: str, spill: Spill, reader: Callable[[Notes], EventReader], capture: Capture, notes: Notes
) -> bool:
    """Return whether a table went to a file, in pieces; their notes become those of the table."""
    taken = Notes()
    events = reader(taken)

    def look(piece: pa.Table) -> None:
        if name == CALLS:
            _note_hidden_graphs(events.raw, capture, piece, taken)

    if not spill_table(spill, name, EVENT_TABLES[name], events, look):
        return False
    notes.rows += merge_notes(taken).rows
    return True


def _run(capture: Capture, survey: Survey, provenance: Provenance, *, keep_private: bool) -> dict[str, Any]:
    exported = capture.export.get("EXPORT_PRODUCT_VERSION")
    exporter = f"exported by {exported}" if exported and exported != provenance.capture_version else None
    versions = (provenance.capture_version, exporter)  # each if stated
    return {
        "format": "nsys",
        "producer": capture.product or PRODUCER,
        "producer_version": ", ".join(filter(None, versions)) or None,
        "source_schema": capture.export.get("EXPORT_SCHEMA_VERSION"),  # exports of 2020 state none
        "driver_version": capture.driver_version,
        "cuda_version": capture.cuda_version,
        "host": capture.host if keep_private else None,
        "command": capture.command if keep_private else None,
        "t0_unix_ns": capture.zero_unix_ns(survey.clock.zero_ns),
        "span_ns": survey.clock.last_ns - survey.clock.zero_ns,
        "reader": provenance.route,
    }


HIDDEN = "Graph-level tracing hides kernels: record with --cuda-graph-trace=node to see those that CUDA graphs launch."


def _note_hidden_graphs(raw: RawTables, capture: Capture, calls: pa.Table, notes: Notes) -> None:
    """Note launches of graphs in a capture whose options record graphs as a whole."""
    as_a_whole = ("CUDA_GRAPH_TRACE_OPTIONS:MODE", "Graph") in capture.options
    if as_a_whole and GRAPHS not in raw.names and calls.num_rows:
        names: ChunkedArray = calls["name"]
        launches = pc.match_substring_regex(names.chunk(0).dictionary, "^(cuda|cu)GraphLaunch")
        notes.add("graph-kernels-hidden", "warning", HIDDEN, count_rows(names, launches))


def _count_page_faults(raw: RawTables) -> Iterator[tuple[str, str]]:
    """Yield key and value of the settings that state how many page faults in managed memory were recorded."""
    for table, (key, counts) in PAGE_FAULTS.items():
        columns = raw.columns(table)
        if "start" not in columns:
            continue
        chosen = counts if counts in columns else "start"
        batches = [batch[chosen] for batch in raw.stream(table, [chosen])]
        number = sum(pc.sum(b).as_py() or 0 if chosen == counts else len(b) for b in batches)
        if number > 0:
            yield key, str(number)


_READ_ELSEWHERE = frozenset({"DIAGNOSTIC_EVENT", "GPU_METRICS"})
_TIMES = ("start", "timestamp", "rawTimestamp")
_MOST_NAMED = 12


def _has_events(raw: RawTables, table: str) -> bool:
    """Return whether a table has rows with a time; tables that describe a capture have none.

    Damage in a table that is not read does no harm.
    """
    time = first(_TIMES, raw.columns(table))
    if time is None or raw.is_text(table, time):
        return False
    try:
        return any(batch.num_rows for batch in raw.stream(table, [time]))
    except DamagedTraceError:
        return True


def sort_by_start(table: pa.Table) -> pa.Table:
    """Return ``table`` with its rows sorted by start in place, without a second copy of any column, or unchanged.

    The caller owns the memory. The table stays unchanged if values of a column are null, if a column has several chunks
    or lies in read-only memory, or if rows are far from their places.
    """
    starts = table["start_ns"]
    if starts.num_chunks != 1 or np.all((times := starts.to_numpy())[1:] >= times[:-1]):
        return table
    names = [name for name in table.column_names if name != "start_ns" and not _is_uniform(table[name])]
    found = [_mutable_values(table[name]) for name in (*names, "start_ns")]
    columns = [column for column in found if column is not None]
    if len({column.ctypes.data for column in columns}) == len(found):
        put_in_order(times, columns)
    return table


def _is_uniform(column: pa.ChunkedArray[Any]) -> bool:
    """Return whether all values are null or equal, so that their order does not matter."""
    if column.null_count == len(column):
        return True
    values: Any = column.chunk(0)
    numbers = values.indices if pa.types.is_dictionary(values.type) else values
    if column.num_chunks != 1 or column.null_count or not pa.types.is_integer(numbers.type):
        return False
    bounds = pc.min_max(numbers)
    return bool(bounds["min"] == bounds["max"])


def _mutable_values(column: pa.ChunkedArray[Any]) -> npt.NDArray[Any] | None:
    """Return the numbers of a column in place; ``None`` if they cannot be moved."""
    if column.num_chunks != 1 or column.null_count:
        return None
    values: Any = column.chunk(0)
    numbers = values.indices if pa.types.is_dictionary(values.type) else values
    buffer = numbers.buffers()[1] if pa.types.is_integer(numbers.type) else None
    if buffer is None or not buffer.is_mutable:
        return None
    whole = np.frombuffer(buffer, numbers.type.to_pandas_dtype())
    return whole[numbers.offset : numbers.offset + len(numbers)]
