"""Event tables of an nvprof database, streamed: batches of 64-bit integers become rows of the contract."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from traceviz import schema
from traceviz.parsers.base import ReadOptions
from traceviz.parsers.nvprof.identity import Identity
from traceviz.parsers.nvprof.mapping import EventTable, Source
from traceviz.parsers.nvprof.names import demangled, function, functions
from traceviz.parsers.nvprof.raw import NvprofTables
from traceviz.parsers.nvprof.survey import Survey, present, timed
from traceviz.parsers.shared.arrow import Array, ChunkedArray, chunked_array, nulls, pc
from traceviz.parsers.shared.event_table import Repairs, converted, durations, first, note_repairs
from traceviz.parsers.shared.names import UNKNOWN, decode
from traceviz.parsers.shared.notes import Notes

NAME_IDS = "name ids"


@dataclass(frozen=True, slots=True, eq=False)
class EventReader:
    """Reads event tables of one database; what it drops or repairs goes to ``notes``."""

    raw: NvprofTables
    survey: Survey
    identity: Identity
    notes: Notes
    options: ReadOptions

    def read(self, table: EventTable) -> pa.Table:
        """The contract's table, all its raw tables together."""
        declared = schema.table(table.name).arrow
        parts = [self._part(table, self._needed(table.name, source), declared) for source in present(self.raw, table)]
        return pa.concat_tables([declared.empty_table(), *parts]).unify_dictionaries()

    def _needed(self, table: str, source: Source) -> Source:
        """``source`` without the columns that may be left null and that nobody asked for."""
        if table not in self.options.columns:
            return source
        declared, wanted = schema.table(table).arrow, self.options.columns[table]
        kept = [c for c in source.columns if c.name in wanted or not declared.field(c.name).nullable]
        return replace(source, columns=tuple(kept))

    def _part(self, table: EventTable, source: Source, target: pa.Schema) -> pa.Table:
        repairs = Repairs()
        streamed = _streamed(source, target)
        rows = pa.Table.from_batches(self._batches(table, source, target, repairs), streamed)
        columns: dict[str, ChunkedArray] = {name: rows.column(name) for name in rows.column_names}
        if source.name:
            columns["name"] = self._named(table.name, source, columns.pop(NAME_IDS))
        note_repairs(self.notes, table.name, repairs)
        if source.end:  # that an allocation was not freed is no lost time
            untimed = f"{table.name}: rows whose time the profiler could not take, left out."
            self.notes.add("not-timed", "warning", untimed, self.survey.untimed.get(source.raw, 0))
        return pa.table([columns[name] for name in target.names], schema=target)

    def _batches(
        self, table: EventTable, source: Source, target: pa.Schema, repairs: Repairs
    ) -> Iterator[pa.RecordBatch]:
        available = self.raw.columns(source.raw)
        owners = ["correlationId"] if source.owner == "launch" else ["processId", "threadId"]
        asked = [first(source.end, available), source.device, source.name, *owners]
        asked += [first(column.raw, available) for column in source.columns]
        total, done = self.survey.rows.get(table.name), 0
        for batch, _ in timed(self.raw, source, [name for name in asked if name in available]):
            yield self._converted(batch, source, target, repairs)
            done += batch.num_rows
            self.options.progress(table.name, done, total)

    def _converted(self, batch: pa.RecordBatch, source: Source, target: pa.Schema, repairs: Repairs) -> pa.RecordBatch:
        known = set(batch.schema.names)
        start = first(source.start, known)
        assert start is not None
        missing = batch[start].null_count
        repairs.without_start += missing
        batch = batch.filter(batch[start].is_valid()) if missing else batch
        end = first(source.end, known)
        columns = {"start_ns": pc.subtract(batch[start], self.survey.zero_ns)}
        columns |= {"dur_ns": durations(batch[start], batch[end] if end else None, repairs)}
        columns |= self._owners(batch, source, target, repairs)
        for column in source.columns:
            raw = first(column.raw, known)
            values = batch[raw] if raw else nulls(batch.num_rows, pa.int64())
            columns[column.name] = converted(values, column, target.field(column.name).type, repairs)
        columns |= {NAME_IDS: _of(batch, source.name)}
        streamed = _streamed(source, target)
        arrays = [
            columns[name] if name in columns else nulls(batch.num_rows, kind)
            for name, kind in zip(streamed.names, streamed.types, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=streamed)

    def _owners(self, batch: pa.RecordBatch, source: Source, target: pa.Schema, repairs: Repairs) -> dict[str, Array]:
        owners: dict[str, Array] = {}
        if source.owner == "launch":
            process = self.identity.launchers(_of(batch, "correlationId"))
            repairs.without_owner += process.null_count
            owners["process_id"] = pc.fill_null(process, 0)
        else:
            pids = _of(batch, "processId")
            repairs.without_owner += pids.null_count
            owners["process_id"] = self.identity.process_ids(pids)
        if source.owner == "thread":
            tids = _of(batch, "threadId")
            threads = self.identity.thread_ids(_of(batch, "processId"), tids)
            # Where the contract allows it, an event of a whole process is shown as one; else on thread 0.
            whole = target.field("thread_id").nullable
            owners["thread_id"] = (
                pc.if_else(tids.is_valid(), threads, pa.scalar(None, pa.int32())) if whole else threads
            )
        if source.device:
            owners["device_id"] = self.identity.device_ids(_of(batch, source.device))
        return owners

    def _named(self, table: str, source: Source, ids: ChunkedArray) -> ChunkedArray:
        """Names as a dictionary of distinct ones, which are few: only these are looked up and demangled."""
        encoded = ids.combine_chunks().dictionary_encode()
        words = self._functions(table, source, encoded) if source.calls else self._strings(table, encoded)
        names = pa.array(words, pa.string()).dictionary_encode()
        filled = encoded.indices.fill_null(len(words) - 1)
        return chunked_array([pa.DictionaryArray.from_arrays(names.indices.take(filled), names.dictionary)])

    def _functions(self, table: str, source: Source, encoded: Array) -> list[str]:
        """Functions by number; the last word is that of rows without a number."""
        assert source.calls is not None
        numbers = encoded.dictionary.to_pylist()
        strange = pa.array([number not in functions(source.calls) for number in numbers], pa.bool_())
        message = f"{table}: calls of {source.calls} functions that are not in the list of CUDA 12.9, named by number."
        self.notes.add("function-unknown", "info", message, _count(strange.take(encoded.indices)))
        return [*(function(source.calls, number) for number in numbers), UNKNOWN]

    def _strings(self, table: str, encoded: Array) -> list[str]:
        words = decode(self.raw.words(encoded.dictionary))
        missing = pc.fill_null(words.is_null().take(encoded.indices), fill_value=True)
        self.notes.add("name-unknown", "warning", f"{table}: rows whose name the file does not have.", _count(missing))
        return [*(UNKNOWN if word is None else demangled(word) for word in words.to_pylist()), UNKNOWN]


def _count(flags: Array) -> int:
    return pc.sum(flags).as_py() or 0


def _of(batch: pa.RecordBatch, name: str | None) -> Array:
    return batch[name] if name in batch.schema.names else nulls(batch.num_rows, pa.int64())


def _streamed(source: Source, target: pa.Schema) -> pa.Schema:
    """Columns while they stream: those of ``target``, with names still as ids."""
    if source.name is None:
        return target
    return pa.schema([*(field for field in target if field.name != "name"), pa.field(NAME_IDS, pa.int64())])
