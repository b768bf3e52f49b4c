"""The tables that a profiler stored, whatever they are stored in.

:class:`RawTables` is what the mapping to the contract needs of them: names, columns, streams of batches, and two small
queries (extent, strings).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa

from traceviz.errors import DamagedTraceError
from traceviz.parsers.shared.arrow import Array, pc


@dataclass(frozen=True, slots=True)
class Keep:
    """Which rows of a raw table count.

    Args:
        column: An integer column; where the table does not have it, all rows count.
        values: Its values.
        inverted: Rows with these values are the ones left out. A null is no value.
    """

    column: str
    values: tuple[int, ...]
    inverted: bool = False

    def of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Those rows of ``batch``, which has the column."""
        inside = pc.is_in(batch[self.column], value_set=pa.array(self.values, pa.int64()))
        return batch.filter(pc.invert(inside) if self.inverted else inside)


@dataclass(frozen=True, slots=True, eq=False)
class Extent:
    """What one pass over the times of a raw table shows.

    Args:
        rows: Rows that count.
        first_ns: When the first event begins; ``None`` without rows.
        last_ns: When the last event ends; ``None`` without rows.
        keys: Distinct combinations of the columns asked for.
    """

    rows: int
    first_ns: int | None
    last_ns: int | None
    keys: pa.Table


class RawTables(ABC):
    """Tables of one file or folder.

    Integer columns stream as ``int64``, text columns as ``binary`` (names are any bytes). ``string_table`` holds the
    strings that other tables refer to, in its column ``value``, by the numbers in its column ``string_id``.
    """

    string_table: ClassVar[str]
    string_id: ClassVar[str]
    path: Path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Let go of the file."""

    @property
    @abstractmethod
    def names(self) -> frozenset[str]:
        """Names of the tables present."""

    @abstractmethod
    def columns(self, table: str) -> frozenset[str]:
        """Columns of ``table``; none where it is not present."""

    @abstractmethod
    def stream(
        self, table: str, integers: Sequence[str], texts: Sequence[str] = (), keep: Keep | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Batches of the named columns, all of which exist, in the order of the file.

        Raises:
            DamagedTraceError: the table cannot be decoded, or holds text where numbers belong.
        """

    def is_text(self, table: str, column: str) -> bool:  # noqa: ARG002 (what subclasses need to know)
        """Whether ``column``, an id of a string by its documentation, holds the string itself."""
        return False

    def extent(self, table: str, start: str, end: str | None, keep: Keep | None, keys: Sequence[str] = ()) -> Extent:
        """Rows, time range and distinct values of ``keys``, which exist, of the event table ``table``."""
        times = [name for name in (start, end) if name in self.columns(table)]
        rows, bounds = 0, []
        combinations = [pa.schema([(name, pa.int64()) for name in keys]).empty_table()]
        for batch in self.stream(table, list(dict.fromkeys([*times, *keys])), keep=keep):
            rows += batch.num_rows
            bounds += [bound for name in times for bound in pc.min_max(batch[name]).as_py().values()]
            combinations.append(_distinct(pa.Table.from_batches([batch]).select(keys)))
        known = [bound for bound in bounds if bound is not None]
        distinct = _distinct(pa.concat_tables(combinations))
        return Extent(rows, min(known, default=None), max(known, default=None), distinct)

    def strings(self, ids: Array) -> pa.Table:
        """Rows ``id`` and ``value`` (binary) of the strings with these ids; ids that do not exist have no row."""
        empty = pa.table({"id": pa.array([], pa.int64()), "value": pa.array([], pa.binary())})
        if self.string_table not in self.names or not len(ids):
            return empty
        batches = (batch.rename_columns(["id", "value"]) for batch in self._string_batches(ids))
        chosen = (batch.filter(pc.is_in(batch["id"], value_set=ids)) for batch in batches)
        return pa.concat_tables([empty, *(pa.Table.from_batches([batch]) for batch in chosen)])

    def _string_batches(self, ids: Array) -> Iterator[pa.RecordBatch]:  # noqa: ARG002 (a hint for subclasses)
        return self.stream(self.string_table, (self.string_id,), ("value",))

    def small(self, table: str, integers: Sequence[str] = (), texts: Sequence[str] = ()) -> list[dict[str, Any]]:
        """Rows of a table that describes the capture; columns that it does not have are ``None``."""
        present = self.columns(table)
        wanted = [name for name in integers if name in present]
        wanted_texts = [name for name in texts if name in present]
        nothing: dict[str, Any] = dict.fromkeys((*integers, *texts))
        if table not in self.names or not (wanted or wanted_texts):
            return []
        rows: list[dict[str, Any]] = []
        for batch in self.stream(table, wanted, wanted_texts):
            rows += [{**nothing, **{key: _decoded(value) for key, value in row.items()}} for row in batch.to_pylist()]
        return rows

    def damaged(self, table: str, seen: object) -> DamagedTraceError:
        """The error that names ``table`` and what was seen in it."""
        return DamagedTraceError(
            f"Table {table} of {self.path.name} is damaged.",
            f"{str(seen).strip().rstrip('.')}.",
            "Copy or export the file again.",
        )


def _distinct(rows: pa.Table) -> pa.Table:
    """Distinct rows. Columns in which all values are equal, which most are, take no part in the comparison."""
    codes = np.zeros(rows.num_rows, dtype=np.int64)
    for column in rows.columns:
        values = pc.unique(column)
        if len(values) > 1:
            codes = codes * len(values) + pc.index_in(column, value_set=values).to_numpy()
    several, first = codes.any(), np.arange(min(rows.num_rows, 1))
    return rows.take(np.unique(codes, return_index=True)[1] if several else first)


def _decoded(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
