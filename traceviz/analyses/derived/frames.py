"""Small helpers for polars frames of events, shared by the analyses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from traceviz.analyses.derived.grouped import first_of_each
from traceviz.core.arrays.intervals import Array, IntervalSet
from traceviz.core.arrays.matching import Pairs, Rows, first_rows
from traceviz.core.arrays.nested import Codes

_BLOCK = 1 << 18
"""Number of rows processed at a time."""
_SHORT = 10_000
"""Up to this number of rows, planning a query takes longer than running it."""


def bounds(frame: pl.DataFrame) -> tuple[Array, Array]:
    """Return ``(starts, ends)`` of a frame with ``start_ns`` and either ``end_ns`` or ``dur_ns`` (null counts as 0)."""
    starts = frame["start_ns"].to_numpy().astype(np.int64, copy=False)
    if "end_ns" in frame.columns:
        return starts, frame["end_ns"].to_numpy().astype(np.int64, copy=False)
    return starts, starts + without_nulls(frame["dur_ns"], 0).to_numpy().astype(np.int64, copy=False)


def without_nulls(column: pl.Series, value: int) -> pl.Series:
    """Return ``column`` with ``value`` in place of nulls; most columns have none."""
    return column.fill_null(value) if column.null_count() else column


def end_ns(name: str = "end_ns") -> pl.Expr:
    """Return the end of an event, as column ``name``; an event without an end ends at its start."""
    return (pl.col("start_ns") + pl.col("dur_ns").fill_null(0)).alias(name)


def correlations(frame: pl.DataFrame) -> Pairs:
    """Return ``process_id`` and ``correlation_id`` of a frame, which connect device work to its call."""
    ids = frame["correlation_id"]
    known = ids.is_not_null().to_numpy() if ids.null_count() else None
    return Pairs(frame["process_id"].to_numpy(), without_nulls(ids, 0).to_numpy(), known)


def partners(sought: pl.DataFrame, among: pl.DataFrame) -> Rows:
    """Return, for each row of ``sought``, the first of ``among`` with the same process and correlation id, or -1."""
    return first_rows(correlations(sought), correlations(among))


def gathered(column: pl.Series, rows: Rows) -> pl.Series:
    """Return the values of ``column`` at ``rows``, null for rows of -1."""
    if not rows.size or rows.min() >= 0:
        return column[rows]
    places = pl.Series(rows)
    return column.gather(places.set(places < 0, None))


def taken(frame: pl.DataFrame, rows: npt.NDArray[np.integer[Any]]) -> pl.DataFrame:
    """Return ``frame`` at these rows, which must not be negative, using polars' own index type.

    This avoids a query, which would check all row numbers again for each column.
    """
    return frame[pl.Series(rows.view(np.uint32) if rows.dtype == np.int32 else rows.astype(np.uint32))]


def in_one_piece(parts: list[pl.DataFrame]) -> pl.DataFrame:
    """Concatenate ``parts``, with each column in one chunk. The list must not be empty, and is emptied.

    Columns are rechunked one by one, so that not all are in memory twice.
    """
    joined = pl.concat(parts) if len(parts) > 1 else parts[0]
    parts.clear()
    columns = joined.get_columns()
    del joined
    for number, column in enumerate(columns):
        columns[number] = column.rechunk()
    return pl.DataFrame(columns)


def are_named(column: pl.Series, names: list[str]) -> pl.Series:
    """Return which names of a categorical ``column`` are in ``names``. Numbers are compared, to avoid copying texts."""
    numbers, wanted = column.to_physical(), pl.Series(names, dtype=pl.String).cast(column.dtype).to_physical()
    most = max(int(numbers.max() or 0), int(wanted.max() or 0))  # type: ignore[arg-type]  # integers
    known = np.zeros(most + 1, dtype=bool)
    known[wanted.to_numpy()] = True
    return pl.Series(known[numbers.to_numpy()])


def blocks(rows: int) -> Iterator[slice]:
    """Return slices that together cover ``rows``, so that intermediate results take little memory."""
    return (slice(begin, begin + _BLOCK) for begin in range(0, rows, _BLOCK))


def intervals(frame: pl.DataFrame) -> IntervalSet:
    """Return the union of the rows of ``frame`` (see :func:`bounds`)."""
    return IntervalSet.of(*bounds(frame))


def codes(column: pl.Series) -> Codes:
    """Return numbers for the names in ``column``, equal for equal names; -1 for null."""
    numbers = (column.cast(pl.Categorical) if column.dtype == pl.String else column).to_physical()
    if numbers.null_count() or numbers.dtype != pl.UInt32:
        return numbers.cast(pl.Int32).fill_null(-1).to_numpy()
    return numbers.to_numpy().view(np.int32)


def distinct(names: pl.Series) -> pl.Series:
    """Return the distinct names of a categorical column, in order of first appearance."""
    return names.gather(first_of_each(codes(names)))


def is_one_name(frame: pl.DataFrame, column: str) -> bool:
    """Return whether a categorical ``column`` has one name in all rows. Constant columns are not expanded."""
    parts = (frame.slice(begin, _BLOCK) for begin in range(0, frame.height, _BLOCK))
    bounds = [(numbers.min(), numbers.max()) for numbers in (codes(part[column]) for part in parts)]
    return all(bound == (bounds[0][0], bounds[0][0]) for bound in bounds)


def of_process(frame: pl.DataFrame, process_id: int) -> pl.DataFrame:
    """Return the rows of a process."""
    return having(frame, "process_id", process_id)


def having(frame: pl.DataFrame, column: str, value: int | str | None) -> pl.DataFrame:
    """Return the rows whose ``column`` is ``value``."""
    return rows_where(frame, frame[column] == value) if value is not None and frame.height else frame.head(0)


def knowing(frame: pl.DataFrame, column: str) -> pl.DataFrame:
    """Return the rows whose ``column`` is not null, usually all."""
    return frame.drop_nulls(column) if frame[column].null_count() else frame


def rows_where(frame: pl.DataFrame, holds: pl.Series) -> pl.DataFrame:
    """Return the rows for which ``holds`` is true. If all are, as with one process and device, nothing is copied.

    Columns of a short frame are filtered one by one, which is faster than planning a query.
    """
    count = holds.sum()
    if count == frame.height:
        return frame
    if frame.height > _SHORT:
        return frame.filter(holds)
    return pl.DataFrame([values.filter(holds) for values in frame.iter_columns()]) if count else frame.head(0)


def parts_by(frame: pl.DataFrame, key: str) -> dict[int, pl.DataFrame]:
    """Return the rows of ``frame`` by the values of its integer column ``key``, in order of the values.

    Most traces have one process and one device; then their millions of rows are not copied.
    """
    values = frame[key]
    if not len(values):
        return {}
    if not values.null_count() and values.min() == values.max():
        return {values[0]: frame}
    parts = frame.partition_by(key, as_dict=True, maintain_order=True)
    return {value: parts[value,] for value in values.unique().sort()}


def unions_by(frame: pl.DataFrame, key: str) -> dict[int, IntervalSet]:
    """Return the union of the rows of ``frame`` for each value of ``key``, in order of the values."""
    return {value: intervals(part) for value, part in parts_by(frame, key).items()}


def outermost_by(calls: pl.DataFrame, *keys: str) -> pl.Series:
    """Return which calls (sorted by thread, start, and end descending) lie in no other with the same ``keys``."""
    reach = pl.col("end_ns").cum_max().shift(1).over(keys)
    return calls.select((reach.is_null() | (pl.col("end_ns") > reach)).alias("outermost")).to_series()


def outermost(calls: pl.DataFrame) -> pl.DataFrame:
    """Return the ``calls`` (sorted by thread, start, and end descending) that lie in no other of their thread."""
    return calls.filter(outermost_by(calls, "thread_id"))
