"""``--where``: catalogue rows that meet a condition, such as ``verdict = 'highly input-bound' and rank = 0``."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import polars as pl

from traceviz.archive.query.engine import WRONG, connect, explain_errors, fill
from traceviz.archive.query.guard import tables_read
from traceviz.archive.query.views import TIMES
from traceviz.core.errors import UsageError
from traceviz.core.process.temporary import temporary_folder
from traceviz.core.sanitize import Lines

SHORTEST = 4
"""Minimum length of a unique id prefix."""
_LISTED = 4
_ROW = "row of the catalogue"
"""Name of the column that identifies rows. No condition uses it by accident."""
_BEFORE = 3
"""Line of the query on which a condition starts."""


def where(rows: pl.DataFrame, condition: str | None) -> pl.DataFrame:
    """Return the catalogue rows that meet a condition, in order; all rows without a condition.

    Args:
        rows: Rows of the catalogue, or some of its columns.
        condition: A boolean expression of DuckDB's SQL over the columns of ``rows``. ``tags['batch']`` is the value of
            a tag; ``recorded`` and ``added`` are timestamps (UTC). Rows count if it is true. A value that was not
            measured is neither above a limit nor below it.

    Raises:
        UsageError: the condition is not valid. The error names an unknown column and lists the known ones.
    """
    if condition is None:
        return rows
    with temporary_folder("traceviz-where-") as spill, connect(str(spill)) as connection:
        fill(connection, "given_rows", rows.with_row_index(_ROW))
        return rows[_matching(connection, rows, condition)]


def _matching(connection: duckdb.DuckDBPyConnection, rows: pl.DataFrame, condition: str) -> list[int]:
    """Return the positions of the rows that meet the condition.

    Raises:
        UsageError: the condition is not valid.
    """
    has_times = {"recorded_ns", "added_ns"} <= set(rows.columns)
    times = f", {TIMES}" if has_times else ""
    connection.execute(f"CREATE VIEW catalogue AS SELECT *{times} FROM given_rows")  # noqa: S608 (no input)
    query = f'SELECT "{_ROW}",\n(\n{condition}\n) FROM catalogue'  # noqa: S608 (only this one reads, and only the rows)
    try:
        with explain_errors(connection, query):
            tables_read(connection, query)
            relation = connection.sql(query)
            _check_is_condition(relation)
            answers = relation.fetchall()
    except UsageError as error:
        fix = f"Columns: {', '.join(rows.columns)}."
        raise UsageError(f"--where {condition!r} is not a condition.", _why(error, condition), fix) from error
    return sorted(position for position, holds in answers if holds)


def _check_is_condition(relation: duckdb.DuckDBPyRelation) -> None:
    """Raise unless the condition is boolean.

    Raises:
        UsageError: it is not boolean.
    """
    if [str(kind) for kind in relation.types[1:]] != ["BOOLEAN"]:
        raise UsageError("It is a value, neither true nor false: compare something, as in input_share > 0.1.")


def _why(error: UsageError, condition: str) -> str:
    """Return the reason in terms of the condition alone, without the surrounding query."""
    if _ROW in error.why:
        return "It sums up rows, and is asked of each row."
    if error.what != WRONG:
        return error.what
    message, _, position = error.why.partition("\nLINE ")
    line, _, mark = position.partition("\n")
    number, _, shown = line.partition(": ")
    last = _BEFORE + condition.count("\n")
    if number.isdigit() and int(number) > last:
        return "It ends too early, or a parenthesis has no partner."
    if number != str(last):
        return Lines.of(*message.splitlines())
    return Lines.of(*message.splitlines(), shown, mark.removeprefix(" " * len(f"LINE {number}: ")))


def full_id(rows: pl.DataFrame, prefix: str) -> str:
    """Return the id that starts with ``prefix``.

    Raises:
        UsageError: no trace has such an id, or several have.
    """
    ids = rows["trace_id"].unique().sort()
    matches = ids.filter(ids.str.starts_with(prefix.lower())).to_list() if len(prefix) >= SHORTEST else []
    if len(matches) == 1:
        return str(matches[0])
    if len(prefix) < SHORTEST:
        raise UsageError(f"{prefix!r} is too short for an id.", f"At least {SHORTEST} digits are needed.")
    if not matches:
        raise UsageError(f"There is no trace {prefix!r}.", fix="List the traces: traceviz archive list ARCHIVE")
    shown = ", ".join(matches[:_LISTED]) + (", ..." if len(matches) > _LISTED else "")
    raise UsageError(f"{len(matches)} traces begin with {prefix!r}: {shown}.", fix="Give more digits.")


def select_ids(rows: pl.DataFrame, prefixes: Sequence[str], condition: str | None) -> list[str]:
    """Return the ids of traces with these prefixes, or of those that meet a condition, in order.

    Args:
        rows: Rows of the catalogue to select from.
        prefixes: First digits of ids.
        condition: An expression of SQL on the columns of the catalogue; one matching rank is enough.

    Raises:
        UsageError: neither or both are given; no trace has such an id; the condition is not valid.
    """
    if bool(prefixes) == bool(condition):
        raise UsageError("Traces are selected either by their ids or by --where.", fix="Give one of the two.")
    if condition:
        return sorted(set(where(rows, condition)["trace_id"]))
    return list(dict.fromkeys(full_id(rows, prefix) for prefix in prefixes))
