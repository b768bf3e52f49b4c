"""Shares of CUDA API time by function, compared between frameworks or values of a tag."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from traceviz.archive.population.observations import group_values
from traceviz.core.units import counted
from traceviz.report import Block, Column, Grid, Prose, Row, Section

SLUG = "cuda_api"
MOST_TRACES, MOST_BYTES = 1_000, 500_000_000
"""Maximum number of traces, and bytes of their tables, that are read without ``--per``. More take a while."""
NOTABLE = 0.01
"""Minimum share of a group's API time. Functions that reach it in any group get a line."""
MOST_GROUPS = 8
"""Maximum number of groups next to each other, those with the most API time. Machine-readable output has all groups."""
_NONE = "not stated"


def count_recorded(rows: pl.DataFrame) -> int:
    """Return the number of traces with recorded calls of the CUDA API."""
    return rows.filter(pl.col("exposed_api_ns").is_not_null())["trace_id"].n_unique()


def unread_section(count: int) -> Section:
    """Return a section that states how many traces were not read."""
    said = f"Calls of the CUDA API of {counted(count, 'trace')} were not read, which takes a while"
    return Section(SLUG, "CUDA API", (Prose(f"{said}: --per framework does."),))


def cuda_shares(rows: pl.DataFrame, calls: pl.DataFrame, per: str) -> Section:
    """Return the section with shares of functions in each group of traces.

    Args:
        rows: Rows of the catalogue of ready traces.
        calls: Columns ``trace_id``, ``name``, ``calls``, ``total_ns`` of every function in every trace.
        per: Tag or column (such as ``framework``) that defines the groups.

    Raises:
        UsageError: no row has such a tag.
    """
    values = group_values(rows, per).fill_null(_NONE).alias("by")
    groups = rows.select("trace_id", values).unique("trace_id", keep="first", maintain_order=True)
    sums = (
        calls.join(groups, on="trace_id")
        .group_by("by", "name")
        .agg(pl.col("calls", "total_ns").sum(), pl.col("trace_id").n_unique().cast(pl.Int64).alias("traces"))
        .with_columns(pl.col("total_ns").sum().over("by").alias("whole"))
        .filter(pl.col("whole") > 0)
        .with_columns((pl.col("total_ns") / pl.col("whole")).alias("share"))
        .sort("whole", "by", "total_ns", "name", descending=[True, False, True, False])
    )
    return Section(SLUG, f"CUDA API by {per}", tuple(_blocks(sums, per)))


def _blocks(sums: pl.DataFrame, per: str) -> Iterator[Block]:
    found = sums["by"].unique(maintain_order=True).to_list()
    shown = found[:MOST_GROUPS]
    yield _share_table(sums, shown)
    columns = (
        Column("by", per.capitalize()),
        Column("name", "Function"),
        Column("share_of_api", "Share", "ratio", additive=True),
        Column("total_ns", "Time", "ns", additive=True),
        Column("calls", "Calls", "count", additive=True),
        Column("traces", "Traces", "count"),
    )
    every: tuple[Row, ...] = tuple(sums.select("by", "name", "share", "total_ns", "calls", "traces").iter_rows())
    yield Grid(columns, every, "share of every function", audience="machine")
    more = (
        f" {counted(len(found) - len(shown), 'more group')} not shown; JSON has all." if len(found) > len(shown) else ""
    )
    yield Prose(f"Calls of all traces of a group together: those with more API time weigh more.{more}")


def _share_table(sums: pl.DataFrame, shown: list[str]) -> Grid:
    shares = {(by, name): share for by, name, share in sums.select("by", "name", "share").iter_rows()}
    of_shown = sums.filter(pl.col("by").is_in(shown))
    most = of_shown.group_by("name").agg(pl.col("share").max()).filter(pl.col("share") >= NOTABLE)
    names = most.sort("share", "name", descending=[True, False])["name"].to_list()
    columns = (
        Column("name", "Function", "text", 0),
        *(Column(f"share.{by}", by, "ratio", min(place, 8)) for place, by in enumerate(shown)),
    )
    lines: tuple[Row, ...] = tuple((name, *(shares.get((by, name), 0.0) for by in shown)) for name in names)
    return Grid(columns, lines, "share of CUDA API time, over the whole captures", complete=True)
