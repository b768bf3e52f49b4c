"""Owners and names of the events of an Nsight Systems export."""

from __future__ import annotations

from functools import partial

import pyarrow as pa

from traceviz.parsers.base import ReadRequest
from traceviz.parsers.nsys.identity import Identity
from traceviz.parsers.nsys.mapping import THREAD
from traceviz.parsers.nsys.survey import Survey
from traceviz.parsers.shared.arrays.arrow import Array, ChunkedArray, pc
from traceviz.parsers.shared.events.mapping import Name, Source
from traceviz.parsers.shared.events.names import decode, look_up, name_column
from traceviz.parsers.shared.events.reader import EventReader
from traceviz.parsers.shared.events.source_tables import RawTables
from traceviz.parsers.shared.events.table import of_each, raw_column
from traceviz.parsers.shared.events.whole_events import IDS, ROWS, TEXTS, UNOWNED
from traceviz.parsers.shared.notes import Notes


def event_reader(raw: RawTables, survey: Survey, identity: Identity, notes: Notes, options: ReadRequest) -> EventReader:
    """Return the reader of the event tables of an export."""
    owners, names = partial(_owners, identity), partial(_names, raw, notes)
    return EventReader(raw, survey.clock, survey.rows, owners, names, notes, options)


def _owners(identity: Identity, batch: pa.RecordBatch, source: Source) -> dict[str, Array]:
    owner = raw_column(batch, source.owner[0])
    owners: dict[str, Array] = {UNOWNED: owner.is_null()} if owner.null_count else {}
    if source.owner == THREAD:
        owners["thread_id"] = of_each(identity.thread_ids, owner)
        owners["process_id"] = of_each(identity.process_of_thread.take, owners["thread_id"])
    else:
        owners["process_id"] = of_each(identity.process_ids, owner)
    if source.device:
        number = raw_column(batch, source.device)
        owners["device_id"] = of_each(identity.device_ids, owners["process_id"], number)
    return owners


def _names(raw: RawTables, notes: Notes, table: str, name: Name, encoded: pa.Table) -> ChunkedArray:
    parts: list[ChunkedArray] = [encoded.column(TEXTS), encoded.column(IDS)]
    texts, ids = (part.chunk(0).dictionary for part in parts)
    words = [decode(texts), look_up(raw, ids)]
    if name.strip:
        words = [pc.replace_substring_regex(known, name.strip, "") for known in words]
    rows = encoded.column(ROWS).combine_chunks() if ROWS in encoded.column_names else None
    column, missing = name_column(parts, words, rows)
    notes.add("name-unknown", "warning", f"{table}: rows whose name the export does not have.", missing)
    return column
