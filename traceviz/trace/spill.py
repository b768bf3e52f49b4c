"""Temporary files for tables that do not fit into memory. They exist as long as a trace uses them.

A table that was built completely is written as it is. A larger one comes in pieces. Profilers write nearly in order, so
that consecutive pieces overlap by little::

    piece 1   10 20 30 55 40       rows before 35, the first of all later ones, are written; 55 and 40 wait
    piece 2   35 60 50             35 40 50 55 60
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from traceviz.core.process.memory import resident
from traceviz.core.process.temporary import HeldFolder
from traceviz.trace import schema
from traceviz.trace.tables import ROW_GROUP, Source, TraceTables, conform_only, parquet_writer

_TIMES_THE_TABLES = 3
"""Total memory of an analysis, as a multiple of the memory of its tables."""
_WORTH_A_FILE = 1 << 20
"""Bytes of the smallest table that is written to a file to save memory."""

Piece = tuple[pa.Table, int | None]
"""Rows, and the least start of all later pieces; ``None`` for the last piece."""


class TooDisorderedError(Exception):
    """Too many rows of a table are out of order for writing it in pieces."""


@dataclass(slots=True, eq=False)
class Spill:
    """Choice of the tables that stay in memory, and the files of the others.

    Args:
        room: Bytes that tables may still take in memory.
        files: The files, by name of the table.
    """

    room: int
    files: dict[str, Path] = field(default_factory=dict)
    _folder: HeldFolder | None = None

    def has_room(self, size: int) -> bool:
        """Return whether a table of ``size`` bytes may stay in memory."""
        return size < _WORTH_A_FILE or size <= self.room

    def keep(self, name: str, table: pa.Table) -> Source:
        """Return ``table``, sorted, or the file with it."""
        if self.has_room(table.nbytes):
            self.room -= table.nbytes
            return table
        return self.write(name, iter([(table, None)]))

    def write(self, name: str, pieces: Iterator[Piece]) -> Path:
        """Write all ``pieces`` of a table to a file, sorted by ``start_ns``; equal rows keep their order.

        Raises:
            TooDisorderedError: more than one piece waits for its turn; there is no file then.
        """
        self._folder = self._folder or HeldFolder()
        path = self._folder.file(f"{name}.parquet")
        try:
            _write_in_order(path, name, pieces)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        self.files[name] = path
        return path


def _write_in_order(path: Path, name: str, pieces: Iterator[Piece]) -> None:
    """Write the rows of each piece as soon as no row of a later piece can come before them."""
    declared = schema.table(name).arrow
    waiting = declared.empty_table()
    with parquet_writer(path, declared) as writer:
        for piece, first_later in pieces:
            largest = piece.num_rows
            given = [pa.concat_tables([waiting, piece]) if waiting.num_rows else piece]
            del piece, waiting
            rows = conform_only(name, given)
            ready = rows.num_rows
            if first_later is not None:
                ready = int(rows["start_ns"].to_numpy().searchsorted(first_later, side="left"))
            for begin in range(0, ready, ROW_GROUP):
                writer.write_table(rows.slice(begin, min(ROW_GROUP, ready - begin)), ROW_GROUP)
            waiting = _copied(rows.slice(ready))
            del rows
            if waiting.num_rows > largest:
                raise TooDisorderedError(name)


def _copied(rows: pa.Table) -> pa.Table:
    """Return a copy of these rows, without the rows around them that share their memory."""
    return rows.take(np.arange(rows.num_rows))


def spill_beyond(most: int | None) -> Spill | None:
    """Return the spill that keeps trace and analysis of this process within ``most`` bytes; ``None`` if no limit."""
    return None if most is None else Spill(max(most - resident(), 0) // _TIMES_THE_TABLES)


def collected(tables: Iterable[tuple[str, pa.Table]], spill: Spill | None = None) -> TraceTables:
    """Return the trace of tables that are made one after the other; each is checked and sorted before the next is made.

    The caller must not use the tables afterwards. If it holds no reference either, no table is in memory twice.

    Args:
        tables: Names and tables.
        spill: Selects the tables that stay in memory, and has files of their reader; ``None`` if all stay.

    Raises:
        SchemaError: as :class:`TraceTables`.
    """
    sources: dict[str, Source] = {}
    for name, table in tables:
        given = [table]
        del table
        given = [conform_only(name, given)]
        sources[name] = given.pop() if spill is None else spill.keep(name, given.pop())
    return TraceTables(sources | (spill.files if spill else {}))
