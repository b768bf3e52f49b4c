"""Runs of a catalogue as observations. A run counts once, regardless of how many ranks recorded it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import cast

import polars as pl
import pyarrow as pa

from traceviz.archive.catalogue.columns import COLUMNS
from traceviz.archive.catalogue.segments import ready
from traceviz.core.errors import UsageError
from traceviz.core.units import Unit
from traceviz.parsers.shared.arrays.arrow import Array, pc
from traceviz.report import Better

DATE = "date"
"""Default order of runs."""
TAG = "tag:"
"""Prefix of tags whose name has another meaning: ``tag:date``."""
FIELDS = (
    *("framework", "framework_version", "gpu", "format", "producer", "producer_version", "job"),
    "traceviz_version",
)
"""Columns that distinguish runs, in addition to tags."""

_NEUTRAL = frozenset({"span_ns", "steps", "devices", "host_cpu", "host_threads", "epochs"})
"""Figures for which neither more nor less is better."""
_MORE_IS_BETTER = frozenset({"device_busy", "samples_per_second"})
_NO_FIGURES = frozenset({"rank", "source_bytes", "recorded_ns", "added_ns", "changed_ns"})
_NUMBERS = re.compile(r"(\d+)")


@dataclass(frozen=True, slots=True)
class Figure:
    """A catalogue column that measures how well a run went.

    Args:
        name: Name of the column.
        unit: Base unit.
        meaning: Its meaning as text.
        better: Direction of improvement.
        unknown: Reason why no trace has it.
    """

    name: str
    unit: Unit
    meaning: str
    better: Better
    unknown: str = ""


FIGURES: tuple[Figure, ...] = tuple(
    Figure(
        column.name,
        cast("Unit", column.unit or "count"),
        column.meaning,
        "" if column.name in _NEUTRAL else "higher" if column.name in _MORE_IS_BETTER else "lower",
    )
    for column in COLUMNS
    if str(column.type) in {"int64", "double"} and column.name not in _NO_FIGURES
)
"""All figures of the catalogue, in its order."""


def figure(name: str) -> Figure:
    """Return the figure of this name.

    Raises:
        UsageError: there is no such figure. The error lists the known figures.
    """
    known = next((candidate for candidate in FIGURES if candidate.name == name), None)
    if known is None:
        raise UsageError.unknown("metric", name, (candidate.name for candidate in FIGURES))
    return known


_TAGS = pa.map_(pa.string(), pa.string())


def tag_names(rows: pl.DataFrame) -> list[str]:
    """Return the names of all tags."""
    return sorted({name for row in tags_of(rows) for name, _ in row})


def tags_of(rows: pl.DataFrame) -> list[list[tuple[str, str]]]:
    """Return the names and values of the tags of each row."""
    maps: Array = rows["tags"].to_arrow().cast(_TAGS)
    return [row or [] for row in maps.to_pylist()]


def group_values(rows: pl.DataFrame, name: str) -> pl.Series:
    """Return the value of a tag or of one of :data:`FIELDS` for each row.

    Raises:
        UsageError: no row has such a tag.
    """
    if name in FIELDS:
        return rows[name]
    tag, known = name.removeprefix(TAG), tag_names(rows)
    if tag not in known:
        raise UsageError.unknown("tag", tag, (*known, *FIELDS, DATE))
    values = pc.map_lookup(rows["tags"].to_arrow().cast(_TAGS), query_key=pa.scalar(tag), occurrence="first")
    return pl.Series(tag, values, dtype=pl.String)


def with_runs(rows: pl.DataFrame) -> pl.DataFrame:
    """Add the column ``run``, which is equal for all ranks of one run.

    Ranks within a trace belong to one run. So do traces of one job whose recordings overlap in time. A later run of a
    job with the same name is a separate run.
    """
    end = pl.col("recorded_ns") + pl.col("span_ns").fill_null(0)
    latest = end.cum_max().shift(1).over("job", order_by="recorded_ns")
    began = (pl.col("recorded_ns") > latest).fill_null(value=True).cast(pl.Int64)
    number = began.cum_sum().over("job", order_by="recorded_ns")
    known = pl.col("job").is_not_null() & pl.col("recorded_ns").is_not_null()
    named = pl.format("{} {}", "job", number)
    return rows.with_columns(pl.when(known).then(named).otherwise(pl.col("trace_id")).alias("run"))


def observations(rows: pl.DataFrame, name: str, by: str = DATE, per: str = "") -> pl.DataFrame:
    """Return a figure for every run in which it was measured, in order.

    Args:
        rows: Rows of the catalogue; only ready traces are used.
        name: A column of the catalogue that holds numbers.
        by: ``date``, a tag, or one of :data:`FIELDS`. Values are in natural order (2 before 10), equal values by date.
        per: A tag or one of :data:`FIELDS` whose values form groups; one group if empty.

    Returns:
        Columns ``group``, ``key`` (its label), ``place`` (equal for runs that have no order), ``value``,
        ``recorded_ns``, ``trace_id`` (the first of the run), ``traces`` and ``rows`` (of the catalogue).

    Raises:
        UsageError: no row has such a tag.
    """
    usable = ready(rows)
    key = usable["recorded_ns"] if by == DATE else group_values(usable, by)
    group = group_values(usable, per) if per else pl.lit("", pl.String)
    runs = (
        with_runs(usable)
        .with_columns(key.alias("key"), group.alias("group"), pl.col(name).cast(pl.Float64).alias("value"))
        .filter(pl.col("value").is_finite(), pl.col("key").is_not_null(), pl.col("group").is_not_null())
        .group_by("group", "run", *([] if by == DATE else ["key"]))
        .agg(
            *([pl.col("key").min()] if by == DATE else []),
            pl.col("value").mean(),
            pl.col("recorded_ns").min(),
            pl.col("trace_id").min(),
            pl.col("trace_id").n_unique().alias("traces"),
            pl.len().cast(pl.Int64).alias("rows"),
        )
    )
    return _place(runs, by).sort("group", "place", "recorded_ns", "trace_id", nulls_last=True).drop("run")


_OF_ONE_PROGRAM = ("framework", "gpu", "job")
"""Columns that are equal in runs of one program on one kind of machine."""


Mixture = tuple[tuple[str, int], ...]
"""Columns with several values in one group, and how many."""


def count_mixed(rows: pl.DataFrame, name: str, by: str = DATE, per: str = "") -> dict[str, Mixture]:
    """Return how many frameworks, devices and jobs each group mixes, if more than one.

    Args:
        rows: As for :func:`observations`.
        name: A column of the catalogue that holds numbers; only rows with a value count.
        by: The order of the runs. Its values do not count as a mixture.
        per: Tag or column that defines groups.
    """
    measured = ready(rows).filter(pl.col(name).is_not_null())
    group = group_values(measured, per) if per and measured.height else pl.lit("", pl.String)
    names = [column for column in _OF_ONE_PROGRAM if column not in {by, per}]
    counts = measured.group_by(group.alias("group")).agg(pl.col(column).drop_nulls().n_unique() for column in names)
    return {
        row["group"]: tuple((column, row[column]) for column in names if row[column] > 1)
        for row in counts.filter(pl.col("group").is_not_null()).iter_rows(named=True)
    }


def _place(runs: pl.DataFrame, by: str) -> pl.DataFrame:
    """Add the places of runs in the order of their keys, and display keys."""
    if by == DATE:
        # Days in UTC, with hours and minutes if a day has several runs of a group.
        moments = pl.from_epoch(runs["key"], "ns")
        days = moments.dt.strftime("%Y-%m-%d")
        several = pl.DataFrame({"group": runs["group"], "day": days}).is_duplicated().any()
        dates = moments.dt.strftime("%Y-%m-%d %H:%M") if several else days
        return runs.with_columns(pl.col("key").alias("place"), dates.alias("key"))
    order = {key: place for place, key in enumerate(sorted(runs["key"].unique().to_list(), key=natural))}
    return runs.with_columns(pl.col("key").replace_strict(order, return_dtype=pl.Int64).alias("place"))


def natural(text: str) -> list[tuple[int, int, str]]:
    """Return a sort key that puts ``v2`` before ``v10``."""
    parts = _NUMBERS.split(text)
    return [(0, int(part), "") if part.isdecimal() and len(part) <= 4000 else (1, 0, part) for part in parts if part]


def date(recorded_ns: int | None) -> str | None:
    """Format a date in UTC: ``2026-05-22``."""
    return None if recorded_ns is None else f"{datetime.fromtimestamp(recorded_ns / 1e9, UTC):%Y-%m-%d}"
