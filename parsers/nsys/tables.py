"""Conversion of the raw tables of an export to the tables of the contract, one at a time.

The order of work: the export's facts about its capture, a survey of all event tables (clock and identities), then one
event table after the other, streamed batch by batch into the narrow types of the contract.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from traceviz.core.errors import DamagedTraceError
from traceviz.core.sanitize import without_paths
from traceviz.parsers.base import ReadRequest
from traceviz.parsers.nsys.calls import CALLS, once, with_ids
from traceviz.parsers.nsys.capture import Capture, read_capture
from traceviz.parsers.nsys.constants import SEVERITY
from traceviz.parsers.nsys.events import event_reader
from traceviz.parsers.nsys.identity import Identity, identify_all
from traceviz.parsers.nsys.mapping import EVENT_TABLES, EVIDENCE, GRAPHS
from traceviz.parsers.nsys.nvtx import read_nvtx
from traceviz.parsers.nsys.samples import has_samples, read_samples
from traceviz.parsers.nsys.spilled import merged, spilled
from traceviz.parsers.nsys.survey import Survey, take_survey
from traceviz.parsers.shared.arrays.arrow import ChunkedArray, StringArray, pc
from traceviz.parsers.shared.events.names import count_rows
from traceviz.parsers.shared.events.prescan import present
from traceviz.parsers.shared.events.reader import EventReader
from traceviz.parsers.shared.events.sort_by_start import in_order
from traceviz.parsers.shared.events.source_tables import RawTables
from traceviz.parsers.shared.events.table import first
from traceviz.parsers.shared.frameworks import evidence_table, identify_framework, pool, texts
from traceviz.parsers.shared.notes import Notes
from traceviz.trace import schema
from traceviz.trace.names.framework_signs import Identified, SignKind
from traceviz.trace.rows_to_table import rows_to_table
from traceviz.trace.spill import Spill

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
    found = _framework(raw, capture, identity)
    row = _run(capture, survey, provenance, keep_private=options.keep_private) | {"framework": found.framework}
    yield "run", rows_to_table("run", [row], notes)
    yield from identity.tables.items()
    settings = evidence_table(found) if options.wants("settings") else None
    if settings is not None:
        yield "settings", settings
    yield from _event_tables(raw, options, capture, survey, identity, notes)
    if options.wants("samples") and has_samples(raw):
        yield "samples", read_samples(raw, survey.clock.zero_ns, identity.gpu_devices)
    notes.add("graph-kernels-hidden", "warning", HIDDEN, survey.rows.get("graphs", 0))
    _note_unread(raw, notes)
    _note_diagnostics(raw, notes)
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
            table = once(table, notes)
            _note_hidden_graphs(raw, capture, table, notes)
        made = [in_order(table)]
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

    if not spilled(spill, name, EVENT_TABLES[name], events, look):
        return False
    notes.rows += merged(taken).rows
    return True


def _framework(raw: RawTables, capture: Capture, identity: Identity) -> Identified:
    """Return the framework, by event strings, texts of ranges, and processes, for any requested tables."""
    strings, ranges = pool(raw), texts(raw, "NVTX_EVENTS", "text")
    names: dict[SignKind, StringArray] = {
        "names": strings,
        "ranges": pa.concat_arrays([strings, ranges]),
        "libraries": strings,
        "programs": identity.tables["processes"]["name"].combine_chunks(),
    }
    return identify_framework(names, capture.framework_versions)


def _run(capture: Capture, survey: Survey, provenance: Provenance, *, keep_private: bool) -> dict[str, Any]:
    return {
        "format": "nsys",
        "producer": capture.product or PRODUCER,
        "producer_version": _version(provenance.capture_version, capture.export.get("EXPORT_PRODUCT_VERSION")),
        "source_schema": capture.export.get("EXPORT_SCHEMA_VERSION"),  # exports of 2020 state none
        "driver_version": capture.driver_version,
        "cuda_version": capture.cuda_version,
        "host": capture.host if keep_private else None,
        "command": capture.command if keep_private else None,
        "t0_unix_ns": capture.zero_unix_ns(survey.clock.zero_ns),
        "span_ns": survey.clock.last_ns - survey.clock.zero_ns,
        "reader": provenance.route,
    }


def _version(captured: str | None, exported: str | None) -> str | None:
    """Return the version of the recording nsys, if stated, and of the exporting nsys if it differs."""
    if captured is None:
        return exported and f"exported by {exported}"
    return f"{captured}, exported by {exported}" if exported and exported != captured else captured


HIDDEN = "Graph-level tracing hides kernels: record with --cuda-graph-trace=node to see those that CUDA graphs launch."


def _note_hidden_graphs(raw: RawTables, capture: Capture, calls: pa.Table, notes: Notes) -> None:
    """Note launches of graphs in a capture whose options record graphs as a whole."""
    as_a_whole = ("CUDA_GRAPH_TRACE_OPTIONS:MODE", "Graph") in capture.options
    if as_a_whole and GRAPHS not in raw.names and calls.num_rows:
        names: ChunkedArray = calls["name"]
        launches = pc.match_substring_regex(names.chunk(0).dictionary, "^(cuda|cu)GraphLaunch")
        notes.add("graph-kernels-hidden", "warning", HIDDEN, count_rows(names, launches))


_READ_ELSEWHERE = frozenset({"DIAGNOSTIC_EVENT", "GPU_METRICS"})
_TIMES = ("start", "timestamp", "rawTimestamp")
_MOST_NAMED = 12


def _note_unread(raw: RawTables, notes: Notes) -> None:
    """Note tables of events that no code here reads."""
    read = {source.table for sources in EVENT_TABLES.values() for source in present(raw, sources)} | _READ_ELSEWHERE
    read |= {"GENERIC_EVENTS"} if has_samples(raw) else set()
    unread = sorted(name for name in raw.plain_names - read if _has_events(raw, name))
    if unread:
        shown = ", ".join(unread[:_MOST_NAMED]) + (", ..." if len(unread) > _MOST_NAMED else "")
        notes.add("unread-tables", "info", f"Tables of events that traceviz does not read: {shown}.")


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


def _note_diagnostics(raw: RawTables, notes: Notes) -> None:
    """Note warnings and errors from the profiler (DIAGNOSTIC_EVENT, since schema 3.13); equal ones are counted."""
    rows = raw.small("DIAGNOSTIC_EVENT", ("severity",), ("text",))
    serious = Counter(
        (SEVERITY[row["severity"]], without_paths(row["text"] or "")) for row in rows if row["severity"] in SEVERITY
    )
    for (severity, text), count in serious.items():
        notes.add("profiler-diagnostic", severity, f"Nsight Systems: {text}", count)
