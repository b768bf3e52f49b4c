"""The summary that a profiler printed: totals by name, without the events behind them.

GPU activities and API calls run at the same time. Each of the two has its own 100 %, as in nvprof's own table.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from traceviz.analyses.base import Analysis
from traceviz.analyses.derived.statistics import CALLS, TOTAL, frame_grid, share
from traceviz.analyses.derived.view import TraceView
from traceviz.report import Block, Column, Fact, Facts, Grid, Prose, Section

GPU_KINDS = ("kernel", "copy", "memset")
API_KINDS = ("runtime", "driver")

CAUTION = (
    "These are the totals that the profiler printed. Without the events behind them nothing can be said of idle time, "
    "overlap or steps."
)


@dataclass(frozen=True, slots=True)
class PrintedTotals:
    """Rows of the summary, each part with the largest total first.

    Args:
        gpu: Kernels, copies and fills; ``share`` is that of their time.
        api: Calls of the runtime and the driver; ``share`` is that of their time.
        migrations: Unified memory, by device and direction.
        others: Anything else that was timed (OpenACC, for example).
    """

    gpu: pl.DataFrame
    api: pl.DataFrame
    migrations: pl.DataFrame
    others: pl.DataFrame


@dataclass(frozen=True, slots=True)
class TotalsAnalysis(Analysis[PrintedTotals]):
    """Totals by name from a printed summary.

    Args:
        fold_below: Rows below this share fold into "other" in pictures, never in data.
    """

    slug = "totals"
    title = "Profiler's summary"

    fold_below: float = 0.01

    def run(self, trace: TraceView) -> PrintedTotals:
        """Sort the rows into the parts of the summary."""
        rows = trace.tables.scan("totals").with_columns(pl.col("kind", "name").cast(pl.String)).collect()
        names = {row["device_id"]: row["name"] for row in trace.tables.arrow("devices").to_pylist()}
        devices = pl.Series("device", [names.get(device) for device in rows["device_id"]], dtype=pl.String)
        rows = rows.with_columns(devices)
        return PrintedTotals(
            _part(rows, pl.col("kind").is_in(GPU_KINDS)),
            _part(rows, pl.col("kind").is_in(API_KINDS)),
            _part(rows, pl.col("kind") == "unified_memory"),
            _part(rows, ~pl.col("kind").is_in([*GPU_KINDS, *API_KINDS, "unified_memory"])),
        )

    def describe(self, result: PrintedTotals) -> Section:
        """Describe each part that has rows with a grid. GPU activities always have one."""
        of_gpu = (
            Fact("device_total_ns", "GPU activities, summed", _total(result.gpu), "ns"),
            Fact("device_calls", "GPU activities", int(result.gpu["calls"].sum()), "count"),
        )
        of_api = (
            Fact("api_total_ns", "API calls, summed", _total(result.api), "ns"),
            Fact("api_calls", "API calls", int(result.api["calls"].sum()), "count"),
        )
        facts = (Facts(of_gpu), Facts(of_api, audience="all" if result.api.height else "machine"))
        blocks: list[Block] = [*facts, self._grid("GPU activities", "Of GPU time", result.gpu)]
        for title, heading, part in (("API calls", "Of API time", result.api), ("Others", "Of it", result.others)):
            blocks += [self._grid(title, heading, part)] if part.height else []
        if result.migrations.height:
            blocks.append(frame_grid(_MIGRATIONS, result.migrations, "Unified memory"))
        return Section(self.slug, self.title, (*blocks, Prose(CAUTION)))

    def _grid(self, title: str, heading: str, part: pl.DataFrame) -> Grid:
        columns = (
            Column("name", "Name", "text", 0),
            Column("kind", "Kind", "text", 5),
            CALLS,
            TOTAL,
            Column("share", heading, "ratio", 0, bar=True),
            Column("mean_ns", "Mean", "ns", 2),
            Column("min_ns", "Min", "ns", 3),
            Column("max_ns", "Max", "ns", 3),
        )
        return frame_grid(columns, part, title, fold_below=self.fold_below)


_MIGRATIONS = (
    Column("name", "What", "text", 0),
    Column("device", "Device", "text", 1),
    CALLS,
    Column("bytes", "Bytes", "bytes", 0, additive=True),
    TOTAL,
)


def _part(rows: pl.DataFrame, condition: pl.Expr) -> pl.DataFrame:
    """Return the rows that meet ``condition``, the largest total first, with their share of the total of these rows."""
    part = rows.filter(condition)
    return part.with_columns(share("total_ns", _total(part), "share")).sort(
        "total_ns", "name", "process_id", descending=[True, False, False], nulls_last=True
    )


def _total(part: pl.DataFrame) -> int:
    return int(part["total_ns"].sum())
