"""Small helpers over polars frames of events, shared by the analyses."""

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
"""Rows of which something is computed at a time."""
_SHORT = 10_000
"""Rows for which a query takes longer than what it does."""


def bounds(frame: pl.DataFrame) -> tuple[Array, Array]:
    """``(starts, ends)`` of a frame with ``start_ns`` and either ``end_ns`` or ``dur_ns`` (null counts as 0)."""
    starts = frame["start_ns"].to_numpy().astype(np.int64, copy=False)
    if "end_ns" in frame.columns:
        return starts, frame["end_ns"].to_numpy().astype(np.int64, copy=False)
    return starts, starts + without_nulls(frame["dur_ns"], 0).to_numpy().astype(np.int64, copy=False)


def without_nulls(column: pl.Series, value: int) -> pl.Series:
    """``column`` with ``value`` in place of nulls, of which most columns have none."""
    return column.fill_null(value) if column.null_count() else column


def end_ns(name: str = "end_ns") -> pl.Expr:
    """End of an event, as column ``name``; an event without an end ends at its start."""
    return (pl.col("start_ns") + pl.col("dur_ns").fill_null(0)).alias(name)


def correlations(frame: pl.DataFrame) -> Pairs:
    """``process_id`` and ``correlation_id`` of a frame, by which device work and its call know each other."""
    ids = frame["correlation_id"]
    known = ids.is_not_null().to_numpy() if ids.null_count() else None
    return Pairs(frame["process_id"].to_numpy(), without_nulls(ids, 0).to_numpy(), known)


def partners(sought: pl.DataFrame, among: pl.DataFrame) -> Rows:
    """For each row of ``sought``, the first of ``among`` with the same process and correlation id; -1 for none."""
    return first_rows(correlations(sought), correlations(among))


def gathered(column: pl.Series, rows: Rows) -> pl.Series:
    """Values of ``column`` at ``rows``, null where a row is -1."""
    if not rows.size or rows.min() >= 0:
        return column[rows]
    places = pl.Series(rows)
    return column.gather(places.set(places < 0, None))


def taken(frame: pl.DataFrame, rows: npt.NDArray[np.integer[Any]]) -> pl.DataFrame:
    """``frame`` at these rows, of which none is negative, in numbers as wide as those by which polars counts.

    No query: that would look at the numbers of all rows again for each column.
    """
    return frame[pl.Series(rows.view(np.uint32) if rows.dtype == np.int32 else rows.astype(np.uint32))]


def in_one_piece(parts: list[pl.DataFrame]) -> pl.DataFrame:
    """The rows of ``parts`` one after the other, each column in one piece; the list, of at least one, is used up.

    Column by column: all of them are not in memory twice.
    """
    joined = pl.concat(parts) if len(parts) > 1 else parts[0]
    parts.clear()
    columns = joined.get_columns()
    del joined
    for number, column in enumerate(columns):
        columns[number] = column.rechunk()
    return pl.DataFrame(columns)


def are_named(column: pl.Series, names: list[str]) -> pl.Series:
    """Whether each name of a categorical ``column`` is one of ``names``: by their numbers, as texts would be copied."""
    numbers, wanted = column.to_physical(), pl.Series(names, dtype=pl.String).cast(column.dtype).to_physical()
    most = max(int(numbers.max() or 0), int(wanted.max() or 0))  # type: ignore[arg-type]  # integers
    known = np.zeros(most + 1, dtype=bool)
    known[wanted.to_numpy()] = True
    return pl.Series(known[numbers.to_numpy()])


def blocks(rows: int) -> Iterator[slice]:
    """Slices that together cover ``rows``: intermediate results of each take little memory."""
    return (slice(begin, begin + _BLOCK) for begin in range(0, rows, _BLOCK))


def intervals(frame: pl.DataFrame) -> IntervalSet:
    """Union of the rows of ``frame`` (see :func:`bounds`)."""
    return IntervalSet.of(*bounds(frame))


def codes(column: pl.Series) -> Codes:
    """Numbers of the names in ``column``, equal ones for equal names; -1 where it is null."""
    numbers = (column.cast(pl.Categorical) if column.dtype == pl.String else column).to_physical()
    if numbers.null_count() or numbers.dtype != pl.UInt32:
        return numbers.cast(pl.Int32).fill_null(-1).to_numpy()
    return numbers.to_numpy().view(np.int32)


def distinct(names: pl.Series) -> pl.Series:
    """The distinct names of a categorical column, as they first come."""
    return names.gather(first_of_each(codes(names)))


def is_one_name(frame: pl.DataFrame, column: str) -> bool:
    """Whether a categorical ``column`` has one name in all rows: where one value stands for all, it is not spread."""
    parts = (frame.slice(begin, _BLOCK) for begin in range(0, frame.height, _BLOCK))
    bounds = [(numbers.min(), numbers.max()) for numbers in (codes(part[column]) for part in parts)]
    return all(bound == (bounds[0][0], bounds[0][0]) for bound in bounds)


def of_process(frame: pl.DataFrame, process_id: int) -> pl.DataFrame:
    """Rows of a process."""
    return having(frame, "process_id", process_id)


def having(frame: pl.DataFrame, column: str, value: int | str | None) -> pl.DataFrame:
    """Rows whose ``column`` is ``value``."""
    return rows_where(frame, frame[column] == value) if value is not None and frame.height else frame.head(0)


def knowing(frame: pl.DataFrame, column: str) -> pl.DataFrame:
    """Rows whose ``column`` is not null: mostly all."""
    return frame.drop_nulls(column) if frame[column].null_count() else frame


def rows_where(frame: pl.DataFrame, holds: pl.Series) -> pl.DataFrame:
    """Rows for which ``holds`` is true. Most traces have one process and device: where all rows are, none is copied.

    Of a short frame the columns are filtered one by one: it takes less time than to plan a query.
    """
    count = holds.sum()
    if count == frame.height:
        return frame
    if frame.height > _SHORT:
        return frame.filter(holds)
    return pl.DataFrame([values.filter(holds) for values in frame.iter_columns()]) if count else frame.head(0)


def parts_by(frame: pl.DataFrame, key: str) -> dict[int, pl.DataFrame]:
    """Rows of ``frame`` by the values of its integer column ``key``, in order of the values.

    Most traces have one process and one device, and their millions of rows are then not copied.
    """
    values = frame[key]
    if not len(values):
        return {}
    if not values.null_count() and values.min() == values.max():
        return {values[0]: frame}
    parts = frame.partition_by(key, as_dict=True, maintain_order=True)
    return {value: parts[value,] for value in values.unique().sort()}


def unions_by(frame: pl.DataFrame, key: str) -> dict[int, IntervalSet]:
    """Union of the rows of ``frame`` for each value of ``key``, in order of the values."""
    return {value: intervals(part) for value, part in parts_by(frame, key).items()}


def outermost_by(calls: pl.DataFrame, *keys: str) -> pl.Series:
    """Whether each call (rows sorted by thread, start, and end descending) lies in no other with the same ``keys``."""
    reach = pl.col("end_ns").cum_max().shift(1).over(keys)
    return calls.select((reach.is_null() | (pl.col("end_ns") > reach)).alias("outermost")).to_series()


def outermost(calls: pl.DataFrame) -> pl.DataFrame:
    """Those of ``calls`` (sorted by thread, start, and end descending) that lie in no other of their thread."""
    return calls.filter(outermost_by(calls, "thread_id"))
