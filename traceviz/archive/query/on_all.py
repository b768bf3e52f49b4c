"""Report on all traces, extended by figures that only their tables hold: shares of CUDA functions by framework."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds

from traceviz.archive.catalogue.segments import ready
from traceviz.archive.population.observations import group_values
from traceviz.archive.population.population import population
from traceviz.archive.storage import layout
from traceviz.archive.storage.store import Store
from traceviz.core.units import counted
from traceviz.report import Block, Column, Grid, Prose, Report, Row, Section
from traceviz.trace import schema

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


TRACE_COLUMNS = pa.schema([pa.field("format", pa.string()), pa.field("trace_id", pa.string())])
"""Columns that identify the trace of a row. An id is text, even if it looks like a number."""
_FILE = "\0file"
"""Name of a temporary column; no table has such a column."""


def scan(store: Store, rows: pl.DataFrame, table: str) -> pl.LazyFrame:
    """Scan a table over all ready traces that have it, with ``format`` and ``trace_id`` as its last columns.

    Args:
        store: The archive. A remote one is read by its own file system, with the options of the store.
        rows: Rows of its catalogue.
        table: Name of the table.

    Raises:
        UsageError: no such table is declared.
    """
    declared = pl.from_arrow(schema.table(table).empty())
    assert isinstance(declared, pl.DataFrame)
    traces = layout.traces_with_table(store, rows, table)
    if not traces:
        return declared.lazy().with_columns(format=pl.lit(""), trace_id=pl.lit(""))
    return _local(store, traces, table, declared.schema) if store.is_local else _remote(store, traces, table)


def _local(store: Store, traces: Sequence[tuple[str, str]], table: str, declared: pl.Schema) -> pl.LazyFrame:
    """Scan all files with one scan, with the file of each row. A thousand separate scans take ten times as long."""
    files = [store.url_of(*layout.table_parts(*trace, table)) for trace in traces]
    scanned = pl.scan_parquet(
        files,
        schema=declared,
        missing_columns="insert",
        extra_columns="ignore",
        glob=False,
        hive_partitioning=False,
        include_file_paths=_FILE,
    )
    formats, ids = zip(*traces, strict=True)
    file = pl.col(_FILE)
    return scanned.with_columns(
        format=file.replace_strict(files, formats), trace_id=file.replace_strict(files, ids)
    ).drop(_FILE)


def _remote(store: Store, traces: Sequence[tuple[str, str]], table: str) -> pl.LazyFrame:
    dataset = ds.dataset(
        [store.path_of(*layout.table_parts(format_name, trace_id, table)) for format_name, trace_id in traces],
        schema=pa.schema([*schema.table(table).arrow, *TRACE_COLUMNS]),
        format="parquet",
        filesystem=store.filesystem(),
        partitioning=ds.partitioning(TRACE_COLUMNS, flavor="hive"),
        partition_base_dir=store.path_of(layout.TRACES),
    )
    return pl.scan_pyarrow_dataset(dataset)


_BEFORE = "outliers"
"""Section that follows the CUDA API section."""
_FRAMEWORK, _TABLE = "framework", "cuda_api"


def report_on_all(store: Store, catalogue: pl.DataFrame, top: int = 10, per: str = "") -> Report:
    """Return the report on a catalogue, with shares of CUDA functions by framework.

    Args:
        store: The archive.
        catalogue: Rows of its catalogue, possibly filtered.
        top: Number of worst traces listed for each figure.
        per: Tag or column (such as ``framework``) that defines the compared groups. If empty, the framework is used,
            unless there are too many traces.

    Raises:
        UsageError: no row has such a tag.
    """
    report, rows = population(catalogue, top), ready(catalogue)
    section = _cuda_api(store, rows, per)
    if section is None:
        return report
    place = next((at for at, one in enumerate(report.sections) if one.slug == _BEFORE), len(report.sections))
    return replace(report, sections=(*report.sections[:place], section, *report.sections[place:]))


def _cuda_api(store: Store, rows: pl.DataFrame, per: str) -> Section | None:
    count = count_recorded(rows)
    if not count:
        return None
    if not per and (count > MOST_TRACES or _bytes(store, rows) > MOST_BYTES):
        return unread_section(count)
    duration = pl.col("dur_ns").sum().cast(pl.Int64).alias("total_ns")
    calls = scan(store, rows, _TABLE).group_by("trace_id", pl.col("name").cast(pl.String))
    sums = calls.agg(pl.len().cast(pl.Int64).alias("calls"), duration).collect(engine="streaming")
    return cuda_shares(rows, sums, per or _FRAMEWORK) if sums.height else None


def _bytes(store: Store, rows: pl.DataFrame) -> int:
    """Return the size in bytes of the tables to read."""
    sizes = store.sizes(layout.TRACES)
    tables = (layout.table_parts(*trace, _TABLE) for trace in layout.traces_with_table(store, rows, _TABLE))
    return sum(sizes.get("/".join(parts[1:]), 0) for parts in tables)
