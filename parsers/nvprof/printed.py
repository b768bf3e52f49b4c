"""Reader of nvprof's printed output: traces of the GPU and of API calls, and summaries, as CSV or as text."""

from __future__ import annotations

import re
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
from traceviz.parsers.nvprof.printed_text import (
    COUNTS,
    SIZES,
    TIMES,
    Process,
    Section,
    Severity,
    csv_cells,
    processes,
    sections,
    warnings,
)
from traceviz.parsers.nvprof.printed_trace import Device, Place, Tables, TraceRows, parse_quantities, sort_rows
from traceviz.parsers.shared.events.owners import identity_tables
from traceviz.parsers.shared.frameworks import evidence_table, identify_framework
from traceviz.parsers.shared.json.stream import TextStream
from traceviz.parsers.shared.notes import Notes
from traceviz.trace.plausible import window_of
from traceviz.trace.rows_to_table import rows_to_table

GPU, API = "GPU activities", "API calls"
_KINDS = {
    API: (("cuda", "runtime"), ("cu", "driver")),
    GPU: (("[CUDA memcpy", "copy"), ("[CUDA memset", "memset"), ("", "kernel")),
}
"""Values of ``totals.kind`` by the type of a row and the prefix of its name."""
_TYPED = re.compile(r"^\s*(?P<type>[A-Za-z][^:%]*):\s+(?P<numbers>[0-9.]+%.*)$")
_CELLS = re.compile(r"\s{2,}")
_CPU_FAULTS = re.compile(r"^Total CPU Page faults: (?P<count>\d{1,18})")


@dataclass(frozen=True, slots=True)
class Totals:
    """One row of a summary.

    Args:
        kind: Value of ``totals.kind``.
        name: Name as printed, demangled.
        calls: Number of calls.
        times: Total, mean, minimum and maximum in nanoseconds.
        size: Total bytes.
        device: Device as printed.
    """

    kind: str
    name: str
    calls: int | None
    times: tuple[int | None, int | None, int | None, int | None] = (None, None, None, None)
    size: int | None = None
    device: str | None = None


def totals(section: Section, demangler: Demangler) -> list[Totals]:
    """Return the rows of a summary, in their order: one row per name, not per event.

    Each number can have its own unit. Of the rows of one type, only the first states the type::

        ==9== Profiling result:
                    Type  Time(%)      Time     Calls       Avg       Min       Max  Name
         GPU activities:   99.28%  1.4175ms         1  1.4175ms  1.4175ms  1.4175ms  [CUDA memcpy HtoD]
                            0.41%  5.9200us         1  5.9200us  5.9200us  5.9200us  reduce(float*, int)
              API calls:   97.00%  180.20ms         2  90.100ms  4.4000us  180.20ms  cudaMalloc

    Before CUDA 9 there was no type, and the line before the header stated the kind of the rows.
    """
    if section.kind != "unified_memory":
        return list(_summary(section, demangler))
    cpu_faults = [match for line in section.lines() if (match := _CPU_FAULTS.match(line))]
    return [
        *_migrations(section),
        *(Totals("unified_memory", "CPU page faults", int(match["count"])) for match in cpu_faults),
    ]


def _summary(section: Section, demangler: Demangler) -> Iterator[Totals]:
    kind = API if "API" in section.title else GPU
    rows = list(_rows(section))
    names = demangler.demangled(cells.get("Name", "") for cells in rows)
    for cells, name in zip(rows, names, strict=True):
        stated = cells.get("Type")
        kind = stated or kind
        times = [_number(cells.get(label, ""), section.unit(label)) for label in ("Time", "Avg", "Min", "Max")]
        calls = _number(cells.get("Calls", ""), "", COUNTS)
        if calls is not None and times[0] is not None:
            word = next((word for prefix, word in _KINDS.get(kind, ()) if name.startswith(prefix)), "other")
            yield Totals(word, name, calls, (times[0], times[1], times[2], times[3]))


def _migrations(section: Section) -> Iterator[Totals]:
    """Yield migrations by direction. The printed size of page faults is their number."""
    for cells in _rows(section):
        name = cells.get("Name") or cells.get("", "")
        if not name:
            continue
        calls = _number(cells.get("Count", ""), "", COUNTS)
        size = _number(cells["Total Size"], section.unit("Total Size"), SIZES)
        if calls is None and "fault" in name:
            calls, size = size, None
        time = _number(cells["Total Time"], section.unit("Total Time"))
        device = cells.get("Device") or section.device
        yield Totals("unified_memory", name, calls, (time, None, None, None), size, device)


def _rows(section: Section) -> Iterator[dict[str, str]]:
    """Yield the cells of each row by label; other lines are left out."""
    for line in section.lines():
        cells = _cells(line, section)
        if len(cells) == len(section.labels):
            yield dict(zip(section.labels, ("" if cell == "-" else cell for cell in cells), strict=True))


def _cells(line: str, section: Section) -> list[str]:
    """Return the cells of a line. In text, they are two spaces apart; a type, on first rows only, ends with a colon."""
    if section.is_csv:
        return [] if line.startswith("=") else csv_cells(line)
    count = len(section.labels)
    if section.labels[0] != "Type":
        return _CELLS.split(line.strip(), count - 1)
    match = _TYPED.match(line)
    kind, numbers = (match["type"].strip(), match["numbers"]) if match else ("", line)
    return [kind, *_CELLS.split(numbers.strip(), count - 2)]


def _number(text: str, unit: str, factors: dict[str, float] = TIMES) -> int | None:
    value: Any = parse_quantities(pa.array([text], pa.string()), factors, unit)[0].as_py()
    return None if value is None else int(value)


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
        printed = {name for rows in traces for name in rows.devices()}
        printed |= {row.device for _, row in summed if row.device}
        known = sorted(printed, key=lambda name: (Device.of(name).ordinal or 0, name))
        devices = {name: index for index, name in enumerate(known)}
        events, span = self._events(traces, devices, demangler, notes)
        kernels = {row.name for _, row in summed if row.kind == "kernel"}
        kernels |= {str(name) for part in events.parts.get("kernels", []) for name in part["name"].unique().to_pylist()}
        found = identify_framework({"names": pa.array(sorted(kernels), pa.string())}, {})
        run = {
            "format": "nvprof",
            "producer": "nvprof",
            "framework": found.framework,
            "command": self.processes[0].command if options.keep_private and self.processes else None,
            "span_ns": span,
            "reader": "nvprof csv" if all(section.is_csv for section in self.sections) else "nvprof text",
        }
        yield "run", rows_to_table("run", [run], notes)
        yield from self._identity(traces, devices, notes)
        settings = evidence_table(found) if options.wants("settings") else None
        if settings is not None:
            yield "settings", settings
        possible = {*events.parts, *self.empty, *(_WORK if any(rows.has_devices for rows in traces) else ())}
        for name in _EVENTS:
            if name in possible and options.wants(name):
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
