"""Merging of the sources of one run into one trace: common numbers, one clock, one owner of each table.

Merging is pure, and does not depend on the order in which the sources are given. See :mod:`.owners` for the source of
each table, :mod:`.clock` for the clock, and :mod:`.identity` for processes, threads and devices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

import pyarrow as pa

from traceviz.core.errors import UsageError
from traceviz.core.units import format_ns
from traceviz.parsers.ranks.identity import Identity, Rows, run_row
from traceviz.parsers.ranks.merge import Clock, events
from traceviz.parsers.run.clock import Extent, RunClock, common_clock
from traceviz.parsers.run.identity import identify_run
from traceviz.parsers.run.manifest import RunManifest
from traceviz.parsers.run.owners import DEVICE_TABLES, Owners, choose_owners, in_order_of_trust
from traceviz.parsers.run.sources import Source, as_number, is_tracing
from traceviz.parsers.shared.arrays.arrow import ChunkedArray, pc
from traceviz.parsers.shared.events.columns import with_column
from traceviz.parsers.shared.notes import Notes
from traceviz.trace import schema
from traceviz.trace.plausible import LONGEST_NS
from traceviz.trace.rows_to_table import rows_to_table

_NOTICEABLE = 0.9
"""Maximum share of a run covered by the profilers for which a note is written."""
_LEAST_LOST_NS = 1_500_000_000
"""Minimum time between a sampler's end and the program's end for a note: samplers write every one or two seconds."""
_SILENCED = ("no-device",)
"""Notes of sources that lack data that another source has recorded."""
_BY_PROCESS = ("stacks", "stack_frames", "phases", "metrics")
"""Tables that each process of the program records separately."""
_OF_MANIFEST = {"driver_version": "machine.driver", "cuda_version": "version.cuda"}
"""Facts taken from the manifest if no source states them, and their keys in it."""
_FIRST_KNOWN = ("framework", "driver_version", "cuda_version", "host")


@dataclass(frozen=True, slots=True, eq=False)
class _Merge:
    """Decisions that precede the merging of rows."""

    sources: tuple[Source, ...]
    owners: Owners
    clock: RunClock
    identity: Identity
    manifest: RunManifest
    profiled: bool


def merge_sources(
    sources: Sequence[Source], manifest: RunManifest, notes: Notes | None = None, *, keep_private: bool = False
) -> Iterator[tuple[str, pa.Table]]:
    """Yield the tables of the trace that ``sources`` are parts of, ``notes`` last.

    Args:
        sources: Recordings of one run's collectors; their tables are taken out as they are merged.
        manifest: The manifest of the run.
        notes: Notes on it so far.
        keep_private: Store the command line.

    Yields:
        Name and table. Times are nanoseconds since the first event of the sources that trace; ``samples`` may lie
        before and after. Table ``windows`` lists time range and source of each other table.

    Raises:
        UsageError: there is no source.
        SchemaError: a table does not match its declaration.
    """
    if not sources:
        raise UsageError("There is nothing to merge.", fix="Record something first.")
    noted = notes or Notes()
    merge = _plan_merge(sources, manifest, noted)
    labels = [(source.collector, source.tables.pop("notes", None)) for source in merge.sources]
    settings = _settings(merge)
    windows = _windows(merge)
    _note_ended_early(merge, noted)
    yield "run", rows_to_table("run", [_run_row(merge, keep_private=keep_private)], noted)
    yield "devices", rows_to_table("devices", merge.identity.devices)
    yield "processes", rows_to_table("processes", merge.identity.processes)
    yield "threads", rows_to_table("threads", merge.identity.threads)
    parts = [_take_owned(source, merge.owners) for source in merge.sources]
    _complete_program(parts, merge)
    starts = tuple(merge.clock.starts[place] for place in range(len(parts)))
    yield from events(parts, merge.identity, Clock(starts, merge.clock.t0_unix_ns, merge.clock.span_ns, []))
    yield "windows", windows
    yield "settings", settings
    manifest.notes(noted)
    _note_sources(merge, labels, noted)
    yield "notes", noted.table()


def _plan_merge(sources: Sequence[Source], manifest: RunManifest, notes: Notes) -> _Merge:
    """Return the merge: sources in order of trust, their common clock, and their common numbers."""
    ordered = in_order_of_trust(sources)
    ran = (manifest.started_unix_ns, manifest.ended_unix_ns)
    clock = common_clock(ordered, ran, notes)
    kept = tuple(source for place, source in enumerate(ordered) if place in clock.starts)
    starts = dict(enumerate(start for _, start in sorted(clock.starts.items())))
    owners = choose_owners(kept)
    profiled = any(map(is_tracing, kept))
    return _Merge(kept, owners, replace(clock, starts=starts), identify_run(kept), manifest, profiled)


def _run_row(merge: _Merge, *, keep_private: bool) -> dict[str, Any]:
    """Return facts of the most trusted source that knows them, and the producers of all sources."""
    runs = [run_row(source.tables) for source in merge.sources]
    known = {name: next((run[name] for run in runs if run.get(name)), None) for name in _FIRST_KNOWN}
    stated = merge.manifest.settings()
    for name, key in _OF_MANIFEST.items():
        known[name] = known[name] or stated.get(key)
    alone = len(runs) == 1  # with several, each name is followed by its own version
    names = ("producer",) if alone else ("producer", "producer_version")
    producers = (" ".join(run[name] for name in names if run.get(name)) for run in runs)
    return {
        **known,
        "format": "run",
        "producer": _joined(producers) or "traceviz collect",
        "producer_version": runs[0].get("producer_version") if alone else None,
        "source_schema": _joined(run.get("source_schema") for run in runs),
        "command": merge.manifest.command if keep_private else None,
        "t0_unix_ns": merge.clock.t0_unix_ns,
        "span_ns": merge.clock.span_ns,
        "reader": f"run: {_joined(run.get('reader') for run in runs)}",
    }


def _joined(values: Any) -> str | None:
    return " + ".join(dict.fromkeys(str(value) for value in values if value)) or None


# Events


def _complete_program(parts: Sequence[dict[str, pa.Table]], merge: _Merge) -> None:
    """Extend the phase of the program itself to its start and its end, which its hooks do not see.

    ::

        traceviz collect   |=============================|
        hooks                |-------------------------|       Python has started; it still tidies up
    """
    pid, zero = as_number(merge.manifest.pid), merge.clock.t0_unix_ns
    if zero is None or pid is None:
        return
    recorded = []  # several if the program replaced itself by another one
    for place, (source, part) in enumerate(zip(merge.sources, parts, strict=True)):
        processes = source.tables["processes"]
        numbers = processes.filter(pc.equal(processes["pid"], pid))["process_id"]
        if "phases" in part and len(numbers):
            phases = part["phases"]
            is_program = pc.equal(phases["kind"].cast(pa.string()), "program")
            whole = pc.and_(is_program, pc.is_in(phases["process_id"], numbers.combine_chunks()))
            starts = pc.add(phases["start_ns"], merge.clock.starts[place])
            recorded.append((pc.min(starts.filter(whole)).as_py() or 0, place, whole))
    for start, place, whole in recorded:
        ran = (merge.manifest.started_unix_ns, merge.manifest.ended_unix_ns)
        own_zero = zero + merge.clock.starts[place]
        # Unknown and implausible times extend nothing.
        first, last = (
            time - own_zero if time is not None and abs(time - own_zero) <= LONGEST_NS else None for time in ran
        )
        is_first, is_last = start == min(recorded, key=itemgetter(0))[0], start == max(recorded, key=itemgetter(0))[0]
        phases = parts[place]["phases"]
        own = pc.is_in(phases["process_id"], phases["process_id"].filter(whole).combine_chunks())
        unsampled = pc.and_(pc.equal(phases["kind"].cast(pa.string()), "unsampled"), own)
        phases = _extend(phases, whole, first if is_first else None, last if is_last else None)
        parts[place]["phases"] = _extend(phases, unsampled, None, last if is_last else None)


def _extend(phases: pa.Table, rows: ChunkedArray, first: int | None, last: int | None) -> pa.Table:
    """Return ``phases`` with ``rows`` extended to cover ``first`` to ``last``."""
    start, end = phases["start_ns"], pc.add(phases["start_ns"], phases["dur_ns"])
    begin = start if first is None else pc.if_else(rows, pc.min_element_wise(start, first), start)
    stop = end if last is None else pc.if_else(rows, pc.max_element_wise(end, last, skip_nulls=False), end)
    return with_column(with_column(phases, "start_ns", begin), "dur_ns", pc.subtract(stop, begin))


def _take_owned(source: Source, owners: Owners) -> dict[str, pa.Table]:
    """Return the tables that are taken from a source, which releases all its tables."""
    kept = {}
    for name in [name for name in source.tables if name not in schema.REQUIRED]:
        table = source.tables.pop(name)
        if owners.takes(source.collector, name):
            if (
                name not in DEVICE_TABLES
                and owners.device not in {None, source.collector}
                and "correlation_id" in table.column_names
            ):  # the ids refer to device work, which is taken from another source
                table = with_column(table, "correlation_id", pa.nulls(table.num_rows, pa.int64()))
            kept[name] = table
    return kept


def _windows(merge: _Merge) -> pa.Table:
    """Return the time range of each table, if the sources state it."""
    ranges: list[tuple[int, int, str, str]] = []
    of_processes: dict[tuple[str, str], tuple[int, int]] = {}  # one range for all: a loader has hundreds of workers
    for place, source in enumerate(merge.sources):
        start = merge.clock.starts[place]
        end = start + Extent.of(source).span_ns
        for name in schema.TABLES:
            if name not in source.tables or not merge.owners.takes(source.collector, name):
                continue
            if name in _BY_PROCESS:
                first, last = of_processes.get((name, source.collector), (start, end))
                of_processes[name, source.collector] = min(first, start), max(last, end)
            else:
                ranges.append((start, end, name, source.collector))
    ranges += [(start, end, *key) for key, (start, end) in of_processes.items()]
    rows = [
        {"start_ns": start, "dur_ns": end - start, "recorded": name, "source": collector}
        for start, end, name, collector in sorted(ranges, key=lambda row: (row[0], row[2], row[3]))
    ]
    return rows_to_table("windows", rows)


# Settings and notes


def _settings(merge: _Merge) -> pa.Table:
    """Return settings of the manifest and the sources; on machine and variables, the manifest takes precedence."""
    stated = merge.manifest.settings()
    rows: Rows = [{"process_id": None, "key": key, "value": value} for key, value in stated.items()]
    for place, source in enumerate(merge.sources):
        numbers = merge.identity.members[place].processes.to_pylist()
        table = source.tables.pop("settings", None)
        for row in table.to_pylist() if table is not None else []:
            if row["key"] not in stated:
                process = row["process_id"]
                rows.append({**row, "process_id": None if process is None else numbers[process]})
    unique = {(row["process_id"], row["key"], row["value"]): row for row in rows}
    return rows_to_table("settings", list(unique.values()))


def _note_sources(merge: _Merge, labels: Sequence[tuple[str, pa.Table | None]], notes: Notes) -> None:
    """Note the sources of the tables, their share of the run, and the sources' own notes."""
    notes.add("tables-from", "info", merge.owners.describe())
    _note_cover(merge, notes)
    several = len({collector for collector, _ in labels}) > 1
    seen = set()
    for collector, table in labels:
        for row in table.to_pylist() if table is not None else []:
            if row["code"] in _SILENCED and merge.owners.device not in {None, collector}:
                continue
            message = f"{collector}: {row['message']}" if several else row["message"]
            if (row["code"], message) not in seen:
                seen.add((row["code"], message))
                notes.add(row["code"], row["severity"], message, row["count"])


def _note_cover(merge: _Merge, notes: Notes) -> None:
    """Note that the profilers recorded only a part of the run, which is the part that the report judges.

    ::

        program   |------------------------------------------|
        nsys          |====================================|      the span: ranges, system calls, devices
        torch                |=======|                            steps and operations
    """
    begin, end = merge.manifest.started_unix_ns, merge.manifest.ended_unix_ns
    if not merge.profiled:
        return
    span, steps = merge.clock.span_ns, None
    own = [
        (merge.clock.starts[place], Extent.of(source).span_ns)
        for place, source in enumerate(merge.sources)
        if merge.owners.takes(source.collector, "steps")
    ]
    if own:
        steps = max(start + length for start, length in own) - min(start for start, _ in own)
    message = ""
    if begin is not None and end is not None and span < _NOTICEABLE * (end - begin):
        message = f"The profilers recorded {format_ns(span)} of the {format_ns(end - begin)} that the program ran: "
        message += "what is said of steps, operations and devices is about that part. "
    if steps is not None and steps < _NOTICEABLE * span:
        message += f"Steps and operations were recorded for {format_ns(steps)} of these {format_ns(span)}."
    if message:
        notes.add("profiled-window", "info", message.strip())


def _note_ended_early(merge: _Merge, notes: Notes) -> None:
    """Note recorders that ended before the program, for any reason, and how much of the run they recorded."""
    began, ended, zero = merge.manifest.started_unix_ns, merge.manifest.ended_unix_ns, merge.clock.t0_unix_ns
    if began is None or ended is None or zero is None:
        return
    for place, source in enumerate(merge.sources):
        until = _sampled_until(source, merge.manifest.pid)
        if until is None:
            continue
        until_unix_ns = zero + merge.clock.starts[place] + until
        if _LEAST_LOST_NS < ended - until_unix_ns <= LONGEST_NS:
            message = f"{source.collector} ended early: it recorded {format_ns(max(until_unix_ns - began, 0))} of the "
            message += f"{format_ns(ended - began)} that the program ran. The rest of the run is not sampled by it."
            notes.add("recorder-ended-early", "warning", message)


def _sampled_until(source: Source, pid: int | None) -> int | None:
    """Return the end of a source's samples on its own clock; ``None`` if it has none, or sampled to the end."""
    if "samples" in source.tables:
        return Extent.of(source).span_ns
    phases = source.tables.get("phases")
    if phases is None or pid not in source.tables["processes"]["pid"].to_pylist():
        return None
    unsampled = phases.filter(pc.equal(phases["kind"].cast(pa.string()), "unsampled"))
    return int(pc.min(unsampled["start_ns"]).as_py()) if unsampled.num_rows else None
