"""Time in calls of the operating system's runtime library, by function."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from traceviz.analyses.base import Analysis
from traceviz.analyses.derived.statistics import CALLS, DURATION_COLUMNS, TOTAL, frame_grid, share, totals_by
from traceviz.analyses.derived.view import TraceView
from traceviz.report import Column, Fact, Facts, Prose, Section

CAUTION = (
    "Times are summed over threads: several threads that wait at once add up to more than the wall time, and a thread "
    "of a pool that waits for work costs nothing."
)


@dataclass(frozen=True, slots=True)
class OsCallTimes:
    """One row per function, the largest total first, and the number of threads with such calls."""

    by_name: pl.DataFrame
    threads: int


@dataclass(frozen=True, slots=True)
class OsCallsAnalysis(Analysis[OsCallTimes]):
    """Time of threads in the operating system.

    Args:
        fold_below: Rows below this share fold into "other" in pictures, never in data.
    """

    slug = "os_calls"
    title = "Operating-system calls"

    fold_below: float = 0.01

    def run(self, trace: TraceView) -> OsCallTimes:
        """Aggregate the calls by name."""
        calls = trace.frame("os_calls", "name", "dur_ns", "thread_id")
        by_name = totals_by(calls, "name")
        part = share("total_ns", int(by_name["total_ns"].sum()), "share_of_os_time")
        return OsCallTimes(by_name.with_columns(part), calls["thread_id"].n_unique())

    def describe(self, result: OsCallTimes) -> Section:
        """Describe the table of functions, and what its totals mean."""
        facts = (
            Fact("total_ns", "time, all threads", int(result.by_name["total_ns"].sum()), "ns"),
            Fact("calls", "calls", int(result.by_name["calls"].sum()), "count"),
            Fact("threads", "threads", result.threads, "count"),
        )
        columns = (
            Column("name", "Function", "text", 0),
            CALLS,
            TOTAL,
            *DURATION_COLUMNS,
            Column("share_of_os_time", "Of OS time", "ratio", 0, bar=True),
        )
        grid = frame_grid(columns, result.by_name, fold_below=self.fold_below)
        return Section(self.slug, self.title, (Facts(facts), grid, Prose(CAUTION)))
