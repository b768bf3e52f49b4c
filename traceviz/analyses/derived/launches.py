"""Which call launched which device work: the join below everything about ranges, operators and modules.

::

    thread   |--operator------------------|
                 |launch call|
    device                       |--kernel--|

Device work refers to its call by ``process_id`` and ``correlation_id``, which is unique only within a process.
"""

from __future__ import annotations

import polars as pl

from traceviz import schema
from traceviz.analyses.derived.frames import end_ns
from traceviz.analyses.derived.view import TraceView

LAUNCH_KEY = ("process_id", "correlation_id")
"""Columns that device work and the call that launched it have in common."""


def work_with_calls(trace: TraceView) -> pl.DataFrame:
    """All device work, with the call that launched it.

    Returns:
        ``process_id, begin_ns, end_ns, op, kernel`` of the work (names as they are stored; ``kernel`` is
        null for copies and fills), and ``thread_id, call_ns, call_end_ns`` of the call, null where the capture does not
        have it. In no particular order.
    """
    calls = trace.frame("cuda_api", *LAUNCH_KEY, "thread_id", "start_ns", "dur_ns").drop_nulls("correlation_id")
    calls = calls.select(*LAUNCH_KEY, "thread_id", pl.col("start_ns").alias("call_ns"), end_ns("call_end_ns"))
    once = calls.sort("call_ns").unique(LAUNCH_KEY, keep="first", maintain_order=True)
    work = pl.concat([_work(trace, name) for name in schema.DEVICE_WORK])
    return work.join(once, on=LAUNCH_KEY, how="left").drop("correlation_id")


def launched_work(trace: TraceView) -> pl.DataFrame:
    """Those rows of :func:`work_with_calls` whose call is known, in order of calls."""
    return work_with_calls(trace).drop_nulls("call_ns").sort("call_ns", "begin_ns", "end_ns")


def _work(trace: TraceView, table: str) -> pl.DataFrame:
    kernel = ("name",) if table == "kernels" else ()
    rows = trace.frame(table, *LAUNCH_KEY, "start_ns", "dur_ns", "op", *kernel)
    name = pl.col("name") if kernel else pl.lit(None, pl.Categorical)
    begin = pl.col("start_ns").alias("begin_ns")
    return rows.select(*LAUNCH_KEY, begin, end_ns("end_ns"), "op", name.alias("kernel"))
