"""Device work as several analyses judge it: classes of kernels, time in which they run, and whose devices they are."""

from __future__ import annotations

import polars as pl

from traceviz.analyses.derived.frames import unions_by
from traceviz.analyses.derived.judged_time import judged_time
from traceviz.analyses.derived.view import TraceView
from traceviz.core.arrays.intervals import IntervalSet
from traceviz.trace.names.kernel_names import COMMUNICATION

COMPUTING = ("kernels", "graphs")
"""Tables of work that computes."""


def communication_names(trace: TraceView) -> list[str]:
    """Names of the trace's kernels that communicate."""
    return [name for name, kernel in trace.kernel_classes.items() if kernel.family == COMMUNICATION]


def computing(trace: TraceView, *columns: str) -> pl.DataFrame:
    """Kernels, and graphs that were recorded as a whole, as far as both have ``columns``; in no particular order.

    What ran in such a graph is not known: it counts as kernels from its begin to its end.
    """
    tables = [name for name in COMPUTING if trace.tables.rows(name)] or COMPUTING[:1]
    return pl.concat([trace.frame(name, *columns) for name in tables])


def kernel_busy(trace: TraceView) -> dict[int, IntervalSet]:
    """Time in which kernels or graphs run, by ``device_id``: the union over streams, copies and fills not counted."""
    if not trace.tables.rows("graphs"):
        return trace.kernel_unions
    return unions_by(computing(trace, "start_ns", "dur_ns", "device_id"), "device_id")


def exposed(work: pl.DataFrame, cover: dict[int, IntervalSet]) -> dict[int, IntervalSet]:
    """Time of ``work`` on each device in which ``cover`` does not run there.

    ::

        work     |-------|     |---|
        cover       |-------------|
        exposed  |--|             |-|
    """
    nothing = IntervalSet.empty()
    return {device: own.subtract(cover.get(device, nothing)) for device, own in unions_by(work, "device_id").items()}


def judged_device_ns(trace: TraceView) -> int:
    """Judged time, counted once for each device that a process uses: what idle time of devices is a share of."""
    return sum(judged_time(trace, process).total for process, _ in trace.owners)
