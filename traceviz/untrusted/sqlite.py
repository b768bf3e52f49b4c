"""Untrusted databases. SQLite computes what a file asks for, so a small file may ask for gigabytes and hours.

A trace holds values and nothing to compute. So a connection gets limits for what a file of its size can hold. Objects
in place of plain tables are reported, and the caller refuses them: views, virtual tables, and tables with computed
columns, default values or triggers. No profiler writes these.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from traceviz.core.errors import DamagedTraceError

_LEAST_LENGTH = 1 << 20
"""Bytes of a value or a row that every file may have: what we compute from a small file also needs room."""
_LIMITS = {
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 1_000_000,
    sqlite3.SQLITE_LIMIT_COLUMN: 2_000,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 200,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 10,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 1_000_000,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 16,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 1_000,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
"""Limits far above our own queries and the tables of real traces (up to 41 columns, 4,449 characters of SQL)."""
_PRAGMAS = ("trusted_schema = OFF", "cell_size_check = ON", "mmap_size = 0")
"""Functions in a schema may only compute, cells must fit their page, and a file that shrinks during the read causes a
read error.
"""
_LONGEST_DEFAULT = 64
"""Characters of the longest default value, which rows have without storing it."""
_STEPS_PER_BYTE = 200
"""Steps of SQLite's machine for each byte of the file: all work on a trace takes some five."""
_LEAST_STEPS = 50_000_000
"""Steps that any file may take, less than a second."""
_STEPS_AT_ONCE = 1_000_000

TRIGGERS = "a table with triggers"
"""Text of :func:`strange_tables` for a table where only writing has effects."""
_STRANGE = """
SELECT name, 'a view' FROM {schema}.sqlite_master WHERE type = 'view'
UNION ALL SELECT name, 'a virtual table' FROM {schema}.sqlite_master
    WHERE type = 'table' AND (coalesce(rootpage, 0) <= 0 OR sql LIKE 'CREATE VIRTUAL%')
UNION ALL SELECT tbl_name, '{triggers}' FROM {schema}.sqlite_master WHERE type = 'trigger'
UNION ALL SELECT t.name, 'a table with generated columns'
    FROM {schema}.sqlite_master AS t, pragma_table_xinfo(t.name, '{schema}') AS c
    WHERE t.type = 'table' AND t.rootpage > 0 AND c.hidden > 1
UNION ALL SELECT t.name, 'a table that fills in long values'
    FROM {schema}.sqlite_master AS t, pragma_table_info(t.name, '{schema}') AS c
    WHERE t.type = 'table' AND t.rootpage > 0 AND length(c.dflt_value) > {longest}
"""


def read_only_uri(path: Path) -> str:
    """Return the URI that opens ``path`` without locks, without a journal, and without writing files next to it."""
    return f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1"


@contextmanager
def foreign_database(path: Path) -> Iterator[sqlite3.Connection]:
    """Open the database ``path`` for reading, with limits, and close it at the end.

    Raises:
        sqlite3.Error, OSError: it cannot be opened.
    """
    with closing(open_foreign(path)) as connection:
        yield connection


def open_foreign(path: Path) -> sqlite3.Connection:
    """Open the database ``path`` for reading, with limits.

    Raises:
        sqlite3.Error, OSError: it cannot be opened.
    """
    connection = sqlite3.connect(read_only_uri(path), uri=True)
    try:
        restrain(connection, path.stat().st_size)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        connection.execute("PRAGMA query_only = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def restrain(connection: sqlite3.Connection, size: int) -> None:
    """Give ``connection`` the limits of a database of ``size`` bytes.

    No value is longer than twice the file (UTF-16 may grow when it becomes UTF-8). After some hundred steps per byte, a
    query ends with ``sqlite3.OperationalError`` and the code ``SQLITE_INTERRUPT``.
    """
    for category, most in _LIMITS.items():
        connection.setlimit(category, most)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(max(2 * size, _LEAST_LENGTH), 1_000_000_000))
    for pragma in _PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")
    left = (_LEAST_STEPS + _STEPS_PER_BYTE * size) // _STEPS_AT_ONCE

    def is_too_much() -> bool:
        nonlocal left
        left -= 1
        return left < 0

    connection.set_progress_handler(is_too_much, _STEPS_AT_ONCE)


def strange_tables(connection: sqlite3.Connection, schema: str = "main") -> Mapping[str, str]:
    """Return the objects in place of plain tables, by name: ``{"StringIds": "a view"}``.

    Raises:
        sqlite3.Error, UnicodeDecodeError: the catalogue cannot be read.
    """
    rows = connection.execute(_STRANGE.format(schema=schema, longest=_LONGEST_DEFAULT, triggers=TRIGGERS)).fetchall()
    return {_text(name): _text(what) for name, what in rows}


def refusal(name: str, what: str) -> DamagedTraceError:
    """Return the error for table ``name``; ``what`` is its kind from :func:`strange_tables`."""
    return DamagedTraceError(
        f"{name} is not as a profiler writes it.",
        f"It is {what}: what is computed while it is read could take any time and memory.",
        "Export the trace again, or remove from the file what was added to it.",
    )


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("utf-8", "replace")


def in_words(error: Exception) -> str:
    """Return the message of ``error``, as a sentence if SQLite only gives the name of a limit."""
    code = getattr(error, "sqlite_errorcode", 0)
    if code == sqlite3.SQLITE_INTERRUPT:
        return "Reading it takes more steps than a file of its size can need"
    if code == sqlite3.SQLITE_TOOBIG:
        return "A value is longer than the file"
    return str(error)
