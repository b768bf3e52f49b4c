"""Gaps between device work, each with the host's activity during the gap."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import polars as pl

from traceviz.analyses.base import Analysis
from traceviz.analyses.derived.capture.kind import why_idle_is_unknown, why_no_device_work
from traceviz.analyses.derived.device.names import device_names
from traceviz.analyses.derived.frames import bounds, intervals
from traceviz.analyses.derived.host.classes import IDLE_CLASSES, LABELS, host_classes, sees_host
from traceviz.analyses.derived.stacks.sampled import sampled_stacks
from traceviz.analyses.derived.steps.search import training_thread
from traceviz.analyses.derived.view import TraceView, once_per_trace
from traceviz.core.arrays.intervals import IntervalSet, union_all
from traceviz.core.units import format_ratio
from traceviz.report import Bar, Bars, Column, Fact, Facts, Grid, Prose, Section, Skipped

BEFORE, AFTER, OVERHEAD = "before_first_work", "after_last_work", "profiler_overhead"
ELSEWHERE, UNKNOWN = "other_device_busy", "host_not_recorded"
CAUSE_LABELS = {
    **{c.key: LABELS[c.key] for c in IDLE_CLASSES},
    BEFORE: "before the first device work",
    AFTER: "after the last device work",
    OVERHEAD: "profiler overhead",
    ELSEWHERE: "another device works",
    UNKNOWN: "the host was not recorded",
}
"""Causes of gaps by key. Inner gaps take the cause that covers most of them.

While another device of the same process works, the host's activity does not explain this device's gap.
"""


@dataclass(frozen=True, slots=True)
class Gap:
    """One idle gap.

    ``range`` is the innermost NVTX range of the training thread at its middle. ``functions`` are the compiled functions
    with most of its time, by samples of the threads; empty if none were sampled.
    """

    start_ns: int
    dur_ns: int
    device: str
    cause: str
    range: str | None
    functions: str = ""


@dataclass(frozen=True, slots=True)
class IdleGaps:
    """Number and time of the gaps by cause, the largest gaps one by one, and what clock corrections mean for them."""

    by_cause: dict[str, tuple[int, int]]
    largest: tuple[Gap, ...]
    doubt: str = ""

    @property
    def gaps(self) -> int:
        """Number of gaps."""
        return sum(count for count, _ in self.by_cause.values())

    @property
    def idle_ns(self) -> int:
        """Time in gaps, summed over devices."""
        return sum(time for _, time in self.by_cause.values())


@dataclass(frozen=True, slots=True)
class IdleGapsAnalysis(Analysis[IdleGaps]):
    """Gaps of each device (union over its streams), including those before its first and after its last work.

    Args:
        min_gap_ns: Only gaps longer than this are counted.
        listed: Number of gaps listed one by one, the largest.
    """

    slug = "idle_gaps"
    title = "Idle gaps of the devices"

    min_gap_ns: int = 10_000
    listed: int = 100

    def run(self, trace: TraceView) -> IdleGaps | Skipped:
        """Find the gaps, and the host class that covers most of each."""
        # A time window may leave only the end instant of a device's work.
        devices = [device for device, busy in trace.device_busy.items() if busy.starts.size]
        unknown = why_no_device_work(trace) or why_idle_is_unknown(trace)
        if why := unknown or ("" if devices else "no device work was captured"):
            return self.skipped(why)
        gaps = pl.concat([self._gaps_of(trace, device) for device in devices])
        sums = gaps.group_by("cause").agg(pl.len(), pl.col("dur_ns").sum())
        ordered = sums.sort("dur_ns", "cause", descending=[True, False])
        by_cause = {cause: (count, time) for cause, count, time in ordered.iter_rows()}
        largest = gaps.sort("dur_ns", "start_ns", descending=[True, False]).head(self.listed)
        return IdleGaps(by_cause, tuple(_with_context(trace, largest)), trace.clock_doubt)

    def _gaps_of(self, trace: TraceView, device: int) -> pl.DataFrame:
        busy = trace.device_busy[device]
        idle = busy.complement(*trace.window_of_device(device))
        keep = idle.durations > self.min_gap_ns
        starts, ends = idle.starts[keep], idle.ends[keep]
        processes = [process for process, used in trace.owners if used == device]
        keys, covered = [], []
        for key, part in _cause_sets(trace, processes):
            keys.append(key)
            covered.append(part.overlap(starts, ends))
        cause = np.array(keys)[np.argmax(np.stack(covered), axis=0)] if starts.size else np.array([], dtype=str)
        cause = np.where(ends <= busy.starts[0], BEFORE, np.where(starts >= busy.ends[-1], AFTER, cause))
        return pl.DataFrame(
            {"start_ns": starts, "dur_ns": ends - starts, "cause": pl.Series(cause.tolist(), dtype=pl.String)}
        ).with_columns(
            pl.lit(device_names(trace)[device]).alias("device"), pl.lit(processes[0], pl.Int32).alias("process_id")
        )

    def describe(self, result: IdleGaps) -> Section:
        """Describe causes first, then the largest gaps."""
        facts = (
            Fact("gaps", f"gaps over {self.min_gap_ns // 1000} µs", result.gaps, "count"),
            Fact("idle_ns", "idle in gaps", result.idle_ns, "ns"),
        )
        whole = result.idle_ns or 1
        bars = tuple(
            Bar(cause, f"{CAUSE_LABELS[cause]} ({count:,})", time, time / whole)
            for cause, (count, time) in result.by_cause.items()
        )
        columns: tuple[Column, ...] = (
            Column("start_ns", "Start", "ns", 1),
            Column("dur_ns", "Duration", "ns", 0, additive=True),
            Column("device", "Device", "text", 3),
            Column("cause", "Host meanwhile", "text", 0),
            Column("range", "Within range", "text", 2),
        )
        rows: tuple[tuple[int | str | None, ...], ...] = tuple(
            (g.start_ns, g.dur_ns, g.device, CAUSE_LABELS[g.cause], g.range) for g in result.largest
        )
        if any(gap.functions for gap in result.largest):
            columns += (Column("functions", "Sampled functions, of the gap", "text", 0),)
            rows = tuple((*row, gap.functions or None) for row, gap in zip(rows, result.largest, strict=True))
        grid = Grid(columns, rows, "Largest gaps")
        causes = Bars("Causes (number of gaps)", "time in gaps", "ns", bars)
        doubt = (Prose(result.doubt),) if result.doubt else ()
        return Section(self.slug, self.title, (Facts(facts), *doubt, causes, grid))


def _cause_sets(trace: TraceView, processes: Iterable[int]) -> Iterable[tuple[str, IntervalSet]]:
    """Yield exclusive sets that cover a device's gaps: overhead, other devices of its processes, else the host."""
    overhead = intervals(trace.frame("overhead", "start_ns", "dur_ns"))
    yield OVERHEAD, overhead
    yield ELSEWHERE, union_all(trace.rank_busy[process] for process in processes).subtract(overhead)
    if not sees_host(trace):
        yield UNKNOWN, union_all(trace.idle_of(process) for process in processes).subtract(overhead)
        return
    for c in IDLE_CLASSES:
        sets = [host_classes(trace)[process].idle[c.key] for process in processes]
        yield c.key, IntervalSet.empty().union(*sets).subtract(overhead)


def _with_context(trace: TraceView, gaps: pl.DataFrame) -> Iterable[Gap]:
    """Yield the listed gaps with the innermost range of the training thread at their middle."""
    on_threads = {rank: pl.col("thread_id") == training_thread(trace, rank) for rank in gaps["process_id"].unique()}
    ranges = {rank: trace.ranges.filter(mask).sort("start_ns", "depth") for rank, mask in on_threads.items()}
    for start, duration, cause, device, process in gaps.iter_rows():  # only the listed ones
        begins, ends = bounds(ranges[process])
        middle = start + duration // 2
        around = np.flatnonzero(ends[: np.searchsorted(begins, middle, side="right")] > middle)
        name = ranges[process]["name"][int(around[-1])] if around.size else None
        yield Gap(start, duration, device, cause, name, _hottest(trace, process, start, start + duration))


def _hottest(trace: TraceView, process: int, start: int, end: int) -> str:
    """Return the compiled functions with most of the time from ``start`` to ``end``, with their share of it."""
    if not trace.tables.rows("stacks"):
        return ""
    rows = _compiled(trace).filter(pl.col("process_id") == process, pl.col("start_ns") < end, pl.col("end_ns") > start)
    if not rows.height:
        return ""
    inside = pl.min_horizontal("end_ns", pl.lit(end)) - pl.max_horizontal("start_ns", pl.lit(start))
    keys = ("thread_id", "leaf")
    times = rows.group_by(keys).agg(inside.sum().alias("time_ns"))
    times = times.filter(pl.col("time_ns") >= LEAST_PART * (end - start))
    top = times.sort("time_ns", *keys, descending=[True, False, False]).head(MOST_FUNCTIONS)
    leader = training_thread(trace, process)
    names = dict(trace.frame("threads", "thread_id", pl.col("name").cast(pl.String)).iter_rows())
    return ", ".join(
        f"{leaf} {format_ratio(time / (end - start))}"
        + ("" if thread == leader else f" on {names.get(thread) or 'another thread'}")
        for thread, leaf, time in top.iter_rows()
    )


@once_per_trace
def _compiled(trace: TraceView) -> pl.DataFrame:
    """Return the samples of compiled code: rows of ``sampled_stacks``."""
    return sampled_stacks(trace).filter(pl.col("kind") == "native")


LEAST_PART, MOST_FUNCTIONS = 0.05, 3
"""Least share of a gap for a function to be named, and the most functions named."""
