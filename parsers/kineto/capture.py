"""Facts about a Chrome-format trace: program, versions, settings, and doubtful content."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from traceviz.core.sanitize import without_paths
from traceviz.parsers.kineto.categories import CATEGORIES, DEVICE_ROLES, Role
from traceviz.parsers.kineto.columns import Words
from traceviz.parsers.kineto.dialects import Dialect
from traceviz.parsers.kineto.events import MEASURED_WITH_COUNTERS, Events
from traceviz.parsers.kineto.raw import RawTrace
from traceviz.parsers.kineto.work.device import rows_on_devices
from traceviz.parsers.kineto.work.launches import Launches
from traceviz.parsers.shared.cupti import cuda_version
from traceviz.parsers.shared.notes import Notes
from traceviz.trace.plausible import note_durations, note_times
from traceviz.trace.rows_to_table import rows_to_table

_SIGNS = frozenset({"schemaVersion", "deviceProperties", "distributedInfo", "trace_id", "baseTimeNanoseconds"})
"""Members that only PyTorch's profiler writes."""
_ITS_CATEGORIES = frozenset(CATEGORIES) - {"", "fee", "node", "kernel", "runtime", "driver", "trace", "overhead"}
_OF_OTHERS = frozenset({"gpu_op"})
"""Categories of other programs that share some with PyTorch: Intel's unitrace also names host calls ``cpu_op``."""

_SECRET = re.compile(r"path|dir$|directory|host|user|command|argv|address|traceName|^metadata", re.IGNORECASE)
_NOT_SETTINGS = frozenset({"traceEvents", "deviceProperties"})
_LONGEST_SETTING = 1_000
"""Maximum characters of a setting's value: lists of ranks of large jobs are cut."""

_FIRST_PLAUSIBLE_NS = 946_684_800 * 10**9
"""The year 2000. Earlier times count from another moment than 1970, such as the start of the machine."""
_LAST_PLAUSIBLE_NS = 4_102_444_800 * 10**9
"""The year 2100."""

_FLOWS = frozenset("stf")
"""Phases of arrows between events; arguments state the same links."""

Header = Mapping[str, Any]


def is_pytorch(raw: RawTrace) -> bool:
    """Return whether PyTorch's profiler wrote the trace; any program can write this format."""
    labels = raw.events["category"].unique().drop_nulls().to_list() if raw.events.height else []
    known = {label.lower() for label in labels}
    return bool(_SIGNS & raw.header.keys()) or (not known.isdisjoint(_ITS_CATEGORIES) and known.isdisjoint(_OF_OTHERS))


def name_writer(raw: RawTrace, dialect: Dialect | None, *, pytorch: bool) -> tuple[str, str | None]:
    """Return the profiler that wrote the trace, and its framework."""
    if dialect is not None:
        return dialect.producer, dialect.framework
    if pytorch:
        return "PyTorch profiler", "PyTorch"
    return "VizTracer" if "viztracer_metadata" in raw.header else "Chrome trace format", None


def run(raw: RawTrace, events: Events, notes: Notes, writer: tuple[str, str | None]) -> pa.Table:
    """Return table ``run`` of a trace that :func:`name_writer` names."""
    header = raw.header
    version = header.get("schemaVersion")
    row = {
        "format": "kineto",
        "producer": writer[0],
        "source_schema": None if version is None else str(version),
        "framework": writer[1],
        "driver_version": _cuda_version(header.get("cuda_driver_version")),
        "cuda_version": _cuda_version(header.get("cuda_runtime_version")),
        "t0_unix_ns": _unix_time(events.zero_ns, header.get("baseTimeNanoseconds")),
        "span_ns": events.span_ns,
        "reader": f"kineto, {raw.decoder}" if raw.decoder else "kineto",
    }
    return rows_to_table("run", [row], notes)


def _cuda_version(value: Any) -> str | None:
    return cuda_version(value) if isinstance(value, int) and not isinstance(value, bool) and value >= 1000 else None


def _unix_time(first_ns: int, base_ns: Any) -> int | None:
    """Return the wall-clock time of the first event in ns, if known.

    If the file states no ``base_ns``, its times count from 1970 or from an unknown moment.
    """
    base = base_ns if isinstance(base_ns, int) and not isinstance(base_ns, bool) else 0
    candidates = (first_ns + base, first_ns)
    return next((time for time in candidates if _FIRST_PLAUSIBLE_NS <= time < _LAST_PLAUSIBLE_NS), None)


def settings(header: Header, notes: Notes, *, keep_private: bool) -> pa.Table | None:
    """Return table ``settings``: the members next to the events, except names of people and machines."""
    rows = [
        {"process_id": None, "key": key, "value": value if keep_private else without_paths(value)}
        for key, value in _flat(header)
        if keep_private or not _SECRET.search(key)
    ]
    return rows_to_table("settings", rows, notes) if rows else None


def _flat(members: Header, prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in members.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        elif value is not None and prefix + key not in _NOT_SETTINGS:
            text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
            yield prefix + key, text[:_LONGEST_SETTING]


def note_source(raw: RawTrace, notes: Notes) -> None:
    """Note the problems that the decoder found in the file, in the same order for each decoder."""
    if raw.damage:
        notes.add("damaged", "warning", raw.damage)
    for reason, count in sorted(raw.unusable.items()):
        notes.add("unusable-events", "warning", f"Events {reason} were left out.", count)
    for repair, count in sorted(raw.repaired.items()):
        notes.add("values-repaired", "info", f"Left out or mended, while their events are kept: {repair}.", count)
    for phase, count in sorted(raw.passed_over.items()):
        if phase not in _FLOWS:
            notes.add("unread-events", "info", f"Events of phase {phase} are not read.", count)


COUNTERS_ONLY = (
    "Counters of kernels were measured (CUPTI range profiler), which leaves out the kernels themselves: the ranges in "
    "the trace share its time evenly, and calls that launch take longer by far. Record again without profiler_metrics "
    "to see kernels and their times."
)

_SET_ASIDE = {
    "events-never-ended": ("warning", "Events begin and never end: their durations are not known."),
    "ends-without-begin": ("warning", "Events end that never began; they were left out."),
    "out-of-memory": ("warning", "An allocator of the framework had no memory left."),
    MEASURED_WITH_COUNTERS: ("warning", COUNTERS_ONLY),
    "counters-unread": ("info", "Counters are not read."),
}


def note_events(events: Events, notes: Notes, *, pytorch: bool) -> None:
    """Note events that became no row, and unknown categories."""
    for code, count in events.set_aside.items():
        severity, message = _SET_ASIDE[code]
        notes.add(code, severity, message, count)
    note_times(notes, "events", events.strays)
    note_durations(notes, "events", events.too_long)
    if not pytorch:
        notes.add("not-a-pytorch-trace", "info", NOT_FROM_PYTORCH)
        return
    label: Words = events.label.at(events.rows(Role.HOST))
    unknown = label.each(lambda word: word.lower() not in CATEGORIES, False, bool)
    if unknown.any():
        names = sorted(label.words[code] for code in set(label.codes[unknown].tolist()))
        shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
        message = f"Events of categories that traceviz does not know are taken for work of the host: {shown}."
        notes.add("unknown-categories", "info", message, int(unknown.sum()))


NOT_FROM_PYTORCH = (
    "The file has the format of Chrome's trace viewer, but PyTorch's profiler did not write it: its events are read as "
    "work of the host."
)
UNRESOLVED = (
    "Calls come from threads whose numbers are not those of the operating system: helper threads of a library, such as "
    "NCCL's, that the profiler does not know."
)


def note_links(launches: Launches, notes: Notes) -> None:
    """Note unknown threads, missing or ambiguous links between calls and device work, and events that do not nest."""
    events, identity = launches.events, launches.identity
    negative = identity.tables["threads"]["tid"].to_numpy() < 0
    unresolved = int(negative[identity.thread_id[events.rows(Role.API)]].sum())
    notes.add("threads-unresolved", "info", UNRESOLVED, unresolved)
    work = events.rows(*DEVICE_ROLES)
    lost = int(work.size - rows_on_devices(launches, work).size)
    notes.add("devices-unknown", "warning", "Device work does not say where it ran, and was left out.", lost)
    if events.rows(Role.API).size:
        message = "Device work whose call the capture does not hold: it was set off before the capture began, or by "
        notes.add("launches-missing", "info", message + "a graph.", launches.orphans)
    message = "Calls share a correlation id with an earlier one: work belongs to the last call before it."
    notes.add("correlations-repeated", "warning", message, launches.repeated)
    message = "Events begin within the one before them on their thread and end after it: they are taken as neighbours."
    notes.add("events-overlapping", "info", message, launches.forest.overlapping)


def note_device(events: Events, notes: Notes, *, device: bool, pytorch: bool) -> None:
    """Note that no device was recorded, or that an available one did nothing."""
    if pytorch and not events.rows(*DEVICE_ROLES).size and not events.is_counted_only:
        notes.add(*(("device-idle", "warning", NOTHING_RAN) if device else ("no-device", "info", NO_DEVICE)))


NO_DEVICE = "No device was recorded: the program ran on the CPU, or activities=[CPU, CUDA] was not asked for."
NOTHING_RAN = (
    "The capture could record a device, but none did anything in it: the recorded steps launched nothing, or the "
    "profiler had no access to the device."
)
