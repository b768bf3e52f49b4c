"""Scrubbing nvprof databases: records of CUPTI, nearly all numbers, and one table of strings that they refer to.

As for Nsight Systems, a new database is built from the parts that may stay: numbers, strings that a listed column
refers to, and listed fields of bytes, which are numbers to CUPTI. Compiled programs and ids of hardware go.
"""
# ruff: noqa: S608 (names of tables and columns cannot be bound as parameters; they are quoted)

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

from traceviz.parsers.nvprof.constants import PREFIX, STRINGS
from traceviz.scrub.formats.sqlite_copy import Column, attached, explained, number, quoted, tables_of
from traceviz.scrub.result import CLEANED, HARDWARE_IDS, MESSAGES, UNKNOWN_TEXTS, UNUSED_STRINGS, Outcome
from traceviz.scrub.secrets.search import check_file, leak
from traceviz.scrub.secrets.secrets import SQL_WORDS, Redactor, Secret, base_name, cached, secrets_of_text

_NAMES = frozenset({"name", "domain", "kernelName", "varName", "funcName", "fileName", "srcFile"})
"""Columns that refer to strings that stay, in any table of records."""
_FILE_NAMES = frozenset({"fileName", "srcFile"})
"""Columns of these that refer to files, of which the base name stays."""
_VOCABULARY = ("KERNEL", "CONCURRENT_KERNEL", "CDP_KERNEL", "FUNCTION")
_BYTES = frozenset({"objectId", "cacheConfig", "payload", "value", "attribute", "data"})
"""Fields of bytes that stay: numbers of CUPTI, in unions."""
_LONGEST_BYTES = 32
_IDS = frozenset({"uuid", "idDev0", "idDev1", "id", "attr"})
"""Fields of bytes that identify hardware."""

Tables = Mapping[str, tuple[Column, ...]]


def secrets_of_nvprof(source: Path) -> list[Secret]:
    """Secrets of an nvprof database, by the shape of its strings: it holds nothing of the environment.

    Raises:
        DamagedTraceError: it cannot be read to its end.
    """
    with explained(source), closing(attached(source, None)) as db:
        return list(_secrets_of(db, tables_of(db)))


def scrub_nvprof(source: Path, target: Path, known: Iterable[Secret] = ()) -> Outcome:
    """Write a scrubbed copy of the nvprof database ``source`` to ``target``.

    Args:
        source: The file. It is only read.
        target: The file to write.
        known: Secrets that other files gave away.

    Returns:
        What was removed and how often, the number of secrets looked for, and the bytes searched for them.

    Raises:
        DamagedTraceError: ``source`` cannot be read to its end.
        OutputError: ``target`` cannot be written, or a secret would have stayed in it.
    """
    removed: Counter[str] = Counter()
    with explained(source), closing(attached(source, target)) as db:
        tables = tables_of(db)
        redactor = Redactor.of([*_secrets_of(db, tables), *known], _vocabulary(db, tables))
        db.create_function("clean", 2, _cleaner(redactor), deterministic=True)
        db.create_function("holds_secret", 1, redactor.holds, deterministic=True)
        for name, columns in tables.items():
            if name != STRINGS:
                removed.update(_copy(db, name, columns))
        if STRINGS in tables:
            removed.update(_copy_strings(db, tables))
        db.commit()
        _check_strings(db, tables)
    return +removed, len(redactor.secrets), check_file(target, redactor.spelled)


def _secrets_of(db: sqlite3.Connection, tables: Tables) -> Iterator[Secret]:
    if STRINGS in tables:
        for (text,) in db.execute(f"SELECT CAST(value AS BLOB) FROM source.{STRINGS}"):
            yield from secrets_of_text(text or b"")


def _vocabulary(db: sqlite3.Connection, tables: Tables) -> Iterator[bytes]:
    """Names of kernels, and of the tables themselves."""
    yield SQL_WORDS
    for name, columns in tables.items():
        yield b" ".join([name.encode(), *(column.name.encode() for column in columns)])
        is_of_kernels = name.removeprefix(PREFIX) in _VOCABULARY and "name" in {column.name for column in columns}
        if is_of_kernels and STRINGS in tables:
            ids = f"SELECT name FROM source.{quoted(name)}"
            for (text,) in db.execute(f"SELECT CAST(value AS BLOB) FROM source.{STRINGS} WHERE _id_ IN ({ids})"):
                yield text or b""


def _cleaner(redactor: Redactor) -> Callable[[bytes, int], bytes]:
    clean = cached(redactor.clean)
    clean_file_name = cached(lambda name: redactor.clean(base_name(name)))
    return lambda name, is_file: clean_file_name(name) if is_file else clean(name)


def _copy(db: sqlite3.Connection, table: str, columns: tuple[Column, ...]) -> Counter[str]:
    """Create ``table`` in the output and fill it; returns what was removed."""
    name = quoted(table)
    db.execute(f"CREATE TABLE main.{name} ({', '.join(column.declaration for column in columns)})")
    values = ", ".join(map(_value, columns))
    db.execute(f"INSERT INTO main.{name} SELECT {values} FROM source.{name}")
    removed: Counter[str] = Counter()
    for column in columns:
        kept = f" AND NOT ({_stays(column)})" if column.name in _BYTES else ""
        lost = f"typeof({column.quoted}) IN ('text', 'blob') AND length({column.quoted}) > 0{kept}"
        removed[_noun(column)] += number(db, f"SELECT count(*) FROM source.{name} WHERE {lost}")
    return removed


def _value(column: Column) -> str:
    """SQL of the output's values of ``column``."""
    kept = f"WHEN {_stays(column)} THEN {column.quoted} " if column.name in _BYTES else ""
    return (
        f"CASE {kept}WHEN typeof({column.quoted}) = 'blob' THEN zeroblob(min(length({column.quoted}), 16)) "
        f"WHEN typeof({column.quoted}) = 'text' THEN {column.nothing} ELSE {column.quoted} END"
    )


def _stays(column: Column) -> str:
    return f"typeof({column.quoted}) = 'blob' AND length({column.quoted}) <= {_LONGEST_BYTES}"


def _noun(column: Column) -> str:
    if column.name == "cubin":
        return MESSAGES
    return HARDWARE_IDS if column.name in _IDS else UNKNOWN_TEXTS


def _copy_strings(db: sqlite3.Connection, tables: Tables) -> Counter[str]:
    """Copy the strings that a listed column refers to; returns what was removed."""
    db.execute("CREATE TEMP TABLE kept (id INTEGER PRIMARY KEY, is_file INTEGER)")
    for table, columns in tables.items():
        for column in columns:
            if table.startswith(PREFIX) and column.name in _NAMES:
                db.execute(
                    f"INSERT INTO kept SELECT DISTINCT {column.quoted}, ?1 FROM main.{quoted(table)} "
                    f"WHERE typeof({column.quoted}) = 'integer' "
                    "ON CONFLICT (id) DO UPDATE SET is_file = max(is_file, ?1)",
                    (column.name in _FILE_NAMES,),
                )
    db.execute(f"CREATE TABLE main.{STRINGS} (_id_ INTEGER PRIMARY KEY, value TEXT NOT NULL)")
    blob = "CAST(value AS BLOB)"
    rows = f"FROM source.{STRINGS} JOIN kept ON _id_ = id WHERE value IS NOT NULL"
    kept = db.execute(f"INSERT INTO main.{STRINGS} SELECT _id_, CAST(clean({blob}, is_file) AS TEXT) {rows}").rowcount
    changed = number(db, f"SELECT count(*) {rows} AND clean({blob}, is_file) <> {blob}")
    total = number(db, f"SELECT count(*) FROM source.{STRINGS}")
    return Counter({UNUSED_STRINGS: total - kept, CLEANED: changed})


def _check_strings(db: sqlite3.Connection, tables: Tables) -> None:
    """Read every string back; this also sees those that the file stores in several pieces."""
    held = f"SELECT EXISTS (SELECT 1 FROM main.{STRINGS} WHERE holds_secret(CAST(value AS BLOB)))"
    if STRINGS in tables and number(db, held):
        raise leak(f"in a text of {STRINGS}")
