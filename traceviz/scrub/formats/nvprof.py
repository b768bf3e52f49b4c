"""Scrubbing nvprof databases: records of CUPTI (nearly all numbers), and one table of strings that they refer to.

As for Nsight Systems, a new database is built from the allowed parts: numbers, strings that a listed column refers to,
and listed fields of bytes, which are numbers in CUPTI. Compiled programs and hardware ids are removed.
"""
# ruff: noqa: S608 (names of tables and columns cannot be bound as parameters; they are quoted)

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from itertools import chain
from pathlib import Path

from traceviz.parsers.nvprof.constants import PREFIX, STRINGS
from traceviz.scrub.formats.sqlite_copy import (
    TEXTUAL,
    Column,
    attached,
    copy_rows,
    copy_strings,
    explained,
    number,
    quoted,
    tables_of,
    words_of,
)
from traceviz.scrub.result import HARDWARE_IDS, MESSAGES, UNKNOWN_TEXTS, Outcome
from traceviz.scrub.secrets.redactor import Redactor, cached
from traceviz.scrub.secrets.search import BINARY, check_file, leak
from traceviz.scrub.secrets.secrets import base_name, secrets_of_text
from traceviz.scrub.secrets.values import Secret

_NAMES = frozenset({"name", "domain", "kernelName", "varName", "funcName", "fileName", "srcFile"})
"""Columns that refer to kept strings, in any table of records."""
_FILE_NAMES = frozenset({"fileName", "srcFile"})
"""Subset of :data:`_NAMES` that refers to files. Only the base name is kept."""
_VOCABULARY = ("KERNEL", "CONCURRENT_KERNEL", "CDP_KERNEL", "FUNCTION")
_BYTES = frozenset({"objectId", "cacheConfig", "payload", "value", "attribute", "data"})
"""Fields of bytes that are kept: numbers of CUPTI, in unions."""
_LONGEST_BYTES = 32
_IDS = frozenset({"uuid", "idDev0", "idDev1", "id", "attr"})
"""Fields of bytes that identify hardware."""

Tables = Mapping[str, tuple[Column, ...]]


def secrets_of_nvprof(source: Path) -> list[Secret]:
    """Return the secrets of an nvprof database by the shape of its strings. It holds no environment.

    Raises:
        DamagedTraceError: it cannot be read completely.
    """
    with explained(source), closing(attached(source, None)) as db:
        return list(_secrets_of(db, tables_of(db)))


def scrub_nvprof(source: Path, target: Path, known: Iterable[Secret] = ()) -> Outcome:
    """Write a scrubbed copy of the nvprof database ``source`` to ``target``.

    Arguments and result: see :class:`~traceviz.scrub.formats.registry.FileFormat`.

    Raises:
        DamagedTraceError: ``source`` cannot be read completely.
        OutputError: ``target`` cannot be written, or a secret would remain in it.
    """
    removed: Counter[str] = Counter()
    with explained(source), closing(attached(source, target)) as db:
        tables = tables_of(db)
        redactor = Redactor.of([*_secrets_of(db, tables), *known], _vocabulary(db, tables))
        db.create_function("clean", 1, cached(redactor.clean), deterministic=True)
        clean_path = cached(lambda path: redactor.clean(base_name(path)))
        db.create_function("clean_path", 1, clean_path, deterministic=True)
        db.create_function("holds_secret", 1, redactor.holds, deterministic=True)
        for name, columns in tables.items():
            if name != STRINGS:
                copy_rows(db, name, columns, _value)
                for column in columns:
                    kept = f" AND NOT ({_stays(column)})" if column.name in _BYTES else ""
                    lost = f"typeof({column.quoted}) IN {TEXTUAL} AND length({column.quoted}) > 0{kept}"
                    noun = (
                        MESSAGES if column.name == "cubin" else HARDWARE_IDS if column.name in _IDS else UNKNOWN_TEXTS
                    )
                    removed[noun] += number(db, f"SELECT count(*) FROM source.{quoted(name)} WHERE {lost}")
        if STRINGS in tables:
            references = (
                (column, column.name in _FILE_NAMES)
                for column in chain.from_iterable(tables.values())
                if column.table.startswith(PREFIX) and column.name in _NAMES
            )
            removed.update(copy_strings(db, STRINGS, "_id_ INTEGER PRIMARY KEY", references))
        db.commit()
        # This also finds strings that the file stores in several pieces.
        held = f"SELECT EXISTS (SELECT 1 FROM main.{STRINGS} WHERE holds_secret(CAST(value AS BLOB)))"
        if STRINGS in tables and number(db, held):
            raise leak(f"in a text of {STRINGS}")
    return +removed, len(redactor.secrets), check_file(target, redactor, BINARY)


def _secrets_of(db: sqlite3.Connection, tables: Tables) -> Iterator[Secret]:
    if STRINGS in tables:
        for (text,) in db.execute(f"SELECT CAST(value AS BLOB) FROM source.{STRINGS}"):
            yield from secrets_of_text(text or b"")


def _vocabulary(db: sqlite3.Connection, tables: Tables) -> Iterator[bytes]:
    """Yield the names of kernels, and of the tables themselves."""
    yield from words_of(tables)
    for name, columns in tables.items():
        is_of_kernels = name.removeprefix(PREFIX) in _VOCABULARY and "name" in {column.name for column in columns}
        if is_of_kernels and STRINGS in tables:
            ids = f"SELECT name FROM source.{quoted(name)}"
            for (text,) in db.execute(f"SELECT CAST(value AS BLOB) FROM source.{STRINGS} WHERE _id_ IN ({ids})"):
                yield text or b""


def _value(column: Column) -> str:
    """Return SQL of the output's values of ``column``."""
    kept = f"WHEN {_stays(column)} THEN {column.quoted} " if column.name in _BYTES else ""
    return (
        f"CASE {kept}WHEN typeof({column.quoted}) = 'blob' THEN zeroblob(min(length({column.quoted}), 16)) "
        f"WHEN typeof({column.quoted}) = 'text' THEN {column.nothing} ELSE {column.quoted} END"
    )


def _stays(column: Column) -> str:
    return f"typeof({column.quoted}) = 'blob' AND length({column.quoted}) <= {_LONGEST_BYTES}"
