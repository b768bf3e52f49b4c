"""Owners and names of the events of an nvprof database."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from functools import cache, partial
from importlib import resources

import pyarrow as pa

from traceviz.parsers.base import ReadRequest
from traceviz.parsers.nvprof.demangle import Demangler
from traceviz.parsers.nvprof.identity import Identity, Survey
from traceviz.parsers.nvprof.mapping import BY_LAUNCH, LAUNCH_WITHIN, OF_PROCESSES_TOO, THREAD
from traceviz.parsers.nvprof.raw import NvprofTables
from traceviz.parsers.shared.arrays.arrow import Array, ChunkedArray, pc
from traceviz.parsers.shared.events.mapping import VERSION_SUFFIX, Name, Source
from traceviz.parsers.shared.events.names import count_rows, look_up, name_column
from traceviz.parsers.shared.events.reader import EventReader
from traceviz.parsers.shared.events.table import raw_column
from traceviz.parsers.shared.events.whole_events import IDS, UNOWNED
from traceviz.parsers.shared.notes import Notes


@cache
def functions(domain: str) -> Mapping[int, str]:
    """Return names of the functions of ``runtime`` or ``driver`` by callback id, without their version suffix."""
    path = resources.files("traceviz.parsers").joinpath("data", "cupti_cbids.csv")
    rows = csv.DictReader(path.read_text(encoding="utf-8").splitlines())
    return {int(row["cbid"]): re.sub(VERSION_SUFFIX, "", row["function"]) for row in rows if row["domain"] == domain}


def function(domain: str, number: int) -> str:
    """Return the name of the function with this callback id; ``cbid_123`` if the list does not have it."""
    return functions(domain).get(number, f"cbid_{number}")


def event_reader(
    raw: NvprofTables, survey: Survey, identity: Identity, notes: Notes, options: ReadRequest, *, demangler: Demangler
) -> EventReader:
    """Return the reader of the event tables of a database."""
    owners, names = partial(_owners, identity), partial(_names, raw, notes, demangler)
    return EventReader(raw, survey.clock, survey.rows, owners, names, notes, options)


def _owners(identity: Identity, batch: pa.RecordBatch, source: Source) -> dict[str, Array]:
    owners: dict[str, Array] = {}
    if source.owner in BY_LAUNCH:
        devices = raw_column(batch, source.device) if source.device else None
        starts = raw_column(batch, "start") if source.owner == LAUNCH_WITHIN else None
        process = identity.launchers(raw_column(batch, "correlationId"), devices, starts)
        owners[UNOWNED] = process.is_null()
        owners["process_id"] = pc.fill_null(process, 0)
    else:
        pids = raw_column(batch, "processId")
        owners[UNOWNED] = pids.is_null()
        owners["process_id"] = identity.process_ids(pids)
    if source.owner == THREAD:
        tids = raw_column(batch, "threadId")
        threads = identity.thread_ids(pids, tids)
        of_process = tids.is_null() if source.table in OF_PROCESSES_TOO else False
        owners["thread_id"] = pc.if_else(of_process, pa.scalar(None, pa.int32()), threads)
    if source.device:
        owners["device_id"] = identity.device_ids(raw_column(batch, source.device))
    return owners


def _names(  # noqa: PLR0917 (the first three are bound above)
    raw: NvprofTables,
    notes: Notes,
    demangler: Demangler,
    table: str,
    name: Name,
    encoded: pa.Table,
) -> ChunkedArray:
    """Return names as a dictionary of the few distinct ones: only these are looked up and demangled."""
    ids: ChunkedArray = encoded.column(IDS)
    distinct = ids.chunk(0).dictionary
    if name.calls:
        known = functions(name.calls)
        strange = pa.array([number not in known for number in distinct.to_pylist()], pa.bool_())
        message = f"{table}: calls of {name.calls} functions that are not in the list of CUDA 12.9, named by number."
        notes.add("function-unknown", "info", message, count_rows(ids, strange))
        words: list[str | None] = [function(name.calls, number) for number in distinct.to_pylist()]
    else:
        stated = look_up(raw, distinct).to_pylist()
        shown = iter(demangler.demangled(word for word in stated if word is not None))
        words = [None if word is None else next(shown) for word in stated]
    column, missing = name_column([ids], [pa.array(words, pa.string())])
    if not name.calls:
        notes.add("name-unknown", "warning", f"{table}: rows whose name the file does not have.", missing)
    return column
