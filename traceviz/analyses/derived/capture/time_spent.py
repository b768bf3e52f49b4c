"""Use of the time in a capture without a verdict: one sentence, from the recorded events.

::

    host     |------------preprocess------------|--model--|
    device                                         |work|work|
             |--------before the first work-------|

The sentence names an event of the leading thread. It is the innermost one that covers nearly all of the time, else half
of the time. Events that enclose the whole capture are ignored.
"""

from __future__ import annotations

import re

import numpy as np
import polars as pl

from traceviz.analyses.derived.calls.short_names import function_of, shortened
from traceviz.analyses.derived.capture.kind import capture_kind
from traceviz.analyses.derived.causes.attribution import host_causes
from traceviz.analyses.derived.causes.kinds import KIND_LABELS
from traceviz.analyses.derived.frames import bounds, codes, end_ns, having, intervals, of_process, without_nulls
from traceviz.analyses.derived.grouped import Groups
from traceviz.analyses.derived.host.classes import CHILD_WAITS, sees_host
from traceviz.analyses.derived.host.copy_calls import waiting_copies
from traceviz.analyses.derived.judged_time import steady_time
from traceviz.analyses.derived.launch.first import first_calls
from traceviz.analyses.derived.patterns import matches
from traceviz.analyses.derived.steps.search import NO_THREAD, training_thread
from traceviz.analyses.derived.view import TraceView
from traceviz.core.arrays.intervals import IntervalSet
from traceviz.core.arrays.nested import alike, outer_alike
from traceviz.core.arrays.sweeps import summed
from traceviz.core.units import format_ns, format_ratio

IDLE_SHARE = 0.2
"""Below this share of idle time, the device takes most of the time."""
MOSTLY = (0.9, 0.5)
"""Part of the time that a name must have; the second applies if no name has the first."""
WORTH_SAYING = 0.1
"""Parts of a time, such as waits in copy calls, are named from this share of it on."""
BRIEF = 0.2
"""Devices that work only within this share of the captured time do not show what the rest of it was."""
ENCLOSES = 0.95
"""An event of at least this share of the capture encloses it, except calls of the driver or the system."""

_SAYS_NOTHING = r"^ProfilerStep#|^\$profiler\.py"
"""Steps of a profiler, and the profiler's own work."""
_HOST = ("host_ops", "nvtx", "cuda_api", "os_calls")
_CALLS = ("cuda_api", "os_calls")
"""Tables of calls that never enclose a capture, however long they take."""


def describe_time_spent(trace: TraceView) -> str:
    """Return a sentence about where most of the captured time went; empty if nothing shows it."""
    if not trace.captured_ns or not trace.ranks or capture_kind(trace).key == "no-kernels":
        return ""
    rank = max(trace.ranks, key=lambda process: trace.idle_of(process).total)
    idle = trace.idle_of(rank)
    if idle.total < IDLE_SHARE * trace.captured_ns:
        return "" if capture_kind(trace).key == "one-kernel" else _describe_device(trace)
    return _describe_idle_time(trace, rank, idle) if trace.rank_busy else _describe_host(trace, rank, idle)


def describe_time_around_work(trace: TraceView) -> str:
    """Return a sentence about the time before or after all device work; empty if it is not most of the idle time."""
    if not trace.captured_ns or not trace.rank_busy or capture_kind(trace).key == "no-kernels":
        return ""
    rank = max(trace.ranks, key=lambda process: trace.idle_of(process).total)
    idle = trace.idle_of(rank)
    return _describe_edge(trace, rank, idle) if idle.total >= IDLE_SHARE * trace.captured_ns else ""


def share_with_device_work(trace: TraceView) -> float:
    """Return the share of the captured time from the first to the last device work; 1 if there is none."""
    if not trace.rank_busy or not trace.captured_ns or not trace.rank_extents:
        return 1.0
    starts, ends = zip(*trace.rank_extents.values(), strict=True)
    return float((max(ends) - min(starts)) / trace.captured_ns)


def _describe_idle_time(trace: TraceView, rank: int, idle: IntervalSet) -> str:
    if edge := _describe_edge(trace, rank, idle):
        return edge
    name, inside = find_costliest_name(trace, rank, idle)
    share = format_ratio(inside / trace.captured_ns)
    of_captured = f"({share} of the captured time)"
    return f"While it was idle, the host was mostly in {name} {of_captured}." if name else _describe_kind(trace, rank)


def _describe_edge(trace: TraceView, rank: int, idle: IntervalSet) -> str:
    """Return a sentence about the longer of the times before the first and after the last device work."""
    begin, end = trace.window_of(rank)
    first, last = trace.rank_extents.get(rank, (begin, end))
    is_start = bool(steady_time(trace)) or first - begin >= end - last  # steps have the time after them elsewhere
    window = IntervalSet.span(begin, first) if is_start else IntervalSet.span(last, end)
    if 2 * window.total < idle.total or window.total < IDLE_SHARE * trace.captured_ns:
        return ""
    name, inside = find_costliest_name(trace, rank, window)
    why = _explain_length(trace, rank, name, window) if name else ""
    parts = [] if name else find_parts_of_time(trace, rank, window)
    plural = "s" if len(parts) > 1 else ""
    largest = f"The largest known part{plural} of that: {list_parts_of_time(parts)}." if parts else ""
    if capture_kind(trace).key == "start-up":  # its evidence already gives the amount
        return f"Most of it is in {name}{why}." if name else largest
    where = f", {format_ns(inside)} of it in {name}{why}" if name else ""
    whole = format_ns(trace.captured_ns)
    edge = f"{format_ns(window.total)} ({format_ratio(window.total / trace.captured_ns)})"
    if is_start:
        return f"The first device work starts {edge} into the {whole} captured{where}. {largest}".strip()
    return f"The last device work ends {edge} before the end of the {whole} captured{where}. {largest}".strip()


def list_parts_of_time(parts: list[tuple[str, int]]) -> str:
    """Return the first two parts of a time and their lengths as text; empty if there are none."""
    return " and ".join(f"{what} ({format_ns(time_ns)})" for what, time_ns in parts[:2])


def find_parts_of_time(
    trace: TraceView, rank: int, time: IntervalSet, calls_of: tuple[str, ...] = _CALLS
) -> list[tuple[str, int]]:
    """Return what takes at least a tenth of ``time`` without device work, as text and length, the longest first.

    Parts are exclusive: work of the profiler, else calls of the device's API on any thread, else system calls of the
    leading thread, as far as their tables are among ``calls_of``.
    """
    taken = _find_overhead(trace, rank).intersect(time)
    found, free = [("the profiler's own work", taken.total)], time.subtract(taken)
    thread = training_thread(trace, rank)
    for table in calls_of:
        if not trace.tables.rows(table) or not free.total:
            continue
        calls = of_process(trace.frame(table, "name", "start_ns", "dur_ns", "process_id", "thread_id"), rank)
        calls = having(calls, "thread_id", thread) if table == "os_calls" else calls
        group, first = alike(codes(calls["name"]))
        starts, ends = bounds(calls)
        sums = summed(group, free.overlap(starts, ends), first.size)
        for number in np.flatnonzero(sums >= WORTH_SAYING * time.total):
            is_own = group == number  # calls may nest, and run on several threads at once
            time_ns = IntervalSet.of(starts[is_own], ends[is_own]).intersect(free).total
            name = str(calls["name"][int(first[number])])
            waits = f"waiting for child processes in {name}" if re.search(CHILD_WAITS, name) else ""
            found.append((waits or shortened(name), time_ns))
        free = free.subtract(intervals(calls))
    large = [(what, time_ns) for what, time_ns in found if time_ns >= WORTH_SAYING * time.total > 0]
    return sorted(large, key=lambda part: (-part[1], part[0]))


def _find_overhead(trace: TraceView, rank: int) -> IntervalSet:
    """Return the time in which the profiler itself works in a process, or in one that it does not state."""
    if not trace.tables.rows("overhead"):
        return IntervalSet.empty()
    overhead = trace.frame("overhead", "start_ns", "dur_ns", "process_id")
    return intervals(overhead.filter(pl.col("process_id").is_null() | (pl.col("process_id") == rank)))


_WHAT_FIRST_CALLS_DO = {"context": ", which creates the context of the device", "code": ", which loads device code"}


def _explain_length(trace: TraceView, rank: int, name: str, window: IntervalSet) -> str:
    """Return why calls of this name took so long, if known: profiler overhead, or first calls."""
    taken = _find_overhead(trace, rank).intersect(window).total
    if 2 * taken >= window.total:
        return f", and {format_ns(taken)} are the work of the profiler"
    first = first_calls(trace).filter((pl.col("name").cast(pl.String) == name) & (pl.col("process_id") == rank))
    times = first.group_by("what").agg((pl.col("end_ns") - pl.col("start_ns")).sum().alias("time"))
    long = times.filter(2 * pl.col("time") >= window.total)
    return _WHAT_FIRST_CALLS_DO[long["what"][0]] if long.height else ""


def _describe_kind(trace: TraceView, rank: int) -> str:
    """Describe the host's activity in steps while the device was idle, if steps hide the total idle time."""
    if not steady_time(trace) or not sees_host(trace):
        return ""
    causes = having(host_causes(trace), "process_id", rank)
    if not causes.height:
        return ""
    times = causes.group_by("kind").agg(pl.col("time_ns").sum()).sort("time_ns", "kind", descending=[True, False])
    kind, most = times.row(0)
    idle, part = trace.idle_of(rank).total / trace.captured_ns, most / times["time_ns"].sum()
    most = "mostly" if part >= MOSTLY[1] else "the largest part"
    return (
        f"It was idle in {format_ratio(idle)} of the captured time, {most} {KIND_LABELS[kind]} ({format_ratio(part)})."
    )


def _describe_host(trace: TraceView, rank: int, time: IntervalSet) -> str:
    name, inside = find_costliest_name(trace, rank, time)
    if name:
        share = format_ratio(inside / trace.captured_ns)
        waits = _describe_copy_waits(trace, rank, name)
        return f"Of the {format_ns(trace.captured_ns)} captured, {share} were spent in {name}{waits}."
    calls = pl.concat([trace.frame(table, pl.col("name").cast(pl.String), "start_ns", end_ns()) for table in _HOST])
    calls = calls.filter(~matches(pl.col("name"), _SAYS_NOTHING))
    totals = calls.group_by("name").agg((pl.col("end_ns") - pl.col("start_ns")).sum().alias("total"))
    if not totals.height:
        return ""
    name, total = totals.sort("total", "name", descending=True).row(0)
    unseen = 1 - intervals(calls.select("start_ns", "end_ns")).total / trace.captured_ns
    nothing = (
        f", and nothing was recorded in {format_ratio(unseen)} of the captured time" if unseen >= MOSTLY[1] else ""
    )
    return f"Most of the recorded time of its threads is in {shortened(name)} ({format_ns(total)}){nothing}."


def _describe_copy_waits(trace: TraceView, rank: int, name: str) -> str:
    """Return the time in copy calls that wait, within the sentence on ``name``; empty if it is little."""
    waits = having(waiting_copies(trace), "process_id", rank).with_columns(pl.col("name").cast(pl.String))
    covered = intervals(waits.select(pl.col("wait_ns").alias("start_ns"), "end_ns")).total
    if covered < WORTH_SAYING * trace.captured_ns or name in waits["name"]:
        return ""
    return f", and {format_ratio(covered / trace.captured_ns)} waiting in {waits['name'].mode().sort()[0]}"


def _describe_device(trace: TraceView) -> str:
    kernels = trace.frame("kernels", "name", "dur_ns").group_by("name").agg(pl.col("dur_ns").sum().alias("time"))
    if not kernels.height or not kernels["time"].sum():
        return ""
    name, time = kernels.with_columns(pl.col("name").cast(pl.String)).sort("time", "name", descending=True).row(0)
    in_graphs = trace.frame("graphs", "dur_ns")["dur_ns"].sum() or 0
    if in_graphs > kernels["time"].sum():
        return "Most of what it computes ran in CUDA graphs that were recorded as a whole."
    share = format_ratio(time / kernels["time"].sum())
    return f"The kernel with most of its time is {shortened(function_of(name))} ({share})."


def find_costliest_name(trace: TraceView, rank: int, time: IntervalSet) -> tuple[str, int]:
    """Return the name with the shortest events among those that cover most of ``time``, and its time; may be empty."""
    thread = training_thread(trace, rank)
    if thread == NO_THREAD or not time.total:
        return "", 0
    tables = [
        _sum_times(trace, table, thread, time).with_columns(pl.lit(table in _CALLS).alias("is_call")) for table in _HOST
    ]
    events = pl.concat(tables).filter(~matches(pl.col("name"), _SAYS_NOTHING))
    names = events.group_by("name", "is_call").agg(pl.col("inside").sum(), pl.col("total").sum())
    names = names.filter(pl.col("is_call") | (pl.col("total") < ENCLOSES * trace.captured_ns)).sort(
        "total", "name", "is_call"
    )
    for share in MOSTLY:
        most = names.filter(pl.col("inside") >= share * time.total)
        if most.height:
            return shortened(str(most["name"][0])), int(most["inside"][0])
    return "", 0


def _sum_times(trace: TraceView, table: str, thread: int, time: IntervalSet) -> pl.DataFrame:
    """Return ``name, inside, total``: the total time of a thread's events, and their time within ``time``, by name.

    Calls within a call of the same name count once, with that call. A name may occur several times.
    """
    sums = []
    for events in trace.pieces(table, "name", "start_ns", "dur_ns", "thread_id"):
        own = having(events, "thread_id", thread).sort("start_ns", "dur_ns", descending=[False, True])
        ends, names = bounds(own)[1], alike(codes(own["name"]))[0]
        own = own.filter(pl.Series(outer_alike(np.zeros(ends.size, np.int64), ends, names), dtype=pl.Boolean))
        groups, durations = Groups.of(own, "name"), without_nulls(own["dur_ns"], 0).to_numpy()
        inside, total = groups.sums(time.overlap(*bounds(own))), groups.sums(durations)
        sums.append(groups.keys.with_columns(pl.Series("inside", inside), pl.Series("total", total)))
    return pl.concat(sums)
