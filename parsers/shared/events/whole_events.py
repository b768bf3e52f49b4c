"""Rows of the contract from whole columns of a raw table; each distinct value is converted once.

::

    globalTid   7 7 9 7 ...     codes  0 0 1 0 ...     distinct  7, 9     their thread ids  4, 5
    thread_id   4 4 5 4 ...
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from traceviz.parsers.base import ReadRequest
from traceviz.parsers.shared.arrays.arrow import Array, ChunkedArray, DictionaryArray, nulls
from traceviz.parsers.shared.events.column_requests import (
    CodeColumn,
    ColumnRequest,
    Combination,
    DurationRequest,
    Label,
    Number,
    NumberColumn,
    Result,
    same_codes,
)
from traceviz.parsers.shared.events.mapping import Source, Word
from traceviz.parsers.shared.events.table import Repairs, converted, first
from traceviz.trace import schema

IDS = "name ids"
TEXTS = "name texts"
ROWS = "rows"
"""Column with the number of rows that a row stands for, if not one."""
UNOWNED = "without owner"
"""Column, next to those of owners, that marks rows without an owner (bool)."""

Owners = Callable[[pa.RecordBatch, Source], dict[str, Array]]
"""Function that returns the columns ``process_id``, ``thread_id`` and ``device_id`` of a batch, if its source has them.

It adds :data:`UNOWNED`; if that is missing, all rows have an owner.
"""
Names = Callable[[pa.Table], ChunkedArray]
"""The column of names of one source; see :data:`traceviz.parsers.shared.events.reader.Names`."""

_OWNER, _NAME = "owner", "name"


@dataclass(frozen=True, slots=True)
class RawColumns:
    """The columns of a raw table that one source reads, if present.

    Args:
        start: Column of the start.
        end: Column of the end.
        owner: Columns of the owner and the device.
        ids: Column of the id of the name.
        text: Column of the text of the name.
        others: The other columns, by name in the contract.
    """

    start: str
    end: str | None
    owner: tuple[str, ...]
    ids: str | None
    text: str | None
    others: Mapping[str, str]


def requested(table: str, source: Source, options: ReadRequest) -> Source:
    """Return ``source`` without nullable columns that the caller did not request."""
    if table not in options.columns:
        return source
    declared, columns = schema.table(table).arrow, options.columns[table]
    kept = [c for c in source.columns if c.name in columns or not declared.field(c.name).nullable]
    return replace(source, columns=tuple(kept))


def raw_columns(source: Source, start: str, available: frozenset[str]) -> RawColumns:
    """Return the columns that ``source`` reads of a raw table with the columns ``available`` and ``start``."""
    owner = dict.fromkeys(name for name in (*source.owner, source.device) if name and name in available)
    others = {column.name: first(column.raw, available) for column in source.columns}
    name = source.name
    return RawColumns(
        start,
        first(source.end, available),
        tuple(owner),
        first(name.ids, available) if name else None,
        name.text if name and name.text in available else None,
        {name: raw for name, raw in others.items() if raw is not None},
    )


def column_requests(source: Source, raw: RawColumns, target: pa.Schema, zero_ns: int) -> dict[str, ColumnRequest]:
    """Return the columns to decode, by column of ``target``."""
    asked: dict[str, ColumnRequest] = {"start_ns": Number(raw.start, pa.int64(), less=zero_ns)}
    if raw.end and "dur_ns" in target.names:
        asked["dur_ns"] = DurationRequest(raw.end, raw.start)
    if raw.owner:
        asked[_OWNER] = Combination(raw.owner)
    if raw.text:
        asked[_NAME] = Label(raw.text, raw.ids)
    elif raw.ids:
        asked[_NAME] = Combination((raw.ids,))
    for column in source.columns:
        if column.name in raw.others:
            stored, kind = raw.others[column.name], target.field(column.name).type
            if isinstance(column, Word):
                asked[column.name] = Combination((stored,))
            else:
                asked[column.name] = Number(stored, kind, unset=column.unset)
    return asked


@dataclass(frozen=True, slots=True, eq=False)
class DecodedEvents:
    """Decoded columns of a raw table.

    Args:
        source: Mapping of the raw table.
        raw: Its columns.
        rows: Rows that count.
        results: The results of :func:`column_requests`.
        repairs: Counts repairs.
    """

    source: Source
    raw: RawColumns
    rows: int
    results: Mapping[str, Result]
    repairs: Repairs

    def table(self, target: pa.Schema, owners: Owners, names: Names) -> pa.Table:
        """Return the columns of ``target``. Codes are consumed: only the first call returns the table."""
        columns = {"start_ns": self._number("start_ns")} | self._owner_columns(owners)
        durations = self.results.get("dur_ns")
        if isinstance(durations, NumberColumn):
            self.repairs.negative += durations.beyond
            columns["dur_ns"] = durations.array
        if self.source.name is not None:
            columns["name"] = self._names(names)
        for column in self.source.columns:
            if isinstance(column, Word):
                coded = self._coded(column.name)
                raw = self.raw.others.get(column.name)
                numbers = coded.keys[raw] if raw else nulls(len(coded.rows), pa.int64())
                columns[column.name] = coded.spread(converted(numbers, column, pa.int64(), self.repairs), last=True)
            elif column.name in self.results:
                columns[column.name] = self._number(column.name)
                result = self.results[column.name]
                assert isinstance(result, NumberColumn)
                if result.beyond:
                    self.repairs.too_large[column.name] = self.repairs.too_large.get(column.name, 0) + result.beyond
        fields = zip(target.names, target.types, strict=True)
        return pa.table(
            [columns[name] if name in columns else schema.nulls(self.rows, kind) for name, kind in fields],
            schema=target,
        )

    def _number(self, name: str) -> Array:
        result = self.results[name]
        assert isinstance(result, NumberColumn)
        return result.array

    def _coded(self, name: str) -> CodeColumn:
        """Return the codes of ``name``; if the raw table has no column for it, all rows have the same code."""
        result = self.results.get(name) or same_codes(self.rows)
        assert isinstance(result, CodeColumn)
        return result

    def _owner_columns(self, owners: Owners) -> dict[str, Array]:
        coded = self._coded(_OWNER)
        found = owners(coded.keys, self.source)
        unowned = found.pop(UNOWNED, None)
        if unowned is not None:
            self.repairs.without_owner += int(coded.rows[unowned.to_numpy(zero_copy_only=False)].sum())
        # Codes are as wide as the numbers of threads and processes: the last differing column reuses their memory.
        wide = [name for name, values in found.items() if values.type.bit_width == 32]
        wide.sort(key=lambda name: len(found[name].unique()) > 1)
        narrow = {name: coded.spread(values) for name, values in found.items() if name not in wide}
        return narrow | {name: coded.spread(found[name], last=name == wide[-1]) for name in wide}

    def _names(self, names: Names) -> DictionaryArray:
        coded = self._coded(_NAME)
        if not self.rows:
            return pa.array([], pa.dictionary(pa.int32(), pa.string()))
        count = len(coded.rows)
        ids = coded.keys[self.raw.ids] if self.raw.ids else nulls(count, pa.int64())
        texts = coded.keys[self.raw.text] if self.raw.text else nulls(count, pa.binary())
        columns = [texts.dictionary_encode(), ids.dictionary_encode(), pa.array(coded.rows)]
        column = names(pa.table(columns, [TEXTS, IDS, ROWS])).combine_chunks()
        return coded.spread(column if isinstance(column, pa.Array) else column.chunk(0), last=True)
