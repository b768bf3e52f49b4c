"""The launch path: the host's time for a launch, the queue delay of the work, and its run time.

::

    host    |--launch call--|
    device                       |---kernel---|
            |<--- api ----->|<-->|<- kernel ->|
                            queue

The queue is null, and not zero, if the kernel started before the call returned. A graph launch is one call with many
kernels; its queue is that of the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import numpy as np
import polars as pl

from traceviz.analyses.base import Analysis
from traceviz.analyses.derived.capture.kind import why_no_device_work
from traceviz.analyses.derived.capture.launch_delays import LaunchDelays, launch_delays
from traceviz.analyses.derived.device.work import COMPUTING
from traceviz.analyses.derived.frames import blocks, gathered, partners, parts_by, rows_where
from traceviz.analyses.derived.grouped import Groups, Ordered
from traceviz.analyses.derived.judged_time import host_time
from traceviz.analyses.derived.launch.join import LAUNCH_KEY
from traceviz.analyses.derived.statistics import CALLS, TOTAL, frame_grid, largest_first
from traceviz.analyses.derived.steps.search import training_steps
from traceviz.analyses.derived.view import TraceView
from traceviz.core.units import counted
from traceviz.report import Block, Column, Fact, Facts, Grid, Prose, Section, Skipped
from traceviz.trace.names.cuda_names import ApiKind


@dataclass(frozen=True, slots=True)
class LaunchTimes:
    """Launches as a whole and by API function.

    Args:
        overall: All launches, one row of the columns of ``by_name``.
        by_name: One row per API function, the largest total first.
        kernels: Kernels in the capture.
        without_call: Kernels whose launch call is not in the capture.
        per_step: Launch calls per steady step; ``None`` if no steps were found.
        captured: Calls captured by a graph, which launched nothing.
        delays: Delays from calls to the work that they launched, by device.
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
        call = partners(kernels, calls)
        others = _other_calls(trace, kernels.filter(pl.Series(call < 0, dtype=pl.Boolean)))
        if others.height:
            calls = pl.concat([calls, others])
            call = partners(kernels, calls)
        if not calls.height and captured:
            return self.skipped(f"all {captured:,} launch calls were captured in graphs, and launched nothing")
        if not calls.height:
            return self.skipped("the capture has no kernel launch calls")
        if why := why_no_device_work(trace):
            return self.skipped(f"{why}: only the calls are known")
        caused = rows_where(kernels[["dur_ns"]], pl.Series(call >= 0, dtype=pl.Boolean))
        caused = caused.with_columns(gathered(calls["name"], call[call >= 0]).alias("name"))
        count, without_call = kernels.height, kernels.height - caused.height
        del kernels, call
        overall, by_name = _times(trace, calls, caused)
        per_step = _calls_per_step(trace, calls)
        del calls, caused
        return LaunchTimes(overall, by_name, count, without_call, per_step, captured, launch_delays(trace))

    def describe(self, result: LaunchTimes) -> Section:
        """Describe medians over all launches, and one row per API function."""
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
    """Return calls of ``kernels`` under another name: XLA on ROCm records some launches under the call before them."""
    wanted = kernels.select(LAUNCH_KEY).drop_nulls().unique() if kernels.height else kernels
    if not wanted.height:
        return trace.api_calls()
    others = trace.api_calls(*_OTHERS)
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


def _queue(trace: TraceView, calls: pl.DataFrame) -> pl.Series:
    """Return ``queue_ns`` from each call's end to its first work's start; null if that started before or never."""
    ends, least = calls["end_ns"].to_numpy(), np.iinfo(np.int64).max
    begins = np.full(calls.height, least)
    for name in filter(trace.tables.rows, COMPUTING):  # sorted by start: the first work of a call is its earliest
        work = trace.frame(name, "start_ns", *LAUNCH_KEY)
        first, starts = partners(calls, work), work["start_ns"].to_numpy()
        for part in blocks(first.size):
            np.minimum(begins[part], starts[first[part]], out=begins[part], where=first[part] >= 0)
    waited = (begins < least) & (begins >= ends)
    np.subtract(begins, ends, out=begins)
    return pl.Series("queue_ns", begins).set(pl.Series(~waited, dtype=pl.Boolean), None)


def _times(trace: TraceView, calls: pl.DataFrame, caused: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return statistics of all ``calls``, and by name, with those of the kernels that they ``caused``."""
    times = calls.select("name", (pl.col("end_ns") - pl.col("start_ns")).alias("api_ns"), _queue(trace, calls))
    by_name = _aggregate(times, caused)
    every = pl.lit("all").alias("name")
    if by_name.height == 1:
        return by_name.with_columns(every), by_name
    return _aggregate(times.with_columns(every), caused.with_columns(every)), by_name


def _aggregate(times: pl.DataFrame, caused: pl.DataFrame) -> pl.DataFrame:
    """Return statistics of calls and of the kernels that they caused, per ``name``, the largest total first.

    Args:
        times: ``name, api_ns, queue_ns`` of calls.
        caused: ``name`` of the call and ``dur_ns`` of kernels.
    """
    calls, kernels = Groups.of(times, "name"), Groups.of(caused, "name")
    of_calls = calls.keys.with_columns(
        pl.Series("calls", calls.counts),
        *_of_api(calls.ordered(times["api_ns"])),
        *_of_queue(calls.ordered(times["queue_ns"])),
    )
    of_kernels = kernels.keys.with_columns(
        pl.Series("kernels", kernels.counts), *_of_kernels(kernels.ordered(caused["dur_ns"]))
    )
    both = of_calls.join(of_kernels, on="name", how="left").with_columns(
        pl.col("kernels", "kernel_total_ns").fill_null(0)
    )
    return largest_first(both, "name")


def _of_api(times: Ordered) -> tuple[pl.Series, ...]:
    return pl.Series("total_ns", times.sums()), *_middle_and_upper("api", times)


def _of_queue(times: Ordered) -> tuple[pl.Series, ...]:
    return pl.Series("queued", times.counts), *_middle_and_upper("queue", times)


def _of_kernels(times: Ordered) -> tuple[pl.Series, ...]:
    return pl.Series("kernel_total_ns", times.sums()), _middle_and_upper("kernel", times)[0]


def _middle_and_upper(name: str, times: Ordered) -> tuple[pl.Series, pl.Series]:
    """Return median and 95th percentile of each group, null if it has no value."""
    missing = pl.Series(times.counts == 0, dtype=pl.Boolean)
    return (
        pl.Series(f"{name}_median_ns", times.medians()).set(missing, None),
        pl.Series(f"{name}_p95_ns", times.quantiles(0.95)).set(missing, None),
    )


def _calls_per_step(trace: TraceView, calls: pl.DataFrame) -> float | None:
    steps = training_steps(trace).steady.height
    if not steps:
        return None
    starts = {process: part["start_ns"].to_numpy() for process, part in parts_by(calls, "process_id").items()}
    steady = host_time(trace)
    inside = sum(int(steady[rank].contains(own).sum()) for rank, own in starts.items() if rank in steady)
    return inside / steps
