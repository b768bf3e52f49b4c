"""The tables of an SQLite database."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import pyarrow as pa

from traceviz.parsers.shared.arrays.arrow import Array
from traceviz.parsers.shared.events.column_requests import NotPlainError, WholeTable
from traceviz.parsers.shared.events.mapping import Keep
from traceviz.parsers.shared.events.source_tables import RawTables
from traceviz.parsers.shared.sqlite.arrow import StoredTable, plain_batches, sql_batches
from traceviz.parsers.shared.sqlite.file import check_complete, quoted
from traceviz.parsers.shared.sqlite.whole_tables import whole_table
from traceviz.untrusted.sqlite import in_words, open_foreign, refusal, strange_tables

LOOKUPS_PER_QUERY = 500
MAX_LOOKUPS = 1 << 14
"""Maximum number of string ids that are looked up by key; for more, the whole table is streamed."""


class SqliteTables(RawTables):
    """Tables of an SQLite database, opened read-only: nothing is locked, and no file is written next to it.

    Raises:
        DamagedTraceError: the file is cut short, or its catalogue cannot be read.

    :meth:`columns` and :meth:`stream` raise the same error for anything that is not a plain table.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        check_complete(path)
        try:
            self._connection = open_foreign(path)
        except sqlite3.Error as error:
            raise self.damaged("sqlite_master", error) from error
        try:
            self._strange = strange_tables(self._connection)
            self._catalogue = _catalogue(self._connection)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            self._connection.close()
            raise self.damaged("sqlite_master", in_words(error)) from error
        self._whole: dict[str, WholeTable | None] = {}

    def close(self) -> None:
        """Close the database, and stop its prefetches."""
        for table in self._whole.values():
            if table is not None:
                table.close()
        self._connection.close()

    @property
    def names(self) -> frozenset[str]:
        """Names of the tables present, and of views and virtual tables in place of one."""
        return frozenset(self._catalogue) | frozenset(self._strange)

    @property
    def plain_names(self) -> frozenset[str]:
        """Names of the tables that :meth:`columns` and :meth:`stream` read."""
        return frozenset(self._catalogue) - frozenset(self._strange)

    def columns(self, table: str) -> frozenset[str]:
        """Return the columns of ``table``."""
        self._refuse_strange(table)
        return frozenset(self._catalogue[table].types) if table in self._catalogue else frozenset()

    def _refuse_strange(self, table: str) -> None:
        if table in self._strange:
            raise refusal(f"Table {table} of {self.path.name}", self._strange[table])

    def stream(
        self, table: str, integers: Sequence[str], texts: Sequence[str] = (), keep: Keep | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield batches of columns; see :meth:`RawTables.stream`."""
        if texts:
            yield from self._selected(table, integers, texts, self._where(table, keep))
            return
        kept = keep if keep and keep.column in self.columns(table) else None
        columns = list(dict.fromkeys([*integers, *([kept.column] if kept else [])]))
        for batch in self._integers(table, columns):
            yield kept.of(batch) if kept else batch

    def whole(self, table: str) -> WholeTable | None:
        """See :meth:`RawTables.whole`."""
        if table not in self._whole:
            stored = self._catalogue.get(table)
            plain = stored is not None and stored.root and table not in self._strange
            self._whole[table] = whole_table(self.path, stored.root, stored.types) if plain and stored else None
        return self._whole[table]

    def _integers(self, table: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield all rows, decoded from the pages while these are plain, and by SQLite from there on."""
        done = 0
        self._refuse_strange(table)
        try:
            for batch in plain_batches(self.path, self._catalogue[table], columns):
                yield batch
                done += batch.num_rows
        except NotPlainError:
            # Row ids give the order of the pages. Tables without them are not plain from their first row.
            condition = f"ORDER BY rowid LIMIT -1 OFFSET {done}" if done else ""
            yield from self._selected(table, columns, (), condition)

    def _where(self, table: str, keep: Keep | None) -> str:
        if keep is None or keep.column not in self.columns(table):
            return ""
        column, values = quoted(keep.column), ", ".join(map(str, keep.values))
        inside = f"{column} NOT IN ({values}) OR {column} IS NULL" if keep.inverted else f"{column} IN ({values})"
        return f"WHERE {inside}"

    def _selected(
        self, table: str, integers: Sequence[str], texts: Sequence[str], condition: str
    ) -> Iterator[pa.RecordBatch]:
        self._refuse_strange(table)
        source = f"{quoted(table)} {condition}"
        try:
            yield from sql_batches(self.path, self._connection, source, integers, texts)
        except (TypeError, OSError, pa.ArrowException, sqlite3.Error) as error:
            raise self.damaged(table, in_words(error)) from error

    def _string_batches(self, ids: Array) -> Iterator[pa.RecordBatch]:
        """Look up few ids by key; for many, one pass over the table is faster."""
        if len(ids) > MAX_LOOKUPS:
            yield from super()._string_batches(ids)
            return
        for offset in range(0, len(ids), LOOKUPS_PER_QUERY):
            values = ", ".join(map(str, ids[offset : offset + LOOKUPS_PER_QUERY].to_pylist()))
            condition = f"WHERE {quoted(self.string_id)} IN ({values})"
            yield from self._selected(self.string_table, (self.string_id,), ("value",), condition)


def _catalogue(connection: sqlite3.Connection) -> dict[str, StoredTable]:
    query = (
        "SELECT t.name, t.rootpage, c.name, iif(c.pk, NULL, c.type) "
        "FROM sqlite_master AS t LEFT JOIN pragma_table_info(t.name) AS c WHERE t.type = 'table' ORDER BY t.name, c.cid"
    )
    rows = groupby(connection.execute(query), key=itemgetter(0, 1))
    return {
        name: StoredTable(name, root, {row[2]: row[3] for row in columns if row[2] is not None})
        for (name, root), columns in rows
    }
