"""Python rows to Arrow tables: the one place where values from a trace, a manifest or a saved report get a type.

A file may contain anything: a device with 10**30 processors, a name that is not text, half of a surrogate pair. A value
that its column cannot hold is not known: its cell becomes null, and a note reports it. If the column may not hold a
null, the row is left out. If other tables refer to the rows by number, or there is no note taker, an error names table
and column.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa

from traceviz.core.errors import DamagedTraceError
from traceviz.trace import schema

UNFIT_NOTE = "value-unfit"
"""Code of the note on values that their columns cannot hold."""

_UNFIT = (pa.ArrowException, OverflowError, TypeError, ValueError)
"""Exceptions of Arrow for values that do not fit a type; invalid Unicode is a ``ValueError``."""
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_SHOWN = 40
"""Characters of a value that a message shows."""


class NoteTaker(Protocol):
    """Collector of notes on data left out; see :class:`traceviz.parsers.shared.notes.Notes`."""

    def add(self, code: str, severity: str, message: str, count: int | None = None) -> None:
        """Add a note, unless ``count`` is zero."""


def rows_to_table(
    name: str,
    rows: Iterable[Mapping[str, Any]],
    notes: NoteTaker | None = None,
    *,
    declared: pa.Schema | None = None,
) -> pa.Table:
    """Make table ``name`` from ``rows``; missing values are null.

    Args:
        name: Table of :mod:`traceviz.trace.schema`, or a name for messages if ``declared`` is given.
        rows: Values by column.
        notes: Receives notes on values that their columns cannot hold, whose cells are null, and on rows that are left
            out for this reason; ``None`` if every value must fit.
        declared: Columns and types of a table that is not part of the contract.

    Raises:
        DamagedTraceError: a value does not fit its column, and there are no ``notes``, or the column may not hold a
            null in a table that every trace has.
    """
    columns = declared or schema.table(name).arrow
    listed = list(rows)
    may_lose_rows = notes is not None and name not in schema.REQUIRED
    arrays = [
        _column(
            name, field, [row.get(field.name) for row in listed], notes, may_be_null=field.nullable or may_lose_rows
        )
        for field in columns
    ]
    table = pa.Table.from_arrays(arrays, schema=columns)
    return _whole_rows(name, table, notes) if notes is not None and may_lose_rows else table


def without_surrogates(text: str) -> str:
    """Return ``text`` with U+FFFD for halves of surrogate pairs, which JSON can state and no encoding can hold."""
    return _LONE_SURROGATE.sub("\ufffd", text) if not text.isascii() else text


def stated_integer(text: str | None) -> int | None:
    """Return the integer in ``text``, of at most 18 digits: longer ones fit no column, and take long to parse."""
    return int(text) if text and _INTEGER.fullmatch(text) else None


def _whole_rows(name: str, table: pa.Table, notes: NoteTaker) -> pa.Table:
    """Return ``table`` without the rows that lack a required value."""
    lacking = [field.name for field in table.schema if not field.nullable and table[field.name].null_count]
    if not lacking:
        return table
    whole = table.select(lacking).drop_null().num_rows
    notes.add(
        "rows-incomplete",
        "warning",
        f"{name}: rows without {' or '.join(lacking)}, left out.",
        table.num_rows - whole,
    )
    for column in lacking:
        table = table.filter(table[column].is_valid())
    return table


def _column(table: str, field: Any, values: Sequence[Any], notes: NoteTaker | None, *, may_be_null: bool) -> Any:
    try:
        array = pa.array(values, field.type)
    except _UNFIT:
        array = _mended(table, field, values, notes if may_be_null else None)
    if array.null_count and not may_be_null:
        raise DamagedTraceError(
            f"Column {field.name} of table {table} must state a value, and a row of the file has none.",
            fix="Copy the file again, or record again.",
        )
    return array


def _mended(table: str, field: Any, values: Sequence[Any], notes: NoteTaker | None) -> Any:
    """Convert ``values`` one by one; those that do not fit become null."""
    fitting, unfit = [], []
    for value in values:
        kept = without_surrogates(value) if isinstance(value, str) else value
        try:
            pa.array([kept], field.type)
            fitting.append(kept)
        except _UNFIT:
            fitting.append(None)
            unfit.append(value)
    if unfit and notes is None:
        raise DamagedTraceError(
            f"Column {field.name} of table {table} cannot hold {_shown(unfit[0])}.",
            f"It holds values of the type {_in_words(field.type)}.",
            "Copy the file again, or record again.",
        )
    if unfit:
        assert notes is not None
        message = f"{table}.{field.name}: values that the column cannot hold, left out, such as {_shown(unfit[0])}."
        notes.add(UNFIT_NOTE, "warning", message, len(unfit))
    return pa.array(fitting, field.type)


def _shown(value: Any) -> str:
    """Return a value for a message; of a huge integer only its size."""
    if isinstance(value, int) and value.bit_length() > 4 * _SHOWN:
        return f"an integer of {value.bit_length():,} bits"
    shown = str(value) if isinstance(value, int | float) else repr(value[:_SHOWN] if isinstance(value, str) else value)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."


def _in_words(kind: Any) -> str:
    return _in_words(kind.value_type) if pa.types.is_dictionary(kind) else str(kind)
