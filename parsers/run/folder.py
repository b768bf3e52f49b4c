"""The recordings of a run folder, merged into the tables of one trace."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import polars as pl
import pyarrow as pa

from traceviz.core.errors import TracevizError, UnknownFormatError
from traceviz.parsers.base import ReadRequest
from traceviz.parsers.run.layout import MOST_FILES, RAW, TABLES
from traceviz.parsers.run.manifest import Recorder, RunManifest, read_manifest
from traceviz.parsers.run.merge import merge_sources
from traceviz.parsers.run.owners import DEVICE_TABLES
from traceviz.parsers.run.sources import (
    Readers,
    Source,
    as_number,
    ranks_of_processes,
    read_source,
    recordings_in,
)
from traceviz.parsers.shared.arrays.arrow import pc
from traceviz.parsers.shared.events.columns import with_column
from traceviz.parsers.shared.notes import Notes
from traceviz.trace import schema
from traceviz.trace.rows_to_table import rows_to_table
from traceviz.untrusted.json_documents import read_object


def read_run(folder: Path, options: ReadRequest, readers: Readers) -> Iterator[tuple[str, pa.Table]]:
    """Merge the recordings under ``raw/`` of a run folder into the tables of one trace, ``notes`` last.

    A run that was stopped without a readable recording becomes a trace without events: its end is known.

    Args:
        folder: The run folder. It is only read.
        options: The request.
        readers: Readers of the formats in it.

    Raises:
        DamagedTraceError: the folder has no readable manifest, or all its recordings are damaged.
        MissingToolError: a program is missing that decodes the only recording.
        UnknownFormatError: nothing was recorded of a program that ended normally.
    """
    manifest, notes = read_manifest(folder), Notes()
    request = options
    if options.tables is not None and not options.tables.isdisjoint(DEVICE_TABLES):
        # All device tables are needed if one is: together they determine the source.
        request = replace(options, tables=options.tables | set(DEVICE_TABLES))
    sources = _sources(folder, manifest, readers, request, notes)
    manifest = _with_failures(manifest, {source.collector for source in sources}, notes)
    keep_private = options.keep_private
    tables = (
        merge_sources(sources, manifest, notes, keep_private=keep_private)
        if sources
        else unrecorded_run(manifest, notes, keep_private=keep_private)
    )
    for name, table in tables:
        if name in schema.REQUIRED or options.wants(name):
            yield name, table


_RECORDING = frozenset({"jax", "nsys", "resources", "stacks", "tensorflow", "torch"})
"""Collectors that leave recordings; the ranges of others are in the recording of nsys."""


def _with_failures(manifest: RunManifest, readable: Collection[str], notes: Notes) -> RunManifest:
    """Return the manifest with state "failed" for collectors whose recordings are cut off or were never saved."""

    def with_failure(recorder: Recorder) -> Recorder:
        if recorder.name not in _RECORDING or recorder.name in readable:
            return recorder
        if recorder.state == "recording":
            message = f"Collector {recorder.name}: it had saved nothing yet when the recording was ended."
            notes.add("recording-lost", "warning", message)
        failed = recorder.state in {"recorded", "recording"}
        return msgspec.structs.replace(recorder, state="failed") if failed else recorder

    return msgspec.structs.replace(manifest, recorders=tuple(with_failure(recorder) for recorder in manifest.recorders))


def _sources(folder: Path, manifest: RunManifest, readers: Readers, options: ReadRequest, notes: Notes) -> list[Source]:
    """Return all readable recordings; note the others.

    Raise if there is none, and the program ended normally.
    """
    recordings = recordings_in(folder, manifest, readers, notes)
    outcomes = [read_source(recording, folder, options, notes) for recording in recordings]
    sources = [outcome for outcome in outcomes if isinstance(outcome, Source)]
    errors = [outcome for outcome in outcomes if isinstance(outcome, TracevizError)]
    if not sources and not manifest.was_stopped:
        raise errors[0] if errors else _nothing(folder, manifest)
    ranks = ranks_of_processes(folder)
    for source in sources:  # fill in ranks by pid: nsys knows none
        processes = source.tables["processes"]
        rows = processes.to_pylist()
        known = [ranks.get(row["pid"]) if row["rank"] is None else row["rank"] for row in rows]
        column = pa.chunked_array([pa.array(known, pa.int32())])
        source.tables["processes"] = with_column(processes, "rank", column)
    complete = complete_steps(folder)
    for tables in (source.tables for source in sources if "nvtx" in source.tables):
        tables["nvtx"], count = name_unfinished(tables["nvtx"], tables["processes"], complete)
        message = "Steps that had begun when an epoch or the program ended are none: they are named 'unfinished step'."
        notes.add("unfinished-steps", "info", message, count)
    return sources


def _nothing(folder: Path, manifest: RunManifest) -> UnknownFormatError:
    if not (folder / RAW).is_dir():
        return UnknownFormatError(
            f"{folder} holds neither {TABLES}/ nor {RAW}/.", "The run's data was removed.", "Record again."
        )
    why = " ".join(manifest.problems) or f"Its {RAW}/ holds no trace (status: {manifest.status or 'unknown'})."
    return UnknownFormatError(f"{folder} recorded nothing that can be read.", why, "Record again.")


COLLECTOR = "nvtx"
DOMAIN = "traceviz"
"""NVTX domain of the hooks' ranges."""
UNFINISHED = "unfinished step"
"""Name of the range of an unfinished step: its children stay in it, and it does not count as a step."""

_STEP = r"^step (\d{1,18})$"


def complete_steps(folder: Path) -> dict[int, int]:
    """Return the number of completed steps of each process of a run, by pid, for processes that ended normally.

    A process that was killed may have counted only some of its steps.
    """
    completed = {}
    for path in sorted((folder / RAW / COLLECTOR).glob("**/status.json"))[:MOST_FILES]:
        stated = read_object(path)
        pid, steps = as_number(stated.get("pid")), as_number(stated.get("steps_recorded"))
        if stated.get("state") == "saved" and pid is not None and steps is not None:
            completed[pid] = steps
    return completed


def name_unfinished(nvtx: pa.Table, processes: pa.Table, complete: Mapping[int, int]) -> tuple[pa.Table, int]:
    """Return table ``nvtx`` with unfinished steps renamed to :data:`UNFINISHED`, and the number of these.

    The hooks of ``traceviz collect`` start a step before they know that it will run. An abandoned step starts again
    under the same number; the last one ends only with the program::

        step 0    step 1    step 2 (the epoch is over: abandoned)    step 2    step 3 (the program ends)
        |-------| |-------| |-|                                      |-------| |---------------------->

    Args:
        nvtx: The table.
        processes: The processes that it refers to.
        complete: Number of steps that each completed, by pid, if known.
    """
    pids = dict(zip(processes["process_id"].to_pylist(), processes["pid"].to_pylist(), strict=True))
    ends = {process: complete.get(pid) for process, pid in pids.items() if pid is not None}
    frame = pl.DataFrame(pl.from_arrow(nvtx.select(["start_ns", "process_id", "name", "domain"])))
    numbered = frame.with_row_index("row").filter(pl.col("domain").cast(pl.String) == DOMAIN)
    steps = numbered.select(
        "row",
        "start_ns",
        "process_id",
        pl.col("name").cast(pl.String).str.extract(_STEP).cast(pl.Int64).alias("number"),
        pl.col("process_id").replace_strict(ends, default=None, return_dtype=pl.Int64).alias("end"),
    ).drop_nulls("number")
    begins_again = pl.col("number") == pl.col("number").shift(-1).over("process_id")
    rows = steps.sort("start_ns").filter(begins_again | (pl.col("number") >= pl.col("end")))["row"]
    if not len(rows):
        return nvtx, 0
    unfinished = np.zeros(nvtx.num_rows, np.bool_)
    unfinished[rows.to_numpy()] = True
    names = pc.if_else(pa.array(unfinished), UNFINISHED, nvtx["name"].cast(pa.string())).dictionary_encode()
    return with_column(nvtx, "name", names.cast(nvtx.schema.field("name").type)), len(rows)


NOTHING = "nothing-recorded"
"""Note of a run without recordings."""
_LONGEST_NS = 2**62


def unrecorded_run(
    manifest: RunManifest, notes: Notes, *, keep_private: bool = False
) -> Iterator[tuple[str, pa.Table]]:
    """Yield the tables of a trace without events, ``notes`` last.

    A program that crashes before its first step, or is killed with its profilers, is still a result of a study.

    Args:
        manifest: The manifest of the run.
        notes: Notes on it so far.
        keep_private: Store the command line.

    Yields:
        Name and table: the required ones, and ``settings``.
    """
    lasted = manifest.duration_ns or 0
    run = {
        "format": "run",
        "producer": "traceviz collect",
        "command": manifest.command if keep_private else None,
        "t0_unix_ns": manifest.started_unix_ns,
        "span_ns": lasted if 0 <= lasted < _LONGEST_NS else 0,
        "reader": "run",
    }
    yield "run", rows_to_table("run", [run], notes)
    for name in schema.REQUIRED:
        if name not in {"run", "notes"}:
            yield name, rows_to_table(name, [])
    settings = [{"process_id": None, "key": key, "value": value} for key, value in manifest.settings().items()]
    yield "settings", rows_to_table("settings", settings)
    notes.add(
        NOTHING, "warning", "The run left no recording that can be read: how it ended is all that is known of it."
    )
    manifest.notes(notes)
    yield "notes", notes.table()
