"""``--where``: rows of the catalogue that meet a condition, ``verdict = 'highly input-bound' and rank = 0``."""

from __future__ import annotations

import tempfile

import duckdb
import polars as pl

from traceviz.archive.query.engine import WRONG, connect, explained, fill
from traceviz.archive.query.guard import tables_read
from traceviz.archive.query.views import TIMES
from traceviz.errors import UsageError

_ROW = "row of the catalogue"
"""Name of the column by which rows are told apart; no condition can mean it by accident."""
_BEFORE = 3
"""Line of the query on which a condition begins."""


def where(rows: pl.DataFrame, condition: str) -> pl.DataFrame:
    """The rows of the catalogue for which a condition holds, in their order.

    Args:
        rows: Rows of the catalogue, or some of its columns.
        condition: An expression of DuckDB's SQL that is true or false, over the columns of ``rows``; ``tags['batch']``
            is the value of a tag, ``recorded`` and ``added`` are the times as timestamps (UTC). It holds where it is
            true: what was not measured is neither above a limit nor below it.

    Raises:
        UsageError: it is no condition; the error names the column that does not exist, and those that do.
    """
    with tempfile.TemporaryDirectory(prefix="traceviz-where-", ignore_cleanup_errors=True) as spill:
        connection = connect(spill)
        try:
            fill(connection, "given_rows", rows.with_row_index(_ROW))
            kept = _matching(connection, rows, condition)
        finally:
            connection.close()
    return rows[kept]


def _matching(connection: duckdb.DuckDBPyConnection, rows: pl.DataFrame, condition: str) -> list[int]:
    """Positions of the rows for which the condition is true.

    Raises:
        UsageError: it is no condition.
    """
    has_times = {"recorded_ns", "added_ns"} <= set(rows.columns)
    times = f", {TIMES}" if has_times else ""
    connection.execute(f"CREATE VIEW catalogue AS SELECT *{times} FROM given_rows")  # noqa: S608 (no input)
    query = f'SELECT "{_ROW}",\n(\n{condition}\n) FROM catalogue'  # noqa: S608 (only this one reads, and only the rows)
    try:
        with explained(connection, query):
            tables_read(connection, query)
            found = connection.sql(query)
            _check_is_condition(found)
            answers = found.fetchall()
    except UsageError as error:
        fix = f"Columns: {', '.join(rows.columns)}."
        raise UsageError(f"--where {condition!r} is no condition.", _why(error, condition), fix) from error
    return sorted(position for position, holds in answers if holds)


def _check_is_condition(found: duckdb.DuckDBPyRelation) -> None:
    """Raise unless the only column behind that of the rows is true or false.

    Raises:
        UsageError: it is not.
    """
    if [str(kind) for kind in found.types[1:]] != ["BOOLEAN"]:
        raise UsageError("It is neither true nor false, but a value: compare something, as in input_share > 0.1.")


def _why(error: UsageError, condition: str) -> str:
    """The reason in terms of the condition alone: what is put around it is nobody's business."""
    if _ROW in error.why:
        return "It sums up rows, and is asked of each row."
    if error.what != WRONG:
        return error.what
    message, _, place = error.why.partition("\nLINE ")
    line, _, mark = place.partition("\n")
    number, _, shown = line.partition(": ")
    last = _BEFORE + condition.count("\n")
    if number.isdigit() and int(number) > last:
        return "It ends too early, or a parenthesis has no partner."
    return f"{message}\n{shown}\n{mark.removeprefix(' ' * len(f'LINE {number}: '))}" if number == str(last) else message
