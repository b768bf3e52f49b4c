"""Owners and names of the events of an Nsight Systems export; NVTX ranges and calls of MPI."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from traceviz.parsers.base import ReadRequest
from traceviz.parsers.nsys.identity import Identity, Survey
from traceviz.parsers.nsys.mapping import EVENT_TABLES, LOCAL_ID, NVTX_CATEGORY_NAME, NVTX_DOMAIN_NAME, THREAD
from traceviz.parsers.shared.arrays.arrow import Array, ChunkedArray, DictionaryArray, pc
from traceviz.parsers.shared.events.columns import recoded
from traceviz.parsers.shared.events.mapping import Keep, Name, Source
from traceviz.parsers.shared.events.names import decode, look_up, name_column
from traceviz.parsers.shared.events.prescan import present
from traceviz.parsers.shared.events.reader import EventReader
from traceviz.parsers.shared.events.source_tables import RawTables
from traceviz.parsers.shared.events.table import combination_codes, of_each, raw_column
from traceviz.parsers.shared.events.whole_events import IDS, ROWS, TEXTS, UNOWNED
from traceviz.parsers.shared.notes import Notes
from traceviz.parsers.shared.nvtx import nvtx_table, ordered
from traceviz.trace import schema


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


_TABLE = "NVTX_EVENTS"
_KINDS_UNKNOWN = f"{_TABLE} has no column eventType: all its rows are taken for ranges of unknown kind."
_OF_MPI = -1
"""Number of the domain of calls of MPI, which programs cannot have."""
_DERIVED = ("domain", "category", "range_id", "depth", "parent_id")

Words = dict[tuple[Any, ...], str]


def read_nvtx(events: EventReader, survey: Survey, identity: Identity) -> pa.Table:
    """Return table ``nvtx``, sorted by start (the longer range first if equal), with the nesting of push/pop ranges."""
    declared = schema.table("nvtx").arrow
    raw_numbers = [pa.field("domain", pa.int64()), pa.field("category", pa.int64())]
    streamed = pa.schema([*(field for field in declared if field.name not in _DERIVED), *raw_numbers])
    parts = []
    for source in present(events.raw, EVENT_TABLES["nvtx"]):
        part = events.columns("nvtx", source, streamed)
        if source.table != _TABLE:  # calls of MPI
            of_mpi = pa.repeat(pa.scalar(_OF_MPI, pa.int64()), part.num_rows)
            part = part.set_column(streamed.get_field_index("domain"), "domain", of_mpi)
        parts.append(part)
    rows = ordered(pa.concat_tables(parts).unify_dictionaries() if len(parts) > 1 else parts[0])
    if events.raw.columns(_TABLE) and "eventType" not in events.raw.columns(_TABLE):
        events.notes.add("nvtx-kinds-unknown", "warning", _KINDS_UNKNOWN)
    domains, categories = _declared_names(events.raw)
    domain, category = pc.fill_null(rows.column("domain").combine_chunks(), 0), rows.column("category").combine_chunks()
    owner = identity.processes.take(rows.column("process_id").combine_chunks())

    def domain_name(process: int, number: int) -> str:
        if number == _OF_MPI:
            return "MPI"
        # Captures that started after a domain was created do not know its name.
        return domains.get((process, number), f"[domain {number}]" if number else "")

    def category_name(process: int, domain: int, number: int | None) -> str | None:
        if number is None:
            return None
        # Categories are declared per domain, or in the default domain.
        return categories.get((process, domain, number), categories.get((process, 0, number), f"[category {number}]"))

    names = {
        "domain": _name_rows([owner, domain], domain_name),
        "category": _name_rows([owner, domain, category], category_name),
    }
    return nvtx_table(rows, survey.clock.last_ns - survey.clock.zero_ns, names)


def _name_rows(columns: Sequence[Array], name_of: Callable[..., str | None]) -> DictionaryArray:
    """Return names of rows, computed once for each of the few distinct combinations of ``columns``."""
    codes = combination_codes(columns, len(columns[0]))
    _, first, combination = np.unique(codes, return_index=True, return_inverse=True)
    keys = zip(*(column.take(first).to_pylist() for column in columns), strict=True)
    return recoded([name_of(*key) for key in keys], combination)


def _declared_names(raw: RawTables) -> tuple[Words, Words]:
    """Return names of domains by (process, domain), and of categories by (process, domain, category)."""
    present = raw.columns(_TABLE)
    if "eventType" not in present:
        return {}, {}
    named = [name for name in ("text", "textId") if name in present]
    texts = [name for name in named if name == "text" or raw.is_text(_TABLE, name)]
    numbers = ["eventType", "globalTid", "domainId", "category", *named]
    integers = [name for name in numbers if name in present and name not in texts]
    keep = Keep("eventType", (NVTX_CATEGORY_NAME, NVTX_DOMAIN_NAME))
    rows = [row for batch in raw.stream(_TABLE, integers, texts, keep) for row in batch.to_pylist()]
    used = {row[name] for row in rows for name in named if name not in texts and row[name] is not None}
    ids = pa.array(sorted(used), pa.int64())
    words = dict(zip(ids.to_pylist(), look_up(raw, ids).to_pylist(), strict=True))
    domains: Words = {}
    categories: Words = {}
    for row in rows:
        values = (row[name] for name in named)  # stored as text, or as the id of a string
        texts_or_none = (v.decode("utf-8", "replace") if isinstance(v, bytes) else words.get(v) for v in values)
        name = next(filter(None, texts_or_none), None)
        process, domain = (row.get("globalTid") or 0) & ~LOCAL_ID, row.get("domainId") or 0
        if name and row["eventType"] == NVTX_DOMAIN_NAME:
            domains[process, domain] = name
        elif name:
            categories[process, domain, row.get("category")] = name
    return domains, categories
