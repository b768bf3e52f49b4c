"""Shared code for scrubbing SQLite databases: attaching the source read-only to a new file, and copying its tables."""
# ruff: noqa: S608 (names of tables and columns cannot be bound as parameters; they are quoted)

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from traceviz.core.errors import DamagedTraceError, OutputError
from traceviz.scrub.result import CLEANED, UNUSED_STRINGS
from traceviz.scrub.secrets.redactor import SQL_WORDS
from traceviz.untrusted.sqlite import TRIGGERS, in_words, refusal, restrain, strange_tables

MAGIC = b"SQLite format 3\0"

TEXTUAL = "('text', 'blob')"
"""Storage classes, as named by ``typeof``, of values that may hold a text."""
_OUTPUT_FAULTS = frozenset(
    {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}
)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table in the source."""

    table: str
    name: str
    type: str
    required: bool
    is_key: bool

    @property
    def quoted(self) -> str:
        """Its quoted name in SQL."""
        return quoted(self.name)

    @property
    def declaration(self) -> str:
        """Name and type. ``INTEGER PRIMARY KEY`` is kept, since lookups by id depend on it."""
        known = self.type if self.type.upper() in {"INTEGER", "REAL", "TEXT", "BLOB", "NUMERIC"} else ""
        key = " PRIMARY KEY" if self.is_key and self.type.upper() == "INTEGER" else ""
        return f"{self.quoted} {known}{' NOT NULL' if self.required else ''}{key}"

    @property
    def nothing(self) -> str:
        """SQL of the value that replaces a removed one."""
        if not self.required:
            return "NULL"
        return "'[removed]'" if self.type.upper() == "TEXT" else "0"


@contextmanager
def explained(source: Path) -> Iterator[None]:
    """Convert errors of SQLite to errors of the source or of the output."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _OUTPUT_FAULTS:
            raise OutputError(
                "The scrubbed database cannot be written.", str(error), "Choose another place with -o."
            ) from error
        raise DamagedTraceError(
            f"{source} is not a whole SQLite database.",
            in_words(error),
            "Export it again: nsys export --type sqlite REPORT.",
        ) from error


def attached(source: Path, target: Path | None) -> sqlite3.Connection:
    """Open ``target``, an empty file (``None``: no file), with ``source`` attached read-only."""
    db = sqlite3.connect(target.resolve().as_uri() if target else "file::memory:", uri=True)
    db.text_factory = bytes
    db.execute("PRAGMA journal_mode = OFF")  # the target is a temporary file: no extra files, and no rollback needed
    db.execute("PRAGMA synchronous = OFF")
    db.execute("PRAGMA secure_delete = ON")
    restrain(db, source.stat().st_size)
    db.execute("ATTACH ? AS source", (source.resolve().as_uri() + "?mode=ro",))
    return db


def tables_of(db: sqlite3.Connection) -> dict[str, tuple[Column, ...]]:
    """Return the columns of every table of the source.

    Raises:
        DamagedTraceError: a table would compute values during reading.
    """
    strange = strange_tables(db, "source")
    names = db.execute(
        "SELECT name FROM source.sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' "
        "AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name"
    ).fetchall()
    tables = [name.decode() for (name,) in names]
    for name in tables:
        if strange.get(name, TRIGGERS) != TRIGGERS:
            raise refusal(f"Table {name}", strange[name])
    return {name: columns_of(db, name) for name in tables}


def columns_of(db: sqlite3.Connection, table: str) -> tuple[Column, ...]:
    """Return the columns of a table of the source; empty if there is no such table."""
    rows = db.execute(f"PRAGMA source.table_info({quoted(table)})").fetchall()
    keys = sum(row[5] > 0 for row in rows)
    return tuple(
        Column(table, name.decode(), type_.decode(), required=bool(required), is_key=keys == 1 and key > 0)
        for _, name, type_, required, _, key in rows
    )


def copy_rows(
    db: sqlite3.Connection,
    table: str,
    columns: tuple[Column, ...],
    value: Callable[[Column], str],
    condition: str = "1",
) -> int:
    """Create ``table`` in the output, copy the kept rows of the source into it, and return their number.

    Args:
        db: The connection.
        table: Name of the table.
        columns: Its columns.
        value: Returns SQL of the output's values of a column.
        condition: SQL condition of kept rows.
    """
    name = quoted(table)
    db.execute(f"CREATE TABLE main.{name} ({', '.join(column.declaration for column in columns)})")
    values = ", ".join(map(value, columns))
    return db.execute(f"INSERT INTO main.{name} SELECT {values} FROM source.{name} WHERE {condition}").rowcount


def copy_strings(
    db: sqlite3.Connection, table: str, key: str, references: Iterable[tuple[Column, bool]]
) -> Counter[str]:
    """Copy the strings that the output refers to, cleaned by the SQL functions ``clean`` and ``clean_path``.

    Args:
        db: The connection.
        table: The table of the strings.
        key: Declaration of their id column, starting with its name.
        references: Columns of the output that refer to strings, each with a flag that is true for paths.

    Returns:
        Counts of removed strings.
    """
    db.execute("CREATE TEMP TABLE kept (string INTEGER PRIMARY KEY, is_path INTEGER)")
    for column, is_path in references:
        db.execute(
            f"INSERT INTO kept SELECT DISTINCT {column.quoted}, ?1 FROM main.{quoted(column.table)} "
            f"WHERE typeof({column.quoted}) = 'integer' ON CONFLICT (string) DO UPDATE SET is_path = max(is_path, ?1)",
            (is_path,),
        )
    db.execute(f"CREATE TABLE main.{table} ({key}, value TEXT NOT NULL)")
    id_ = key.partition(" ")[0]
    blob = "CAST(value AS BLOB)"
    cleaned = f"iif(is_path, clean_path({blob}), clean({blob}))"
    rows = f"FROM source.{table} JOIN kept ON {id_} = string WHERE value IS NOT NULL"
    kept = db.execute(f"INSERT INTO main.{table} SELECT {id_}, CAST({cleaned} AS TEXT) {rows}").rowcount
    changed = number(db, f"SELECT count(*) {rows} AND {cleaned} <> {blob}")
    total = number(db, f"SELECT count(*) FROM source.{table}")
    return Counter({UNUSED_STRINGS: total - kept, CLEANED: changed})


def words_of(tables: Mapping[str, tuple[Column, ...]]) -> Iterator[bytes]:
    """Yield words of the database itself, which no secret changes: SQL, and names of tables and columns."""
    yield SQL_WORDS
    for name, columns in tables.items():
        yield b" ".join([name.encode(), *(column.name.encode() for column in columns)])


def quoted(name: str) -> str:
    """Quote a name for SQL."""
    return '"' + name.replace('"', '""') + '"'


def number(db: sqlite3.Connection, query: str) -> int:
    """Return the single number that ``query`` yields."""
    return int(db.execute(query).fetchone()[0])
