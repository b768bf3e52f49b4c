"""Statistics of durations per group: the expressions, and the report columns that go with them.

An aggregation and the grid that shows it stay in step by using both halves of this module::

    frame = totals_by(calls, "name")
    frame_grid((Column("name", "Name"), CALLS, TOTAL, *DURATION_COLUMNS), frame)
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import polars as pl

from traceviz.analyses.derived.grouped import Groups
from traceviz.report import Audience, Column, Grid, Row

DURATION_COLUMNS: tuple[Column, ...] = (
    Column("mean_ns", "Mean", "ns", importance=3),
    Column("median_ns", "Median", "ns", importance=2),
    Column("min_ns", "Min", "ns", importance=5),
    Column("max_ns", "Max", "ns", importance=4),
    Column("stddev_ns", "Std dev", "ns", importance=6),
)
"""Report columns of what :func:`durations_by` adds after ``calls`` and ``total_ns``."""

CALLS = Column("calls", "Calls", "count", importance=1, additive=True)
TOTAL = Column("total_ns", "Total", "ns", importance=0, additive=True)


def durations_by(events: pl.DataFrame, *keys: str) -> pl.DataFrame:
    """``calls``, ``total_ns`` and :data:`DURATION_COLUMNS` of column ``dur_ns``, one row for each group; keys as text.

    Events without an end count as calls and add nothing to the times; a group in which none has ended has no mean,
    median, minimum and maximum. The definitions are those of ``nsys stats``: the median of an even number of values is
    the mean of the middle two, the standard deviation is the sample's (n - 1) and 0 for a single value.
    """
    return durations_of(Groups.of(events, *keys), events["dur_ns"])


def durations_of(groups: Groups, durations: pl.Series) -> pl.DataFrame:
    """:func:`durations_by` for the ``groups`` of rows that last ``durations``."""
    return groups.keys.hstack(duration_columns(groups, durations))


def duration_columns(groups: Groups, durations: pl.Series) -> list[pl.Series]:
    """The columns of :func:`durations_by` for the ``groups`` of rows that last ``durations``."""
    ordered = groups.ordered(durations)
    ended = ordered.counts > 0
    last = np.maximum(ordered.counts - 1, 0)
    columns = {
        "mean_ns": ordered.means(),
        "median_ns": ordered.medians(),
        "min_ns": ordered.at(np.zeros_like(last)),
        "max_ns": ordered.at(last),
    }
    known = [pl.Series(name, values) for name, values in columns.items()]
    if not ended.all():
        known = [values.set(pl.Series(~ended), None) for values in known]
    return [
        pl.Series("calls", groups.counts if durations.null_count() else ordered.counts),
        pl.Series("total_ns", ordered.sums()),
        *known,
        pl.Series("stddev_ns", ordered.deviations()),
    ]


def totals_by(events: pl.DataFrame, *keys: str, also: Iterable[pl.Expr] = ()) -> pl.DataFrame:
    """:func:`durations_by` and what ``also`` aggregates, the largest total first."""
    grouped, aggregates = durations_by(events, *keys), tuple(also)
    if aggregates:
        others = events.group_by(keys).agg(*aggregates).with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))
        grouped = grouped.join(others, on=keys, nulls_equal=True)
    return largest_first(grouped, *keys)


def largest_first(grouped: pl.DataFrame, *keys: str) -> pl.DataFrame:
    """Groups in order of ``total_ns``, those with equal totals in order of their ``keys``."""
    return grouped.sort("total_ns", *keys, descending=[True, *[False] * len(keys)])


def share(part: str, whole: int, name: str) -> pl.Expr:
    """Column ``part`` as a ratio of ``whole``, named ``name``; null where the whole is 0 (nothing to share)."""
    return (pl.col(part) / whole if whole > 0 else pl.lit(None, pl.Float64)).alias(name)


def ratio(part: int, whole: int) -> float | None:
    """``part / whole``, or ``None`` where there is no whole."""
    return part / whole if whole > 0 else None


def rows_of(frame: pl.DataFrame, names: tuple[str, ...]) -> tuple[Row, ...]:
    """Rows of a :class:`~traceviz.report.Grid` from the columns ``names`` of an (aggregated, hence short) frame."""
    return tuple(frame[list(names)].rows())


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
