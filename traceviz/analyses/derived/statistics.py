"""Statistics of durations per group: the expressions, and the report columns that go with them.

An aggregation and the grid that shows it stay in step by using both halves of this module::

    frame = totals_by(calls, "name")
    frame_grid((Column("name", "Name"), CALLS, TOTAL, *DURATION_COLUMNS), frame)
"""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from traceviz.report import Audience, Column, Grid, Row

DURATION_COLUMNS: tuple[Column, ...] = (
    Column("mean_ns", "Mean", "ns", importance=3),
    Column("median_ns", "Median", "ns", importance=2),
    Column("min_ns", "Min", "ns", importance=5),
    Column("max_ns", "Max", "ns", importance=4),
    Column("stddev_ns", "Std dev", "ns", importance=6),
)
"""Report columns of what :func:`duration_statistics` adds after ``calls`` and ``total_ns``."""

CALLS = Column("calls", "Calls", "count", importance=1)
TOTAL = Column("total_ns", "Total", "ns", importance=0)


def duration_statistics() -> tuple[pl.Expr, ...]:
    """Aggregations ``calls``, ``total_ns`` and those of :data:`DURATION_COLUMNS` over column ``dur_ns``.

    Events without an end count as calls and add nothing to the times; a group in which none has ended has no mean,
    median, minimum and maximum. The definitions are those of ``nsys stats``: the median of an even number of values is
    the mean of the middle two, the standard deviation is the sample's (n - 1) and 0 for a single value.
    """
    value = pl.col("dur_ns")
    return (
        pl.len().cast(pl.Int64).alias("calls"),
        value.sum().alias("total_ns"),
        value.mean().alias("mean_ns"),
        value.median().alias("median_ns"),
        value.min().alias("min_ns"),
        value.max().alias("max_ns"),
        value.std(ddof=1).fill_null(0.0).alias("stddev_ns"),
    )


def totals_by(events: pl.DataFrame, *keys: str, also: Iterable[pl.Expr] = ()) -> pl.DataFrame:
    """:func:`duration_statistics` of each group and what ``also`` aggregates, the largest total first; keys as text."""
    grouped = events.group_by(keys).agg(*duration_statistics(), *also)
    texts = grouped.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))
    return texts.sort("total_ns", *keys, descending=[True, *[False] * len(keys)])


def share(part: str, whole: int, name: str) -> pl.Expr:
    """Column ``part`` as a ratio of ``whole``, named ``name``; null where the whole is 0 (nothing to share)."""
    return (pl.col(part) / whole if whole > 0 else pl.lit(None, pl.Float64)).alias(name)


def ratio(part: int, whole: int) -> float | None:
    """``part / whole``, or ``None`` where there is no whole."""
    return part / whole if whole > 0 else None


def rows_of(frame: pl.DataFrame, names: tuple[str, ...]) -> tuple[Row, ...]:
    """Rows of a :class:`~traceviz.report.Grid` from the columns ``names`` of an (aggregated, hence short) frame."""
    return tuple(frame.select(names).iter_rows())


def frame_grid(
    columns: tuple[Column, ...],
    frame: pl.DataFrame,
    title: str = "",
    *,
    audience: Audience = "all",
    fold_below: float = 0.0,
) -> Grid:
    """A grid whose ``columns`` are columns of an (aggregated, hence short) frame, by their names."""
    return Grid(columns, rows_of(frame, tuple(column.name for column in columns)), title, fold_below, audience)
