"""Changes of SQLite databases by SQL, behind which every page is in order; and changes of pages."""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

from tests.fuzz.mutations import nasty
from tests.fuzz.mutations.octets import spoil

Table = tuple[str, str, list[str]]
"""Name, declaration and columns of a table."""

_CELLS = (
    *("NULL", "0", "-1", "9223372036854775807", "-9223372036854775808", "9223372036854775806", "4294967296", "''"),
    *("1.5", "-1.5", "1e308", "9e999", "-9e999", "x''", "x'00ff'", "cast(x'fffe80' as text)", "zeroblob(70000)"),
    *("'12'", "'-1'", "'1e5'", "'a' || char(0) || 'b'", "char(27) || '[31mred'", "char(8238) || 'abc'", "char(55296)"),
    *("printf('%.*c', 50000, 'A')", "rowid * 7919 % 1000", "rowid * rowid", "rowid", "-rowid", "'/a/b'", "'{\"a\":'"),
)
_DECLARED = ("INTEGER", "TEXT", "REAL", "BLOB", "", "INTEGER NOT NULL DEFAULT 0", "NUMERIC", "TEXT COLLATE NOCASE")


def change(random: Random, path: Path) -> None:
    """Change cells, rows, columns, declarations or the kind of a table once; else change bytes."""
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            database.execute("PRAGMA journal_mode = OFF")
            database.execute("PRAGMA synchronous = OFF")
            table = _table(random, database)
            if table is not None:
                random.choices(list(_CHANGES), list(_CHANGES.values()))[0](random, database, table)
                return
    except (sqlite3.Error, sqlite3.Warning, UnicodeError, OverflowError):
        pass
    path.write_bytes(spoil(random, path.read_bytes()))


def _table(random: Random, database: sqlite3.Connection) -> Table | None:
    """Return a table, most often one with rows."""
    tables = database.execute(
        "SELECT name, coalesce(sql, '') FROM sqlite_master "
        "WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name"
    ).fetchall()
    if not tables:
        return None
    name, declared = random.choice(tables)
    for _ in range(6):
        if random.random() < 0.1 or database.execute(f"SELECT 1 FROM {_name(name)} LIMIT 1").fetchone():
            break
        name, declared = random.choice(tables)
    columns = [row[1] for row in database.execute(f"PRAGMA table_info({_name(name)})")]
    return (name, declared, columns) if columns else None


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''").replace("\0", "") + "'"


def _cells(random: Random, database: sqlite3.Connection, table: Table) -> None:
    name, _, columns = table
    column = _name(random.choice(columns))
    value = random.choice(
        (
            random.choice(_CELLS),
            str(nasty.integer(random)),
            _literal(nasty.text(random)),
            f"{column} + {nasty.integer(random)}",
            f"-{column}",
            f"cast({column} AS {random.choice(('TEXT', 'REAL', 'BLOB'))})",
            f"{column} * 1000000007",
            _name(random.choice(columns)),
            f"{column} || {_literal(nasty.text(random))}",
        )
    )
    rows = random.choice(
        (
            "",
            f"WHERE rowid % {random.randrange(2, 6)} = 0",
            "WHERE rowid = (SELECT max(rowid) FROM {})",
            "WHERE rowid = (SELECT min(rowid) FROM {})",
        )
    ).format(_name(name))
    database.execute(f"UPDATE OR REPLACE {_name(name)} SET {column} = {value} {rows}")


def _rows(random: Random, database: sqlite3.Connection, table: Table) -> None:
    name = _name(table[0])
    columns = ", ".join(map(_name, table[2]))
    database.execute(
        random.choice(
            (
                f"DELETE FROM {name}",
                f"DELETE FROM {name} WHERE rowid % 2 = 0",
                f"INSERT OR IGNORE INTO {name} ({columns}) SELECT {columns} FROM {name}",
                f"INSERT OR IGNORE INTO {name} ({columns}) VALUES ({', '.join(['NULL'] * len(table[2]))})",
            )
        )
    )


def _columns(random: Random, database: sqlite3.Connection, table: Table) -> None:
    name, column = _name(table[0]), _name(random.choice(table[2]))
    other = random.choice((*table[2], "start", "end", "value", "id", "name", "\x1b[31m", "x" * 3000))
    database.execute(
        random.choice(
            (
                f"ALTER TABLE {name} DROP COLUMN {column}",
                f"ALTER TABLE {name} RENAME COLUMN {column} TO {_name(other.upper())}",
                f"ALTER TABLE {name} RENAME COLUMN {column} TO {_name(other + '_')}",
                f"ALTER TABLE {name} ADD COLUMN {_name(other + '2')} DEFAULT {random.choice(_CELLS[:8])}",
            )
        )
    )


def _table_itself(random: Random, database: sqlite3.Connection, table: Table) -> None:
    name = table[0]
    database.execute(
        random.choice(
            (
                f"DROP TABLE {_name(name)}",
                f"ALTER TABLE {_name(name)} RENAME TO {_name(nasty.text(random).replace(chr(0), '') or 'x')}",
                f"ALTER TABLE {_name(name)} RENAME TO {_name(name.upper() + '_')}",
            )
        )
    )


def _made_again(random: Random, database: sqlite3.Connection, table: Table) -> None:
    """Put the same rows into a table that is declared in another way, or seen through a view."""
    name, _, columns = table
    old, new = _name(f"{name} before"), _name(name)
    listed = ", ".join(map(_name, columns))
    kept = [column for column in columns if random.random() < 0.9] or columns[:1]
    generated = random.choice(columns)
    expression = random.choice(
        ("1", "NULL", "'x'", "9223372036854775807", "printf('%.*c', 200000, 'A')", "1.5", "zeroblob(9)")
    )
    key = _name(random.choice(columns))
    declared = ", ".join(f"{_name(column)} {random.choice(_DECLARED)}" for column in columns)
    with_generated = ", ".join(
        f"{_name(column)} AS ({expression}) {random.choice(('STORED', 'VIRTUAL'))}"
        if column == generated
        else _name(column)
        for column in columns
    )
    others = ", ".join(_name(column) for column in columns if column != generated)
    fill = f"INSERT OR IGNORE INTO {new} SELECT {listed} FROM {old}"
    limited = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT {random.choice((3, 40000))})"
    ways: tuple[tuple[str, ...], ...] = (
        (f"CREATE VIEW {new} AS SELECT {listed} FROM {old}",),
        (f"CREATE VIEW {new} AS {limited} SELECT {', '.join(f'i AS {_name(c)}' for c in columns)} FROM n",),
        (f"CREATE TABLE {new} ({declared})", fill),
        (f"CREATE TABLE {new} ({listed}, PRIMARY KEY ({key})) WITHOUT ROWID", fill),
        (f"CREATE TABLE {new} ({with_generated})", f"INSERT INTO {new} ({others}) SELECT {others} FROM {old}"),
        (f"CREATE TABLE {new} AS SELECT {', '.join(map(_name, kept))} FROM {old}",),
        (f"CREATE TABLE {new} ({', '.join(_name(column) for column in kept)})",),
        (f"CREATE VIRTUAL TABLE {new} USING fts5({', '.join(f'c{i}' for i in range(len(columns)))})",),
        (f"CREATE VIEW {new} AS SELECT * FROM {new}",),
    )
    database.execute(f"ALTER TABLE {new} RENAME TO {old}")
    for statement in random.choice(ways):
        database.execute(statement)
    if random.random() < 0.5:
        database.execute(f"DROP TABLE {old}")


def _schema(random: Random, database: sqlite3.Connection, table: Table) -> None:
    """Change the schema of a table, against all rules."""
    name, declared, _ = table
    database.execute("PRAGMA writable_schema = ON")
    page = random.choice((-1, 0, 1, 2, 3, 5, 2**31 - 1, 2**32, "NULL", "'x'"))
    other = "(SELECT max(rootpage) FROM sqlite_master)"
    sql = spoil(random, declared.encode()).decode("utf-8", "ignore")
    kinds = declared.replace("INTEGER", random.choice(("TEXT", "REAL", "BLOB", "", "INT AS (1)")))
    changes = (
        *(f"rootpage = {page}", f"rootpage = {other}", f"sql = {_literal(sql)}", f"sql = {_literal(kinds)}"),
        *(f"sql = {_literal(nasty.text(random))}", f"name = {_literal(nasty.text(random))}"),
        *("type = 'view'", "type = 'index'"),
    )
    database.execute(f"UPDATE sqlite_master SET {random.choice(changes)} WHERE name = {_literal(name)}")


def _besides(random: Random, database: sqlite3.Connection, table: Table) -> None:
    """Add triggers, indexes and pragmas to the tables."""
    name, _, columns = table
    column = _name(random.choice(columns))
    other = _name(nasty.text(random).replace("\0", ""))
    database.execute(
        random.choice(
            (
                f"CREATE TRIGGER t AFTER INSERT ON {_name(name)} BEGIN SELECT raise(ABORT, 'x'); END",
                f"CREATE TRIGGER {other} AFTER DELETE ON {_name(name)} BEGIN SELECT 1; END",
                f"CREATE INDEX i ON {_name(name)} ({column})",
                f"CREATE INDEX i2 ON {_name(name)} ({column} + 1)",
                f"CREATE TABLE {other} (a)",
                f"PRAGMA user_version = {random.choice((-1, 1, 2**31 - 1))}",
                f"PRAGMA application_id = {random.choice((-1, 1, 2**31 - 1))}",
            )
        )
    )


_CHANGES: dict[Callable[[Random, sqlite3.Connection, Table], Any], int] = {
    _cells: 12,
    _rows: 2,
    _columns: 3,
    _table_itself: 1,
    _made_again: 4,
    _schema: 2,
    _besides: 1,
}


def spoil_page(random: Random, path: Path) -> None:
    """Change one field of the head of the file, or of the head of a page, or some bytes of a page."""
    data = bytearray(path.read_bytes())
    if len(data) < 200:
        path.write_bytes(spoil(random, bytes(data)))
        return
    size = struct.unpack_from(">H", data, 16)[0]
    size = size if size >= 512 else 4096
    begin = random.randrange(len(data) // size + 1) * size
    if begin >= len(data):
        begin = 0
    number = random.choice((0, 1, 2, 5, 10, 13, 255, 32_768, 65_535))
    if begin == 0 and random.random() < 0.5:
        at = random.choice((16, 18, 19, 20, 21, 24, 28, 32, 36, 40, 44, 47, 52, 56, 59, 60, 92, 96))
    else:
        at = begin + (100 if begin == 0 else 0) + random.choice((0, 1, 3, 5, 7, 8, 9, 10, 12, random.randrange(size)))
    if at + 2 <= len(data):
        if random.random() < 0.5:
            data[at] = number & 255
        else:
            struct.pack_into(">H", data, at, number)
    path.write_bytes(bytes(data))
