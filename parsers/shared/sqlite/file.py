"""Checks of an SQLite file from outside: its kind, its completeness, and the names of its tables."""

from __future__ import annotations

from pathlib import Path

from traceviz.core.errors import DamagedTraceError
from traceviz.untrusted.sqlite import foreign_database

MAGIC = b"SQLite format 3\0"


def quoted(name: str) -> str:
    """Return ``name`` as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def table_names(path: Path) -> frozenset[str]:
    """Return the names of the tables and views in the database ``path``.

    Raises:
        sqlite3.Error, OSError, ValueError: its catalogue cannot be read.
    """
    with foreign_database(path) as connection:
        query = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
        return frozenset(name for (name,) in connection.execute(query))


def check_complete(path: Path) -> None:
    """Compare the size of an SQLite file with the number of pages that its header states.

    The count is valid if the header's change counter equals its "version valid for" number (SQLite file format, section
    1.3.7); writers since SQLite 3.7.0 keep them equal.

    Raises:
        DamagedTraceError: the file is shorter.
    """
    with path.open("rb") as file:
        header = file.read(100)
    size = path.stat().st_size
    whole = 0
    if len(header) == 100 and header[24:28] == header[92:96]:
        page = int.from_bytes(header[16:18], "big")
        whole = int.from_bytes(header[28:32], "big") * (65536 if page == 1 else page)
    if len(header) < 100 or size < whole:
        raise DamagedTraceError(
            f"{path.name} is cut short.",
            f"It holds {size:,} bytes; its header says {max(whole, 100):,}.",
            "Copy or export it again.",
        )


def unread_log(path: Path) -> tuple[tuple[str, str, str], ...]:
    """Return a note on a write-ahead log next to the database. It is not read: that would write to the folder."""
    log = path.with_name(path.name + "-wal")
    if not log.is_file() or not log.stat().st_size:
        return ()
    return (("sqlite-log-ignored", "warning", f"{log.name} holds changes that are not in the file yet: not read."),)
