"""Reader of nvprof's printed output: traces of the GPU and of API calls, and summaries, as CSV or as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from traceviz.core.errors import DamagedTraceError
from traceviz.core.sanitize import without_paths
from traceviz.parsers.base import ReadRequest
from traceviz.parsers.nvprof.demangle import Demangler
from traceviz.parsers.nvprof.identity import program
from traceviz.parsers.nvprof.printed_text import Process, Section, Severity, processes, sections, warnings
from traceviz.parsers.nvprof.printed_totals import Totals, totals
from traceviz.parsers.nvprof.printed_trace import Device, Place, Tables, TraceRows, sort_rows
from traceviz.parsers.shared.events.owners import identity_tables
from traceviz.parsers.shared.frameworks import evidence_table, identify_framework
from traceviz.parsers.shared.json.stream import TextStream
from traceviz.parsers.shared.notes import Notes
from traceviz.trace.names.framework_signs import Identified
from traceviz.trace.plausible import window_of
from traceviz.trace.rows_to_table import rows_to_table

_WORK = ("kernels", "memcpy", "memset")
"""Tables of device work that nvprof records."""
_NOTHING = {
    b"No kernels were profiled.": _WORK,
    b"No API activities were profiled.": ("cuda_api",),
}
"""Lines that state that tables are empty."""
_BLOCK = 1 << 20
_EVENTS = (*_WORK, "cuda_api")
_SUMMARY = (
    "The file is a summary: it has totals and no events, so nothing can be said of when they happened. Print the "
    "events with nvprof --print-gpu-trace --print-api-trace --csv, or keep all with nvprof -o FILE."
)
_MICROSECONDS = "Starts are printed to the microsecond, so that events can seem to overlap by one: print with -u us."
_UNSEEN = "Child processes need --profile-child-processes, and a program that crashes loses what was not yet written."
_NO_LINE_END = (
    "The file ends within a line: if it is cut off, later rows are missing, and the last one may not be as it was."
)
_ROUNDED = "Columns of text have five digits, so that short gaps between events are lost: print with --csv."


def read_printed(path: Path, options: ReadRequest) -> Iterator[tuple[str, pa.Table]]:
    """Yield the tables of nvprof's printed output; see :meth:`~traceviz.parsers.base.Reader.read`."""
    options.allowance.check(2 * path.stat().st_size, path.name)
    stream, content = TextStream(path, options.max_size), bytearray()
    for block in stream.blocks(_BLOCK):
        content += block
        options.allowance.check(len(content), path.name)
    text = bytes(content)
    del content
    empty = frozenset(name for line, names in _NOTHING.items() if line in text for name in names)
    printed = Printed(path, sections(text), processes(text), empty, warnings(text), stream.damage)
    yield from printed.tables(options)


@dataclass(frozen=True, slots=True, eq=False)
class Printed:
    """A file that nvprof printed.

    Args:
        path: The file.
        sections: Its tables.
        processes: The profiled processes that it lists.
        empty: Tables of the contract that it states to be empty.
        warnings: Warnings of nvprof, such as lost records.
        damage: Reason why the text ends early, as a sentence; empty if it does not.
    """

    path: Path
    sections: Sequence[Section]
    processes: Sequence[Process]
    empty: frozenset[str]
    warnings: Sequence[tuple[Severity, str]] = ()
    damage: str = ""

    def tables(self, options: ReadRequest) -> Iterator[tuple[str, pa.Table]]:
        """Yield the tables of the contract, ``notes`` last.

        Raises:
            DamagedTraceError: there is nothing to read.
        """
        if not self.sections and not self.empty:
            raise DamagedTraceError(
                f"{self.path.name} holds no result of nvprof.",
                "There are log lines of nvprof, but neither a summary nor a trace behind them.",
                "Copy the file again, with what nvprof wrote when the program had ended (it goes to stderr).",
            )
        notes, demangler = Notes(), Demangler()
        traces = [self._trace(section, notes) for section in self.sections if section.kind == "trace"]
        summaries = [section for section in self.sections if section.kind != "trace"]
        summed = [(section, row) for section in summaries for row in totals(section, demangler)]
        devices = self._devices(traces, [row for _, row in summed])
        events, span = self._events(traces, devices, demangler, notes)
        found = self._framework(events, summed)
        run = self._run(span, keep_private=options.keep_private) | {"framework": found.framework}
        yield "run", rows_to_table("run", [run], notes)
        yield from self._identity(traces, devices, notes)
        settings = evidence_table(found) if options.wants("settings") else None
        if settings is not None:
            yield "settings", settings
        for name in self._present(traces, events):
            if options.wants(name):
                yield name, events.table(name)
        if summaries and options.wants("totals"):
            yield "totals", rows_to_table("totals", self._totals(summed, devices), notes)
        self._note_limits(traces, events, notes)
        demangler.note(notes)
        yield "notes", notes.table()

    def _trace(self, section: Section, notes: Notes) -> TraceRows:
        if section.is_csv and not section.units:
            raise DamagedTraceError(
                f"A trace in {self.path.name} does not say in which units its times are.",
                "The second line of such a table, as in s,ms,,,KB, is missing.",
                "Print the trace again with nvprof --csv.",
            )
        rows = TraceRows.of(section)
        notes.add("row-damaged", "warning", "Rows of a trace that are cut or damaged, left out.", rows.damaged)
        return rows

    def _pids(self) -> list[int | None]:
        stated = sorted({section.pid for section in self.sections if section.pid is not None})
        started = sorted({process.pid for process in self.processes})
        return list(stated or started[:1]) or [None]

    def _process(self, section: Section) -> int:
        pids = self._pids()
        return pids.index(section.pid) if section.pid in pids else 0

    def _devices(self, traces: Sequence[TraceRows], summed: Sequence[Totals]) -> dict[str, int]:
        """Return surrogate ids of devices as they are printed, in order of their number and name."""
        printed = {name for rows in traces for name in rows.devices()} | {row.device for row in summed if row.device}
        known = sorted(printed, key=lambda name: (Device.of(name).ordinal or 0, name))
        return {name: index for index, name in enumerate(known)}

    def _events(
        self, traces: Sequence[TraceRows], devices: dict[str, int], demangler: Demangler, notes: Notes
    ) -> tuple[Tables, int]:
        """Return all event tables, and the span from the first event to the last."""
        window = window_of(np.concatenate([np.zeros(0, np.int64), *(rows.starts.to_numpy() for rows in traces)]))
        traces = [rows.plausible(window, notes) for rows in traces]
        bounds = [span for rows in traces if (span := rows.bounds())]
        zero = min((begin for begin, _ in bounds), default=0)
        tables = Tables()
        for rows in traces:
            process = self._process(rows.section)
            sort_rows(rows, Place(zero, process, devices), demangler, tables, notes)
        return tables, max((end for _, end in bounds), default=0) - zero

    def _framework(self, events: Tables, summed: Sequence[tuple[Section, Totals]]) -> Identified:
        kernels = {row.name for _, row in summed if row.kind == "kernel"}
        kernels |= {str(name) for part in events.parts.get("kernels", []) for name in part["name"].unique().to_pylist()}
        return identify_framework({"names": pa.array(sorted(kernels), pa.string())}, {})

    def _run(self, span_ns: int, *, keep_private: bool) -> dict[str, Any]:
        return {
            "format": "nvprof",
            "producer": "nvprof",
            "command": self.processes[0].command if keep_private and self.processes else None,
            "span_ns": span_ns,
            "reader": "nvprof csv" if all(section.is_csv for section in self.sections) else "nvprof text",
        }

    def _identity(
        self, traces: Sequence[TraceRows], devices: dict[str, int], notes: Notes
    ) -> Iterator[tuple[str, pa.Table]]:
        pids, commands = self._pids(), {process.pid: process.command for process in self.processes}
        callers = sorted({self._process(rows.section) for rows in traces})
        printed = map(Device.of, devices)
        tables = identity_tables(
            [{"pid": pid, "name": program(commands.get(pid or -1))} for pid in pids],
            [{"process_id": index, "tid": 0} for index, _ in enumerate(pids)] if callers else [],
            [{"kind": "gpu", "ordinal": device.ordinal, "name": device.name} for device in printed],
            notes,
        )
        yield from tables.items()

    def _present(self, traces: Sequence[TraceRows], events: Tables) -> tuple[str, ...]:
        """Return the event tables that the file could hold."""
        held = {name for name in _EVENTS if name in events.parts} | self.empty
        if any(rows.has_devices for rows in traces):
            held |= set(_WORK)
        return tuple(name for name in _EVENTS if name in held)

    def _totals(self, summed: Sequence[tuple[Section, Totals]], devices: dict[str, int]) -> list[dict[str, Any]]:
        times = ("total_ns", "mean_ns", "min_ns", "max_ns")
        return [
            {
                "process_id": self._process(section),
                "kind": row.kind,
                "name": row.name,
                "calls": row.calls,
                **dict(zip(times, row.times, strict=True)),
                "bytes": row.size,
                "device_id": devices.get(row.device or ""),
            }
            for section, row in summed
        ]

    def _note_limits(self, traces: Sequence[TraceRows], events: Tables, notes: Notes) -> None:
        """Note the limits of a printed trace, and nvprof's own warnings."""
        if self.damage:
            notes.add("damaged", "warning", self.damage)
        for severity, text in self.warnings:
            notes.add("profiler-diagnostic", severity, f"nvprof: {without_paths(text)}")
        if self.sections and not traces:
            notes.add("summary-only", "warning", _SUMMARY)
        for name, events_missing in (("kernels", "no kernels"), ("cuda_api", "no API calls")):
            if name in self.empty:
                notes.add("nothing-profiled", "warning", f"nvprof says that it saw {events_missing}. {_UNSEEN}")
        if self.sections and not self.damage and self.sections[-1].body.rpartition(b"\n")[2]:
            notes.add("file-cut", "info", _NO_LINE_END)
        if "cuda_api" in events.parts:
            notes.add("threads-unknown", "info", "The file names no threads: API calls are shown on one per process.")
        if any(not rows.section.is_csv for rows in traces):
            notes.add("times-rounded", "warning", _ROUNDED)
        elif any(rows.section.unit("Start") == "s" for rows in traces):
            notes.add("times-rounded", "info", _MICROSECONDS)
