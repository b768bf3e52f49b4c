"""Statistics of durations per group: expressions, and the matching report columns.

An aggregation and its grid stay consistent if both come from this module::

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
"""Report columns for what :func:`durations_by` adds after ``calls`` and ``total_ns``."""

CALLS = Column("calls", "Calls", "count", importance=1, additive=True)
TOTAL = Column("total_ns", "Total", "ns", importance=0, additive=True)


def durations_by(events: pl.DataFrame, *keys: str) -> pl.DataFrame:
    """Return ``calls``, ``total_ns`` and :data:`DURATION_COLUMNS` of column ``dur_ns``, a row per group; keys as text.

    Events without an end count as calls and add nothing to the times. A group without any ended event has no mean,
    median, minimum and maximum. The definitions are those of ``nsys stats``: the median of an even number of values is
    the mean of the middle two, and the standard deviation is the sample's (n - 1), 0 for a single value.
    """
    return durations_of(Groups.of(events, *keys), events["dur_ns"])


def durations_of(groups: Groups, durations: pl.Series) -> pl.DataFrame:
    """Apply :func:`durations_by` to ``groups`` of rows with these ``durations``."""
    return groups.keys.hstack(duration_columns(groups, durations))


def duration_columns(groups: Groups, durations: pl.Series) -> list[pl.Series]:
    """Return the columns of :func:`durations_by` for ``groups`` of rows with these ``durations``."""
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
    """Return :func:`durations_by` and the aggregates ``also``, the largest total first."""
    grouped, aggregates = durations_by(events, *keys), tuple(also)
    if aggregates:
        others = events.group_by(keys).agg(*aggregates).with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))
        grouped = grouped.join(others, on=keys, nulls_equal=True)
    return largest_first(grouped, *keys)


def largest_first(grouped: pl.DataFrame, *keys: str) -> pl.DataFrame:
    """Sort groups by ``total_ns``, the largest first, and those with equal totals by their ``keys``."""
    return grouped.sort("total_ns", *keys, descending=[True, *[False] * len(keys)])


def share(part: str, whole: int, name: str) -> pl.Expr:
    """Return column ``part`` as a ratio of ``whole``, named ``name``; null if the whole is 0."""
    return (pl.col(part) / whole if whole > 0 else pl.lit(None, pl.Float64)).alias(name)


def ratio(part: int, whole: int) -> float | None:
    """Return ``part / whole``, or ``None`` if the whole is 0."""
    return part / whole if whole > 0 else None


def rows_of(frame: pl.DataFrame, names: tuple[str, ...]) -> tuple[Row, ...]:
    """Return rows of a :class:`~traceviz.report.Grid` from the columns ``names`` of an aggregated (short) frame."""
    return tuple(frame[list(names)].rows())


def frame_grid(
    columns: tuple[Column, ...],
    frame: pl.DataFrame,
    title: str = "",
    *,
    audience: Audience = "all",
    fold_below: float = 0.0,
) -> Grid:
    """Return a grid with the named ``columns`` of an aggregated (short) frame."""
    return Grid(columns, rows_of(frame, tuple(column.name for column in columns)), title, fold_below, audience)
