"""Loaders on threads of their own that never rest, and the time in which the training thread waits for one.

::

    training thread   |--step--|........|--step--|......|--step--|      dots: nothing recorded, and it runs on no core
    loader            |--read--|--read--|--read--|--read--|--read-      its ranges cover the steps: it is the slower one
    wait                       |--------|        |------|

A loader that rests between batches has its batch ready in time, so that the training thread waits for something else.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from traceviz.analyses.derived.frames import end_ns, having, intervals, outermost
from traceviz.analyses.derived.host.input_fetches import is_input, parameter_fetches
from traceviz.analyses.derived.judged_time import steady_time
from traceviz.analyses.derived.stacks.kinds import OFF_CORE
from traceviz.analyses.derived.stacks.sampled import sampled_stacks
from traceviz.analyses.derived.steps.search import training_steps, training_thread
from traceviz.analyses.derived.view import TraceView
from traceviz.core.arrays.intervals import IntervalSet

SATURATED = 0.9
"""A loader never rests if its ranges cover at least this share of the steady steps."""


@dataclass(frozen=True, slots=True, eq=False)
class Producer:
    """A loader on a thread of its own that never rests.

    Args:
        ranges: Its ranges: rows of :attr:`TraceView.ranges`, without those within others.
        waits: Time in which the training thread waits for it.
    """

    ranges: pl.DataFrame
    waits: IntervalSet

    @property
    def name(self) -> str:
        """The range with most of its time."""
        time = (pl.col("end_ns") - pl.col("start_ns")).sum().alias("time_ns")
        return str(self.ranges.group_by("name").agg(time).sort("time_ns", "name", descending=[True, False])["name"][0])


def find_producer(trace: TraceView, process_id: int) -> Producer | None:
    """Return the busiest loader on another thread of a process if it never rests, and the wait for it."""
    steady = steady_time(trace).get(process_id, IntervalSet.empty())
    thread = training_thread(trace, process_id)
    own = pl.col("process_id") == process_id
    loads = is_input(trace.options.input_range) & ~pl.col("name").is_in(list(parameter_fetches(trace)))
    ranges = trace.ranges.filter(own & (pl.col("thread_id") != thread)).filter(loads)
    if not steady.total or not ranges.height:
        return None
    parts = ranges.partition_by("thread_id", maintain_order=True)
    covered, busiest = max(((intervals(part), part) for part in parts), key=lambda p: p[0].intersect(steady).total)
    if covered.intersect(steady).total < SATURATED * steady.total:
        return None
    works = _time_at_work(trace, process_id, thread)
    order = ("start_ns", "end_ns", "range_id")
    return Producer(outermost(busiest.sort(*order, descending=[False, True, False])), covered.subtract(works))


def _time_at_work(trace: TraceView, process_id: int, thread: int) -> IntervalSet:
    """Return the time in which events or samples show what the training thread does, without the marks of steps."""
    marks = having(training_steps(trace).frame, "process_id", process_id)["start_ns"]
    ranges = having(having(trace.ranges, "process_id", process_id), "thread_id", thread)
    found = [intervals(ranges.filter(~pl.col("start_ns").is_in(marks.implode())))]
    for name in ("cuda_api", "host_ops"):
        events = trace.frame(name, "start_ns", "dur_ns", end_ns(), "process_id", "thread_id").drop_nulls("dur_ns")
        found.append(intervals(having(having(events, "process_id", process_id), "thread_id", thread)))
    if trace.tables.rows("stacks"):
        rows = having(having(sampled_stacks(trace), "process_id", process_id), "thread_id", thread)
        found.append(intervals(rows.filter((pl.col("leaf") != OFF_CORE) & (pl.col("kind") != "wait"))))
    return IntervalSet.empty().union(*found)
