"""The launch path: the time that a launch costs the host, how long the work then waits, and how long it runs.

::

    host    |--launch call--|
    device                       |---kernel---|
            |<--- api ----->|<-->|<- kernel ->|
                            queue

The queue is null, and not zero, where the kernel began before the call returned. A graph launch is one call with many
kernels; its queue is that of the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import polars as pl

from traceviz.analyses.base import Analysis
from traceviz.analyses.derived.capture.kind import lacks_device
from traceviz.analyses.derived.capture.launch_delays import LaunchDelays, launch_delays
from traceviz.analyses.derived.device.work import computing
from traceviz.analyses.derived.frames import parts_by
from traceviz.analyses.derived.judged_time import host_time
from traceviz.analyses.derived.launch.join import LAUNCH_KEY
from traceviz.analyses.derived.statistics import CALLS, TOTAL, frame_grid
from traceviz.analyses.derived.steps.search import training_steps
from traceviz.analyses.derived.view import TraceView
from traceviz.cuda_names import ApiKind
from traceviz.report import Block, Column, Fact, Facts, Grid, Prose, Section, Skipped
from traceviz.units import counted


@dataclass(frozen=True, slots=True)
class LaunchTimes:
    """Launches as a whole and by API function.

    Args:
        overall: All launches, one row of the columns of ``by_name``.
        by_name: One row per API function, the largest total first.
        kernels: Kernels in the capture.
        without_call: Kernels whose launch call is not in the capture.
        per_step: Launch calls per steady step; ``None`` where no steps were found.
        captured: Calls that a graph captured, which launched nothing.
        delays: From calls to the work that they launched, by device.
    """

    overall: pl.DataFrame
    by_name: pl.DataFrame
    kernels: int
    without_call: int
    per_step: float | None
    captured: int = 0
    delays: tuple[LaunchDelays, ...] = ()


@dataclass(frozen=True, slots=True)
class LaunchAnalysis(Analysis[LaunchTimes]):
    """API time, queue delay and kernel time of launches, joined on process and correlation id."""

    slug = "launch"
    title = "Launch path"

    def run(self, trace: TraceView) -> LaunchTimes | Skipped:
        """Join launch calls with the kernels that they caused."""
        calls, captured = trace.api_calls("launch"), trace.captured_calls("launch").height
        kernels = trace.frame("kernels", "start_ns", "dur_ns", *LAUNCH_KEY)
        calls = pl.concat([calls, _other_calls(trace, kernels.join(calls, on=LAUNCH_KEY, how="anti"))])
        if not calls.height and captured:
            return self.skipped(f"all {captured:,} launch calls were captured in graphs, and launched nothing")
        if not calls.height:
            return self.skipped("the capture has no kernel launch calls")
        if why := lacks_device(trace):
            return self.skipped(f"{why}: only the calls are known")
        launches = _launches(calls, computing(trace, "start_ns", *LAUNCH_KEY))
        overall = _aggregate(launches.with_columns(pl.lit("all").alias("name")), kernels)
        without_call = kernels.height - int(overall["kernels"].sum())
        return LaunchTimes(
            overall,
            _aggregate(launches, kernels),
            kernels.height,
            without_call,
            _calls_per_step(trace, calls),
            captured,
            launch_delays(trace),
        )

    def describe(self, result: LaunchTimes) -> Section:
        """Medians over all launches, and one row per API function."""
        launches = result.overall.row(0, named=True)
        facts = (
            Fact("launches", "launch calls", launches["calls"], "count"),
            Fact("api_ns", "time in launch calls", launches["total_ns"], "ns"),
            Fact("queue_median_ns", "median queue delay", launches["queue_median_ns"], "ns"),
            Fact("queue_p95_ns", "queue delay, 95 %", launches["queue_p95_ns"], "ns"),
            Fact("queued", "queued launches", launches["queued"], "count"),
            Fact("api_median_ns", "median launch call", launches["api_median_ns"], "ns"),
            Fact("api_p95_ns", "launch call, 95 %", launches["api_p95_ns"], "ns"),
            Fact("kernel_median_ns", "median kernel", launches["kernel_median_ns"], "ns"),
            Fact("launches_per_step", "launches per step", result.per_step, "number"),
            Fact("kernels_without_launch", "kernels without call", result.without_call, "count"),
        )
        blocks: list[Block] = [Facts(facts)]
        if result.captured:
            blocks[0] = Facts((*facts, Fact("launches_captured", "captured in graphs", result.captured, "count")))
            blocks.append(
                Prose(
                    f"Captured in a graph: {counted(result.captured, 'launch call')}, which launched nothing and are "
                    "not counted here."
                )
            )
        blocks += [frame_grid(_COLUMNS, result.by_name), _delays(result.delays)]
        if result.without_call:
            blocks.append(
                Prose(
                    f"{result.without_call:,} of {result.kernels:,} kernels have no launch call in the capture "
                    "(launched before it began, or by a process or graph that was not traced) and are not counted here."
                )
            )
        return Section(self.slug, self.title, tuple(blocks))


_OTHERS = tuple(kind for kind in get_args(ApiKind) if kind != "launch")

_COLUMNS = (
    Column("name", "Function", "text", 0),
    CALLS,
    TOTAL,
    Column("api_median_ns", "API median", "ns", 1),
    Column("api_p95_ns", "API p95", "ns", 3),
    Column("queued", "Queued", "count", 4),
    Column("queue_median_ns", "Queue median", "ns", 0),
    Column("queue_p95_ns", "Queue p95", "ns", 2),
    Column("kernels", "Kernels", "count", 4),
    Column("kernel_total_ns", "Kernel total", "ns", 3),
    Column("kernel_median_ns", "Kernel median", "ns", 1),
)


def _other_calls(trace: TraceView, kernels: pl.DataFrame) -> pl.DataFrame:
    """Calls of ``kernels`` that have another name: XLA on ROCm records some launches under the call before them."""
    wanted = kernels.select(LAUNCH_KEY).drop_nulls().unique()
    others = trace.api_calls(*_OTHERS) if wanted.height else trace.api_calls()
    return others.join(wanted, on=LAUNCH_KEY, how="semi").unique(LAUNCH_KEY, keep="first", maintain_order=True)


def _delays(delays: tuple[LaunchDelays, ...]) -> Grid:
    columns = (
        Column("device", "Device", "text", 0),
        Column("launches", "Launches joined", "count", 1),
        Column("joined_share", "Work joined", "ratio", 1),
        Column("smallest_ns", "Smallest", "ns", 0),
        Column("median_ns", "Median", "ns", 0),
        Column("p95_ns", "p95", "ns", 2),
        Column("moved_ns", "Clock moved by", "ns", 3),
    )
    rows = tuple(tuple(getattr(row, column.name) for column in columns) for row in delays)
    return Grid(columns, rows, "Delay from launch to start")


def _launches(calls: pl.DataFrame, work: pl.DataFrame) -> pl.DataFrame:
    """One row per launch call: ``name, process_id, correlation_id, api_ns, queue_ns``."""
    begun = work.drop_nulls("correlation_id").group_by(LAUNCH_KEY).agg(pl.col("start_ns").min().alias("begin_ns"))
    queue = pl.col("begin_ns") - pl.col("end_ns")
    return calls.join(begun, on=LAUNCH_KEY, how="left").select(
        "name",
        *LAUNCH_KEY,
        (pl.col("end_ns") - pl.col("start_ns")).alias("api_ns"),
        pl.when(queue >= 0).then(queue).alias("queue_ns"),
    )


def _aggregate(launches: pl.DataFrame, kernels: pl.DataFrame) -> pl.DataFrame:
    """Statistics of launches and of the kernels that they caused, per ``name``, the largest total first."""
    api, queue, kernel = pl.col("api_ns"), pl.col("queue_ns"), pl.col("dur_ns")
    of_calls = launches.group_by("name").agg(
        pl.len().cast(pl.Int64).alias("calls"),
        api.sum().alias("total_ns"),
        api.median().alias("api_median_ns"),
        api.quantile(0.95, "nearest").alias("api_p95_ns"),
        queue.count().cast(pl.Int64).alias("queued"),
        queue.median().alias("queue_median_ns"),
        queue.quantile(0.95, "nearest").alias("queue_p95_ns"),
    )
    caused = kernels.join(launches.select("name", *LAUNCH_KEY).unique(LAUNCH_KEY), on=LAUNCH_KEY)
    of_kernels = caused.group_by("name").agg(
        pl.len().cast(pl.Int64).alias("kernels"),
        kernel.sum().alias("kernel_total_ns"),
        kernel.median().alias("kernel_median_ns"),
    )
    both = of_calls.join(of_kernels, on="name", how="left").with_columns(
        pl.col("kernels", "kernel_total_ns").fill_null(0)
    )
    return both.sort("total_ns", "name", descending=[True, False])


def _calls_per_step(trace: TraceView, calls: pl.DataFrame) -> float | None:
    steps = training_steps(trace).steady.height
    if not steps:
        return None
    starts = {process: part["start_ns"].to_numpy() for process, part in parts_by(calls, "process_id").items()}
    steady = host_time(trace)
    inside = sum(int(steady[rank].contains(own).sum()) for rank, own in starts.items() if rank in steady)
    return inside / steps
