"""SQLite databases: every column of every table, its first row or all of them."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.extremes.values import ABSENT, Place, Sample, in_utf8


class SqliteSample(Sample):
    """A database.

    Args:
        path: Where it lies.
        rows: Which rows change, in SQL: behind WHERE.
    """

    def __init__(self, path: Path, rows: str = "") -> None:
        self._path, self._rows = path, rows

    def places(self) -> list[Place]:
        query = (
            "SELECT t.name, c.name FROM sqlite_master AS t JOIN pragma_table_info(t.name) AS c "
            "WHERE t.type = 'table' ORDER BY t.name, c.cid"
        )
        with closing(sqlite3.connect(self._path)) as connection:
            return [(table, column) for table, column in connection.execute(query)]

    def write(self, place: Place, value: Any, folder: Path) -> Path | None:
        table, column = place
        if self._rows != "first" and isinstance(value, str) and len(value) > 1000:
            return None  # a megabyte in each row is another test's business
        path = folder / self._path.name
        shutil.copy(self._path, path)
        path.chmod(0o644)
        with closing(sqlite3.connect(path)) as connection:
            try:
                if value is ABSENT:
                    connection.execute(f'ALTER TABLE "{table}" DROP COLUMN "{column}"')
                else:
                    stored = float(value) if value == 2**63 else in_utf8(value) if isinstance(value, str) else value
                    new = "CAST(? AS TEXT)" if isinstance(value, str) else "?"
                    first = f'WHERE rowid = (SELECT min(rowid) FROM "{table}")' if self._rows == "first" else ""
                    connection.execute(f'UPDATE "{table}" SET "{column}" = {new} {first}', (stored,))
                connection.commit()
            except (sqlite3.IntegrityError, sqlite3.OperationalError):
                return None  # SQLite itself keeps such a value out
        return path
