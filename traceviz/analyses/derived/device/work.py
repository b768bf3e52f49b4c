"""Device work for several analyses: classes of kernels, the time in which they run, and the owners of devices."""

from __future__ import annotations

import polars as pl

from traceviz.analyses.derived.frames import unions_by
from traceviz.analyses.derived.judged_time import judged_time
from traceviz.analyses.derived.view import TraceView
from traceviz.core.arrays.intervals import IntervalSet
from traceviz.trace.names.kernel_names import COMMUNICATION

COMPUTING = ("kernels", "graphs")
"""Tables of computing work."""


def communication_names(trace: TraceView) -> list[str]:
    """Return names of the trace's communication kernels."""
    return [name for name, kernel in trace.kernel_classes.items() if kernel.family == COMMUNICATION]


def computing(trace: TraceView, *columns: str) -> pl.DataFrame:
    """Return kernels, and graphs recorded as a whole, with ``columns`` that both have; in no particular order.

    The contents of such a graph are not known, so it counts as kernels from its start to its end.
    """
    tables = [name for name in COMPUTING if trace.tables.rows(name)] or COMPUTING[:1]
    return pl.concat([trace.frame(name, *columns) for name in tables])


def kernel_busy(trace: TraceView) -> dict[int, IntervalSet]:
    """Return the time in which kernels or graphs (no copies or fills) run on any stream, by ``device_id``."""
    if not trace.tables.rows("graphs"):
        return trace.kernel_unions
    return unions_by(computing(trace, "start_ns", "dur_ns", "device_id"), "device_id")


def exposed(work: pl.DataFrame, cover: dict[int, IntervalSet]) -> dict[int, IntervalSet]:
    """Return the time of ``work`` on each device in which ``cover`` does not run there.

    ::

        work     |-------|     |---|
        cover       |-------------|
        exposed  |--|             |-|
    """
    nothing = IntervalSet.empty()
    return {device: own.subtract(cover.get(device, nothing)) for device, own in unions_by(work, "device_id").items()}


def judged_device_ns(trace: TraceView) -> int:
    """Return judged time, counted once per device that a process uses: the base for shares of idle device time."""
    return sum(judged_time(trace, process).total for process, _ in trace.owners)
