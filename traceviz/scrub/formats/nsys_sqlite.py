"""Scrubbing an Nsight Systems SQLite database: a new one is built from the allowed parts, and its bytes are searched.

Deleting from a copy would not suffice, as a deleted row stays in the pages of its file. The source is attached
read-only. For each row and column, :mod:`traceviz.scrub.formats.nsys_policy` decides what is copied. Indexes, views and
triggers are not copied.
"""
# ruff: noqa: S608 (names of tables and columns cannot be bound as parameters; they are quoted)

from __future__ import annotations

import json
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import chain
from pathlib import Path

from traceviz.core.errors import UnknownFormatError
from traceviz.scrub.formats import nsys_policy as policy
from traceviz.scrub.formats.nsys_policy import Treatment
from traceviz.scrub.formats.sqlite_copy import (
    TEXTUAL,
    Column,
    attached,
    columns_of,
    copy_rows,
    copy_strings,
    explained,
    number,
    quoted,
    tables_of,
    words_of,
)
from traceviz.scrub.result import CLEANED, HARDWARE_IDS, HOSTS, UNKNOWN_TEXTS, Outcome
from traceviz.scrub.secrets.redactor import Redactor, cached
from traceviz.scrub.secrets.search import BINARY, check_file, leak
from traceviz.scrub.secrets.secrets import (
    base_name,
    secrets_of_arguments,
    secrets_of_property,
    secrets_of_text,
    secrets_of_variable,
    variables_of_block,
)
from traceviz.scrub.secrets.values import Secret, secrets_of_identity
from traceviz.untrusted.json_documents import document_of

_PROCESS_BITS = -(1 << 24)  # a global thread id without the bits of the thread is the global id of its process
_FUNCTIONS = {
    Treatment.CLEAN: "clean",
    Treatment.MESSAGE: "clean_message",
    Treatment.METRICS: "clean_metrics",
    Treatment.PROGRAM: "clean_program",
}
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?")


def secrets_of_database(source: Path) -> list[Secret]:
    """Return the secrets of an Nsight Systems database.

    Raises:
        DamagedTraceError: it cannot be read completely.
    """
    with explained(source), closing(attached(source, None)) as db:
        return _secrets_of(db, tables_of(db), Counter())


def scrub_database(source: Path, target: Path, known: Iterable[Secret] = ()) -> Outcome:
    """Write a scrubbed copy of the database ``source`` to ``target``.

    Arguments and result: see :class:`~traceviz.scrub.formats.registry.FileFormat`.

    Raises:
        UnknownFormatError: ``source`` is not an Nsight Systems database.
        DamagedTraceError: it cannot be read completely.
        OutputError: ``target`` cannot be written, or a secret would remain in it.
    """
    removed, redactor = scrubbed_database(source, target, known)
    return removed, len(redactor.secrets), check_file(target, redactor, BINARY)


def scrubbed_database(source: Path, target: Path, known: Iterable[Secret] = ()) -> tuple[Counter[str], Redactor]:
    """Write a scrubbed copy as :func:`scrub_database` does. Its texts are checked, but not its bytes.

    Returns:
        Kinds and counts of removed data, and the redactor.
    """
    with explained(source), closing(attached(source, target)) as db:
        tables = tables_of(db)
        if not any(
            name.startswith(("CUPTI_", "TARGET_INFO_", "NVTX_EVENTS")) or name == "StringIds" for name in tables
        ):
            raise UnknownFormatError(
                f"{source} is a SQLite database, but not one of Nsight Systems.",
                f"Its tables: {', '.join(sorted(tables)[:8]) or 'none'}.",
                "scrub rewrites exports of nsys and folders of traceviz convert.",
            )
        removed: Counter[str] = Counter()
        _create_owners(db, tables)
        redactor = Redactor.of([*_secrets_of(db, tables, removed), *known], _vocabulary(db, tables))
        _define_functions(db, redactor)
        for name, columns in tables.items():
            if name != "StringIds":
                condition = _row_filter(name, columns, has_samples="COMPOSITE_EVENTS" in tables)
                kept = copy_rows(db, name, columns, _value, condition)
                rows = number(db, f"SELECT count(*) FROM source.{quoted(name)}")
                removed[_row_noun(name)] += rows - kept
                nouns, tests = zip(*map(_change, columns), strict=True)
                sums = ", ".join(f"coalesce(sum({test}), 0)" for test in tests)  # one pass over the table
                counts = db.execute(f"SELECT {sums} FROM source.{quoted(name)} WHERE {condition}").fetchone()
                for noun, count in zip(nouns, counts, strict=True):
                    removed[noun] += count
        if "StringIds" in tables:
            references = (
                (column, column.name == "module")
                for column in chain.from_iterable(tables.values())
                if policy.refers_to_name(column.table, column.name)
            )
            removed.update(copy_strings(db, "StringIds", "id INTEGER NOT NULL PRIMARY KEY", references))
        db.commit()
        # Every text of the output is searched, also those that the file stores in several pieces.
        for column in chain.from_iterable(tables.values()) if redactor.secrets else ():
            if policy.treatment(column.table, column.name) in _FUNCTIONS:
                text = f"CAST({column.quoted} AS BLOB)"
                held = f"CASE WHEN typeof({column.quoted}) IN {TEXTUAL} THEN holds_secret({text}) END"
                if number(db, f"SELECT EXISTS (SELECT 1 FROM main.{quoted(column.table)} WHERE {held})"):
                    raise leak(f"in a text of {column.table}.{column.name}")
    return +removed, redactor


# --- secrets of this file --------------------------------------------------------------------------------------------


def _secrets_of(db: sqlite3.Connection, tables: Iterable[str], removed: Counter[str]) -> list[Secret]:
    """Return the secrets of all places where a report is known to hold some; count them by kind in ``removed``."""
    secrets: list[Secret] = []
    for table in policy.KEY_VALUE_TABLES:
        if table in tables:
            facts = db.execute(f"SELECT CAST(name AS BLOB), CAST(value AS BLOB) FROM source.{table}").fetchall()
            secrets += _secrets_of_facts([(name or b"", value or b"") for name, value in facts], removed)
    if "StringIds" in tables:  # nsys keeps whole environments of processes, also of other users
        blocks = "SELECT CAST(value AS BLOB) FROM source.StringIds WHERE instr(CAST(value AS BLOB), x'00') > 0"
        for (block,) in db.execute(blocks):
            removed["environments of processes, also of other people's"] += 1
            secrets += _secrets_of_variables(variables_of_block(block))
    for table in ("TARGET_INFO_GPU", "TARGET_INFO_CUDA_DEVICE"):
        if any(column.name == "uuid" for column in columns_of(db, table)):
            rows = db.execute(f"SELECT DISTINCT CAST(uuid AS BLOB) FROM source.{table} WHERE length(uuid) >= 16")
            secrets += [Secret(uuid, certain=True) for (uuid,) in rows]
    # All texts that may be kept are judged by their shape. Facts are judged with their keys.
    for column in chain.from_iterable(columns_of(db, table) for table in tables):
        if column.table in policy.KEY_VALUE_TABLES or policy.treatment(column.table, column.name) not in _FUNCTIONS:
            continue
        texts = f"SELECT DISTINCT CAST({column.quoted} AS BLOB) FROM source.{quoted(column.table)}"
        for (text,) in db.execute(f"{texts} WHERE typeof({column.quoted}) IN {TEXTUAL}"):
            secrets += secrets_of_text(text)
    return secrets


def _secrets_of_facts(facts: list[tuple[bytes, bytes]], removed: Counter[str]) -> Iterator[Secret]:
    arguments = []
    for name, value in facts:
        key = name.rpartition(b":")[2]
        if key == b"ENVIRONMENT_VARIABLE":
            variable, _, text = value.partition(b"=")
            removed["environment variables"] += 1
            yield from secrets_of_variable(variable, text.removeprefix(b'"').removesuffix(b'"'))
        elif key == b"DeviceEnvironment":
            variables = variables_of_block(value)
            removed["environment variables"] += len(variables)
            yield from _secrets_of_variables(variables)
        elif key.startswith(b"ARGUMENT_"):
            arguments.append(value)
        elif key in (b"Hostname", b"EXPORT_HOST", b"DEVICE_DISPLAY_NAME"):
            removed[HOSTS] += 1
            yield from secrets_of_identity(value)
        elif key in (b"USER_NAME", b"EXPORT_USER"):
            removed["user names"] += bool(value)
            yield from secrets_of_identity(value)
        elif value.startswith((b"/", b"~")) or value[1:3] == b":\\":
            removed["folders and files of the capture"] += 1
            yield from secrets_of_variable(b"", value)
        else:
            yield from secrets_of_property(key.decode("utf-8", "replace"), value)
    removed["command-line arguments"] += len(arguments)
    yield from secrets_of_arguments(arguments)


def _secrets_of_variables(variables: Iterable[tuple[bytes, bytes]]) -> Iterator[Secret]:
    return chain.from_iterable(secrets_of_variable(name, value) for name, value in variables)


def _vocabulary(db: sqlite3.Connection, tables: dict[str, tuple[Column, ...]]) -> Iterator[bytes]:
    """Yield the names of kernels, functions and profiled programs, and of the tables themselves."""
    yield from words_of(tables)
    if {"globalPid", "name"} <= {column.name for column in tables.get("PROCESSES", ())}:
        programs = "SELECT CAST(name AS BLOB) FROM source.PROCESSES JOIN owners ON process = globalPid"
        yield from (base_name(name or b"") for (name,) in db.execute(programs))
    if "StringIds" not in tables:
        return
    for column in chain.from_iterable(tables.values()):
        if policy.is_vocabulary(column.table, column.name):
            ids = f"SELECT {column.quoted} FROM source.{quoted(column.table)}"
            for (name,) in db.execute(f"SELECT CAST(value AS BLOB) FROM source.StringIds WHERE id IN ({ids})"):
                yield name or b""


# --- copying the allowed parts ---------------------------------------------------------------------------------------


def _define_functions(db: sqlite3.Connection, redactor: Redactor) -> None:
    """Define SQL functions. They take and return blobs, since text may hold NULs and bytes that are not UTF-8."""
    new_numbers: dict[int, int] = {}  # shared by the whole file, as hardware ids join tables

    def renumber(value: int) -> int:
        return new_numbers.setdefault(value, len(new_numbers) + 1)

    functions: dict[str, Callable[[bytes], bytes | bool]] = {
        "clean": cached(redactor.clean),
        "clean_message": cached(redactor.clean_message),
        "clean_program": cached(lambda name: redactor.clean(base_name(name))),
        "clean_metrics": lambda data: redactor.clean(_numeric_members(data)),
        "clean_path": cached(redactor.clean_module),
        "holds_secret": redactor.holds,
    }
    for name, function in functions.items():
        db.create_function(name, 1, function, deterministic=True)
    db.create_function("renumber", 1, renumber)
    db.create_function("keeps_fact", 2, lambda name, value: policy.keeps_fact(name or b"", value or b""))


def _numeric_members(data: bytes) -> bytes:
    """Return a JSON object with only its numeric members; an empty object for anything else."""
    try:
        members = document_of(data)
    except ValueError:
        return b"{}"
    if not isinstance(members, dict):
        return b"{}"
    kept = {
        name: value
        for name, value in members.items()
        if isinstance(value, int | float) or (isinstance(value, str) and _NUMBER.fullmatch(value))
    }
    return data if len(kept) == len(members) else json.dumps(kept).encode()


def _create_owners(db: sqlite3.Connection, tables: dict[str, tuple[Column, ...]]) -> None:
    """Create the temporary table ``owners`` with the global ids of the profiled processes."""
    db.execute("CREATE TEMP TABLE owners (process INTEGER PRIMARY KEY)")
    for column in chain.from_iterable(tables.values()):
        if column.name in ("globalPid", "globalTid") and policy.OWNER_TABLES.match(column.table):
            db.execute(
                f"INSERT OR IGNORE INTO owners SELECT DISTINCT {column.quoted} & {_PROCESS_BITS} "
                f"FROM source.{quoted(column.table)} WHERE typeof({column.quoted}) = 'integer'"
            )


def _row_filter(table: str, columns: tuple[Column, ...], *, has_samples: bool) -> str:
    """Return the SQL condition of the rows to keep."""
    if table in policy.DROPPED_TABLES:
        return "0"
    if table in policy.KEY_VALUE_TABLES:
        return "keeps_fact(CAST(name AS BLOB), CAST(value AS BLOB))"
    if table == "SAMPLING_CALLCHAINS":
        return "id IN (SELECT id FROM main.COMPOSITE_EVENTS)" if has_samples else "0"
    owner = policy.SYSTEM_WIDE_TABLES.get(table)
    if owner is None or owner[0] not in {column.name for column in columns}:
        return "1"
    return f"{owner[0]} & {_PROCESS_BITS} IN (SELECT process FROM owners)"


def _value(column: Column) -> str:
    """Return SQL of the output's values of ``column``."""
    treatment = policy.treatment(column.table, column.name)
    if treatment in _FUNCTIONS:
        cleaned = f"CAST({_FUNCTIONS[treatment]}(CAST({column.quoted} AS BLOB)) AS TEXT)"
        return f"iif(typeof({column.quoted}) IN {TEXTUAL}, {cleaned}, {column.quoted})"
    number = f"renumber({column.quoted})" if treatment is Treatment.IDENTITY else column.quoted
    return (
        f"CASE typeof({column.quoted}) WHEN 'null' THEN NULL WHEN 'text' THEN {column.nothing} "
        f"WHEN 'blob' THEN {column.nothing} ELSE {number} END"
    )


def _change(column: Column) -> tuple[str, str]:
    """Return a noun for the changed values of ``column``, and SQL that tests whether a value changes."""
    treatment = policy.treatment(column.table, column.name)
    if treatment is Treatment.IDENTITY:
        return HARDWARE_IDS, f"{column.quoted} IS NOT NULL"
    is_text = f"typeof({column.quoted}) IN {TEXTUAL} AND length({column.quoted}) > 0"
    if treatment in _FUNCTIONS:
        blob = f"CAST({column.quoted} AS BLOB)"
        return CLEANED, f"CASE WHEN {is_text} THEN {_FUNCTIONS[treatment]}({blob}) <> {blob} END"
    return UNKNOWN_TEXTS, is_text


def _row_noun(table: str) -> str:
    nouns = {
        **policy.DROPPED_TABLES,
        **{name: noun for name, (_, noun) in policy.SYSTEM_WIDE_TABLES.items()},
        "SAMPLING_CALLCHAINS": "stack frames of other processes",
    }
    return nouns.get(table, "facts about machine, user and export")
