"""Event tables, streamed: raw batches of 64-bit integers become rows of the contract in its narrow types."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import pyarrow as pa

from traceviz import schema
from traceviz.parsers.base import ReadOptions
from traceviz.parsers.nsys.identity import Identity
from traceviz.parsers.nsys.mapping import EventTable, Source
from traceviz.parsers.nsys.names import name_column
from traceviz.parsers.nsys.survey import Survey, present
from traceviz.parsers.shared.arrow import Array, ChunkedArray, chunked_array, nulls, pc
from traceviz.parsers.shared.event_table import Repairs, converted, durations, first, note_repairs, of_each
from traceviz.parsers.shared.mapping import Name
from traceviz.parsers.shared.names import decode, look_up, stripped
from traceviz.parsers.shared.notes import Notes
from traceviz.parsers.shared.raw import RawTables

IDS = "name ids"
TEXTS = "name texts"


@dataclass(frozen=True, slots=True, eq=False)
class EventReader:
    """Reads event tables of one export; what it drops or repairs goes to ``notes``."""

    raw: RawTables
    survey: Survey
    identity: Identity
    notes: Notes
    options: ReadOptions

    def read(self, table: EventTable) -> pa.Table:
        """The contract's table, all its raw tables together."""
        declared = schema.table(table.name).arrow
        parts = [self.columns(table, source, declared) for source in present(self.raw, table.sources)]
        return pa.concat_tables(parts).unify_dictionaries() if len(parts) > 1 else parts[0]

    def columns(self, table: EventTable, source: Source, target: pa.Schema) -> pa.Table:
        """Rows of one raw table with the columns of ``target``; what the raw table does not have is null."""
        source = self._needed(table.name, source)
        repairs = Repairs()
        streamed = pa.Table.from_batches(self._batches(table, source, target, repairs), _streamed(source, target))
        columns = {name: streamed.column(name) for name in streamed.column_names if name not in (IDS, TEXTS)}
        if source.name:
            columns["name"] = self._names(table, source.name, streamed)
        note_repairs(self.notes, table.name, repairs)
        return pa.table([columns[name] for name in target.names], schema=target)

    def _needed(self, table: str, source: Source) -> Source:
        """``source`` without the columns that may be left null and that nobody asked for."""
        if table not in self.options.columns:
            return source
        declared, wanted = schema.table(table).arrow, self.options.columns[table]
        kept = [c for c in source.columns if c.name in wanted or not declared.field(c.name).nullable]
        return replace(source, columns=tuple(kept))

    def _batches(
        self, table: EventTable, source: Source, target: pa.Schema, repairs: Repairs
    ) -> Iterator[pa.RecordBatch]:
        available = self.raw.columns(source.table)
        ids, texts = self._name_columns(source)
        integers = [name for name in ("start", source.end, source.owner, source.device) if name in available]
        integers += [raw for column in source.columns if (raw := first(column.raw, available))]
        integers += [ids] if ids else []
        total, done = self.survey.rows[source.table], 0
        for batch in self.raw.stream(source.table, list(dict.fromkeys(integers)), texts, source.keep):
            yield self._converted(batch, source, target, repairs)
            done += batch.num_rows
            self.options.progress(table.name, done, total)

    def _name_columns(self, source: Source) -> tuple[str | None, list[str]]:
        """Raw columns of the name: of its id, and of its text. Some exports write the text in the column of the id."""
        if source.name is None:
            return None, []
        available = self.raw.columns(source.table)
        texts = [source.name.text] if source.name.text in available else []
        ids = first(source.name.ids, available)
        if ids and self.raw.is_text(source.table, ids):
            return None, [*texts, ids]
        return ids, texts

    def _converted(self, batch: pa.RecordBatch, source: Source, target: pa.Schema, repairs: Repairs) -> pa.RecordBatch:
        repairs.without_start += batch["start"].null_count
        if batch["start"].null_count:
            batch = batch.filter(batch["start"].is_valid())
        known = set(batch.schema.names)
        columns = {"start_ns": pc.subtract(batch["start"], self.survey.zero_ns)}
        ends = batch[source.end] if source.end in known else None
        columns |= {"dur_ns": durations(batch["start"], ends, repairs)} if "dur_ns" in target.names else {}
        columns |= self._owners(batch, source, repairs)
        for column in source.columns:
            raw = first(column.raw, known)
            values = batch[raw] if raw else pa.nulls(batch.num_rows, pa.int64())
            columns[column.name] = converted(values, column, target.field(column.name).type, repairs)
        ids, texts = self._name_columns(source)
        streamed = _streamed(source, target)
        columns |= {IDS: batch[ids].dictionary_encode()} if ids else {}
        columns |= {TEXTS: pc.coalesce(*(batch[text] for text in texts)).dictionary_encode()} if texts else {}
        arrays = [
            columns[name] if name in columns else _blank(kind, batch.num_rows)
            for name, kind in zip(streamed.names, streamed.types, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=streamed)

    def _owners(self, batch: pa.RecordBatch, source: Source, repairs: Repairs) -> dict[str, Array]:
        zeros = pa.nulls(batch.num_rows, pa.int64())
        owner = batch[source.owner] if source.owner in batch.schema.names else zeros
        repairs.without_owner += owner.null_count
        owners: dict[str, Array] = {}
        if source.owner == "globalTid":
            owners["thread_id"] = of_each(self.identity.thread_ids, owner)
            owners["process_id"] = of_each(self.identity.process_of_thread.take, owners["thread_id"])
        else:
            owners["process_id"] = of_each(self.identity.process_ids, owner)
        if source.device:
            number = batch[source.device] if source.device in batch.schema.names else zeros
            owners["device_id"] = of_each(self.identity.device_ids, owners["process_id"], number)
        return owners

    def _names(self, table: EventTable, name: Name, streamed: pa.Table) -> ChunkedArray:
        unified = streamed.select([TEXTS, IDS]).unify_dictionaries()
        texts: ChunkedArray = unified.column(TEXTS)
        ids: ChunkedArray = unified.column(IDS)
        if not unified.num_rows:
            return chunked_array([], schema.NAME)
        words = [decode(texts.chunk(0).dictionary), look_up(self.raw, ids.chunk(0).dictionary)]
        column, missing = name_column([texts, ids], [stripped(some, name.strip) for some in words])
        self.notes.add("name-unknown", "warning", f"{table.name}: rows whose name the export does not have.", missing)
        return column


@lru_cache(maxsize=64)
def _blanks(kind: pa.DataType, capacity: int) -> Array:
    return nulls(capacity, kind)


def _blank(kind: pa.DataType, rows: int) -> Array:
    """Nulls for one batch; all batches of about one size share the memory of them."""
    return _blanks(kind, 1 << max(rows - 1, 1).bit_length()).slice(0, rows)


def _streamed(source: Source, target: pa.Schema) -> pa.Schema:
    """Columns while they stream: those of ``target``, with the name still as ids and texts."""
    fields = [field for field in target if field.name != "name" or source.name is None]
    if source.name:
        fields.append(pa.field(TEXTS, pa.dictionary(pa.int32(), pa.binary())))
        fields.append(pa.field(IDS, pa.dictionary(pa.int32(), pa.int64())))
    return pa.schema(fields)
