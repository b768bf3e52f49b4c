"""Event tables: raw integers become rows of the contract, in its narrow types.

Pages are decoded into whole columns if possible (:mod:`traceviz.parsers.shared.sqlite.whole_tables`). The others
stream, in batches of 64-bit integers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial

import pyarrow as pa

from traceviz.parsers.base import ReadRequest
from traceviz.parsers.shared.arrays.arrow import ChunkedArray, chunked_array, nulls, pc
from traceviz.parsers.shared.events.column_requests import NotPlainError, Number, NumberColumn, WholeTable
from traceviz.parsers.shared.events.mapping import Name, Source
from traceviz.parsers.shared.events.prescan import Clock, keeps_of, present, start_of, timed_batches
from traceviz.parsers.shared.events.source_tables import RawTables
from traceviz.parsers.shared.events.table import Repairs, converted, durations, first, note_repairs, raw_column
from traceviz.parsers.shared.events.whole_events import (
    IDS,
    TEXTS,
    UNOWNED,
    DecodedEvents,
    Owners,
    column_requests,
    raw_columns,
    requested,
)
from traceviz.parsers.shared.notes import Notes
from traceviz.trace import schema
from traceviz.trace.plausible import plausible_durations

Names = Callable[[str, Name, pa.Table], ChunkedArray]
"""Function that makes the column of names from the columns :data:`TEXTS` and :data:`IDS`.

Each has one dictionary in all chunks; :data:`ROWS` is present if there is one chunk.
"""


Piece = tuple[pa.Table, int | None]
"""Rows of a table, and the first start of the following rows; ``None`` if none follow."""


@dataclass(frozen=True, slots=True, eq=False)
class EventReader:
    """Reads event tables of the contract from the raw tables of one file.

    Args:
        raw: The raw tables.
        clock: Time range of the events of the file.
        rows: Rows by table of the contract.
        owners: Reads the owners of events, as the format stores them.
        names: Reads the names of events, as the format stores them.
        notes: Collects reports of dropped or repaired rows.
        options: Request of the caller.
        read_rows: Rows read so far, by table of the contract.
    """

    raw: RawTables
    clock: Clock
    rows: Mapping[str, int]
    owners: Owners
    names: Names
    notes: Notes
    options: ReadRequest
    read_rows: Counter[str] = field(default_factory=Counter)

    def read(self, table: str, sources: tuple[Source, ...]) -> pa.Table:
        """Return the table of the contract from its ``sources``; at least one is present."""
        declared = schema.table(table).arrow
        parts = [self.columns(table, source, declared) for source in present(self.raw, sources)]
        return pa.concat_tables(parts).unify_dictionaries() if len(parts) > 1 else parts[0]

    def columns(self, table: str, source: Source, target: pa.Schema) -> pa.Table:
        """Return rows of one raw table with the columns of ``target``; columns that the raw table lacks are null."""
        source = requested(table, source, self.options)
        repairs = Repairs()
        whole = self._whole(source)
        if whole is not None:
            with suppress(NotPlainError):
                decoded = self._decoded(whole, table, source, target, repairs, self.rows.get(table))
                note_repairs(self.notes, table, repairs)
                return decoded
        streamed = target
        if source.name is not None:  # the name is still an id or a text
            fields = [column for column in target if column.name != "name"]
            ids, texts = pa.dictionary(pa.int32(), pa.int64()), pa.dictionary(pa.int32(), pa.binary())
            streamed = pa.schema([*fields, pa.field(TEXTS, texts), pa.field(IDS, ids)])
        rows = pa.Table.from_batches(self._batches(table, source, streamed, repairs), streamed)
        columns = {name: rows.column(name) for name in rows.column_names if name not in (IDS, TEXTS)}
        if source.name:
            encoded = rows.select([TEXTS, IDS]).unify_dictionaries()
            columns["name"] = (
                self.names(table, source.name, encoded) if rows.num_rows else chunked_array([], schema.NAME)
            )
        note_repairs(self.notes, table, repairs)
        return pa.table([columns[name] for name in target.names], schema=target)

    def pieces(self, table: str, source: Source, target: pa.Schema, count: int) -> Iterator[Piece]:
        """Yield the rows of one raw table in at most ``count`` pieces, each with the first start after it.

        Raises:
            NotPlainError: they cannot be read in pieces, or not from here on.
        """
        source = requested(table, source, self.options)
        whole = self._whole(source)
        if whole is None:
            raise NotPlainError("a table that streams")
        start = start_of(self.raw, source)
        parts = whole.parts(count)
        firsts: list[int | None] = [None]
        for part in reversed(parts):
            bounds = part.measure(keeps_of(source, start), (Number(start, pa.int64()),))[1][0]
            assert isinstance(bounds, NumberColumn)
            known = [time for time in (bounds.least, firsts[0]) if time is not None]
            firsts.insert(0, min(known, default=None))
        repairs = Repairs()
        for part, first_later in zip(parts, firsts[1:], strict=True):
            # The caller releases each piece. So no expected row count is passed: the memory check would extrapolate
            # from it.
            made = [self._decoded(part, table, source, target, repairs, None)]
            yield made.pop(), None if first_later is None else first_later - self.clock.zero_ns
        note_repairs(self.notes, table, repairs)

    def _whole(self, source: Source) -> WholeTable | None:
        """Return the decoder of whole columns of a source; ``None`` if implausible times require checks row by row."""
        return self.raw.whole(source.table) if self.clock.window is None else None

    def _decoded(  # noqa: PLR0917 (one more than five, all of them of other types)
        self,
        whole: WholeTable,
        table: str,
        source: Source,
        target: pa.Schema,
        repairs: Repairs,
        expected: int | None,
    ) -> pa.Table:
        """Return the columns of ``target`` by one pass over the pages of the raw table.

        Raises:
            NotPlainError: the table has to be streamed; nothing was repaired or noted.
        """
        start = start_of(self.raw, source)
        columns = raw_columns(source, start, self.raw.columns(source.table))
        asked = column_requests(source, columns, target, self.clock.zero_ns)
        keeps = keeps_of(source, start)
        before = self.read_rows[table]
        rows, results = whole.columns(
            keeps, list(asked.values()), lambda done: self.options.progress(table, before + done, expected)
        )
        found = dict(zip(asked, results, strict=True))
        if found["start_ns"].missing:
            raise NotPlainError("rows without a start")
        self.read_rows[table] += rows
        if source.no_time is not None:
            repairs.untimed += whole.measure(keeps[:-1], ())[0] - rows
        names = partial(self.names, table, source.name or Name(()))
        return DecodedEvents(source, columns, rows, found, repairs).table(target, self.owners, names)

    def _batches(self, table: str, source: Source, streamed: pa.Schema, repairs: Repairs) -> Iterator[pa.RecordBatch]:
        available = self.raw.columns(source.table)
        ids, texts = self._name_columns(source)
        integers = [first(source.end, available), *source.owner, source.device, ids]
        integers += [first(column.raw, available) for column in source.columns]
        for batch, untimed in timed_batches(self.raw, source, [name for name in integers if name in available], texts):
            repairs.untimed += untimed
            yield self._converted(batch, source, streamed, repairs)
            self.read_rows[table] += batch.num_rows
            self.options.progress(table, self.read_rows[table], self.rows.get(table))

    def _name_columns(self, source: Source) -> tuple[str | None, list[str]]:
        """Return the raw columns of the name's id and texts. Some exports write the text in the column of the id."""
        if source.name is None:
            return None, []
        available = self.raw.columns(source.table)
        texts = [source.name.text] if source.name.text in available else []
        ids = first(source.name.ids, available)
        if ids and self.raw.is_text(source.table, ids):
            return None, [*texts, ids]
        return ids, texts

    def _converted(
        self, batch: pa.RecordBatch, source: Source, streamed: pa.Schema, repairs: Repairs
    ) -> pa.RecordBatch:
        known = set(batch.schema.names)
        start, end = start_of(self.raw, source), first(source.end, known)
        missing = batch[start].null_count
        repairs.without_start += missing
        batch = batch.filter(batch[start].is_valid()) if missing else batch
        if self.clock.window is not None:
            batch = batch.filter(pa.array(self.clock.window.has(batch[start].to_numpy())))
        columns = {"start_ns": pc.subtract(batch[start], self.clock.zero_ns)}
        if "dur_ns" in streamed.names:
            columns["dur_ns"] = durations(batch[start], batch[end] if end else None, repairs)
            if self.clock.window is not None:
                columns["dur_ns"] = plausible_durations(columns["dur_ns"])
        columns |= self.owners(batch, source)
        if UNOWNED in columns:
            repairs.without_owner += pc.sum(columns.pop(UNOWNED)).as_py() or 0
        for column in source.columns:
            values = raw_column(batch, first(column.raw, known))
            columns[column.name] = converted(values, column, streamed.field(column.name).type, repairs)
        ids, texts = self._name_columns(source)
        columns |= {IDS: batch[ids].dictionary_encode()} if ids else {}
        columns |= {TEXTS: pc.coalesce(*(batch[text] for text in texts)).dictionary_encode()} if texts else {}
        # Batches of similar size share the memory of their nulls.
        arrays = [
            columns[name]
            if name in columns
            else _blanks(1 << max(batch.num_rows - 1, 1).bit_length(), kind).slice(0, batch.num_rows)
            for name, kind in zip(streamed.names, streamed.types, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=streamed)


_blanks = lru_cache(maxsize=64)(nulls)
