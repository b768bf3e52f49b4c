"""Reader of the databases that ``nvprof -o`` writes, of every version from CUDA 5 to CUDA 12."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from traceviz.core.errors import DamagedTraceError
from traceviz.parsers.base import ReadRequest
from traceviz.parsers.nvprof import constants
from traceviz.parsers.nvprof.demangle import Demangler
from traceviz.parsers.nvprof.events import event_reader
from traceviz.parsers.nvprof.identity import Identity, Survey, identify_all, take_survey
from traceviz.parsers.nvprof.mapping import EVENT_TABLES, MARKERS, OPTIONAL
from traceviz.parsers.nvprof.nvtx import read_markers
from traceviz.parsers.nvprof.raw import MIGRATIONS, NvprofTables
from traceviz.parsers.nvprof.sniff import is_session
from traceviz.parsers.shared.arrays.arrow import StringArray, pc
from traceviz.parsers.shared.events.names import look_up
from traceviz.parsers.shared.events.prescan import present
from traceviz.parsers.shared.frameworks import evidence_table, identify_framework, pool
from traceviz.parsers.shared.notes import Notes
from traceviz.parsers.shared.sqlite.file import unread_log
from traceviz.trace import schema
from traceviz.trace.names.framework_signs import SignKind
from traceviz.trace.plausible import LONGEST_NS, elapsed, note_times
from traceviz.trace.rows_to_table import rows_to_table


def read_sqlite(path: Path, options: ReadRequest) -> Iterator[tuple[str, pa.Table]]:
    """Yield the tables of a database; see :meth:`~traceviz.parsers.base.Reader.read`."""
    with path.open("rb") as file:
        if is_session(file.read(1 << 16)):
            raise DamagedTraceError(
                f"{path.name} holds no recording.",
                "It is a session of NVIDIA's Visual Profiler: an XML file with the layout of its window and the "
                "settings of the program, while the events were in another file, or were never saved.",
                "Name the file that nvprof wrote (nvprof -o FILE), or record again: nsys profile PROGRAM.",
            )
    with NvprofTables(path) as raw:
        yield from _tables(raw, options)


def _tables(raw: NvprofTables, options: ReadRequest) -> Iterator[tuple[str, pa.Table]]:
    """Yield the tables of a database, ``notes`` last."""
    notes, demangler = Notes(), Demangler()
    for code, severity, message in unread_log(raw.path):
        notes.add(code, severity, message)
    version = _version(raw, notes)
    survey = take_survey(raw, notes)
    identity = identify_all(raw, survey, notes)
    kernels = look_up(raw, survey.kernels).to_pylist()
    names: dict[SignKind, StringArray] = {
        "names": pa.array(demangler.demangled(name for name in kernels if name), pa.string()),
        "ranges": pool(raw),
        "programs": identity.tables["processes"]["name"].combine_chunks(),
    }
    found = identify_framework(names, {})
    is_unix = constants.FIRST_UNIX_NS <= survey.clock.zero_ns < constants.LAST_UNIX_NS
    run = {
        "format": "nvprof",
        "producer": "nvprof",
        "framework": found.framework,
        "source_schema": None if version is None else str(version),
        "command": identity.command if options.keep_private else None,
        "t0_unix_ns": survey.clock.zero_ns if is_unix else None,
        "span_ns": survey.clock.last_ns - survey.clock.zero_ns,
        "reader": "nvprof sqlite",
    }
    yield "run", rows_to_table("run", [run], notes)
    yield from identity.tables.items()
    settings = evidence_table(found) if options.wants("settings") else None
    if settings is not None:
        yield "settings", settings
    events = event_reader(raw, survey, identity, notes, options, demangler=demangler)
    for table, sources in EVENT_TABLES.items():
        if options.wants(table) and any(present(raw, sources)) and _could_hold(table, survey, notes):
            yield table, events.read(table, sources)
    if options.wants("nvtx") and "timestamp" in raw.columns(MARKERS.table):
        yield "nvtx", read_markers(raw, survey, identity, notes)
    if options.wants("samples") and has_samples(raw):
        yield "samples", read_samples(raw, identity, survey.clock.zero_ns, notes)
    _note_faults(raw, notes)
    _note_replays(raw, survey, notes)
    demangler.note(notes)
    yield "notes", notes.table()


def _could_hold(table: str, survey: Survey, notes: Notes) -> bool:
    """Return whether the capture could contain ``table``, even without rows."""
    rows = survey.rows[table]
    if table in OPTIONAL and not rows:
        return False
    if table == "cuda_api" and not rows and any(survey.rows[name] for name in schema.DEVICE_WORK):
        notes.add("api-not-recorded", "info", "Calls of the CUDA API were not recorded (--profile-api-trace none).")
        return False
    return True


def _version(raw: NvprofTables, notes: Notes) -> int | None:
    rows = raw.small("Version", ("version",))
    version: int | None = rows[0]["version"] if rows else None
    if version is None:
        notes.add("version-missing", "info", "The file does not state its version; it was read by the names in it.")
    elif version not in constants.KNOWN_VERSIONS:
        message = f"Version {version} of the format is not known; what its tables have in common with others was read."
        notes.add("version-unknown", "warning", message)
    return version


def _note_faults(raw: NvprofTables, notes: Notes) -> None:
    """Count page faults and similar counters: they are not copies, and the contract has no table for them."""
    if not raw.columns(MIGRATIONS) >= {"counterKind", "value"}:
        return
    for kind, events in constants.FAULTS.items():
        counted = [
            pc.sum(batch.filter(pc.equal(batch["counterKind"], kind))["value"]).as_py() or 0
            for batch in raw.stream(MIGRATIONS, ["counterKind", "value"])
        ]
        notes.add("unified-memory", "info", f"Unified memory: {events}.", sum(counted))


_MEASURED = tuple(constants.PREFIX + name for name in ("METRIC", "METRIC_INSTANCE", "EVENT", "EVENT_INSTANCE"))
REPLAYED = (
    "nvprof measured counters of kernels: it ran them one at a time and repeated each, so the time between them is its "
    "own."
)


def _note_replays(raw: NvprofTables, survey: Survey, notes: Notes) -> None:
    """Note that nvprof repeated kernels to measure their counters (--metrics, --events, --analysis-metrics)."""
    measured = any(
        batch.num_rows for name in _MEASURED if "id" in raw.columns(name) for batch in raw.stream(name, ["id"])
    )
    if measured and survey.rows["kernels"]:
        notes.add("kernels-replayed", "warning", REPLAYED, survey.rows["kernels"])


_TABLE = constants.PREFIX + "ENVIRONMENT"


@dataclass(frozen=True, slots=True)
class _Reading:
    """One 4-byte number in the data of a record: its offset, its metric, and the factor to its unit."""

    offset: int
    metric: str
    unit: str
    factor: float = 1.0


_READINGS = {
    constants.SPEED: (_Reading(0, "SM clock", "MHz"), _Reading(4, "memory clock", "MHz")),
    constants.TEMPERATURE: (_Reading(0, "GPU temperature", "°C"),),
    constants.POWER: (_Reading(0, "GPU power", "W", 0.001), _Reading(4, "GPU power limit", "W", 0.001)),
    constants.COOLING: (_Reading(0, "fan speed", "%"),),
}
"""Members of the union ``data`` of ``CUpti_ActivityEnvironment`` by kind."""


def has_samples(raw: NvprofTables) -> bool:
    """Return whether the capture measured the machine."""
    return bool(_rows(raw))


def read_samples(raw: NvprofTables, identity: Identity, zero_ns: int, notes: Notes) -> pa.Table:
    """Return table ``samples``: clocks, temperature, power and fans of the GPU (``--system-profiling on``)."""
    devices = {number: index for index, number in enumerate(identity.devices.to_pylist())}
    rows = _rows(raw)
    # The file may state any time: readings far from the events are left out.
    times = np.array([row["timestamp"] for row in rows], np.int64)
    inside = np.abs(elapsed(np.full(times.size, zero_ns), times)) <= LONGEST_NS
    note_times(notes, "samples", times[~inside])
    samples = (
        {
            "start_ns": row["timestamp"] - zero_ns,
            "device_id": devices.get(row["deviceId"]),
            "metric": reading.metric,
            "unit": reading.unit,
            "value": int.from_bytes(stored, "little") * reading.factor,
        }
        for row, is_inside in zip(rows, inside.tolist(), strict=True)
        if is_inside
        for reading in _READINGS[row["environmentKind"]]
        if len(stored := (row["data"] or b"")[reading.offset : reading.offset + 4]) == 4
    )
    return rows_to_table("samples", samples, notes)


def _rows(raw: NvprofTables) -> list[dict[str, Any]]:
    rows = raw.small(_TABLE, ("deviceId", "timestamp", "environmentKind"), blobs=("data",))
    return [row for row in rows if row["timestamp"] and row["environmentKind"] in _READINGS]
