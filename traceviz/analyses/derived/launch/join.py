"""The call that launched each piece of device work: the basis for ranges, operators and modules.

::

    thread   |--operator------------------|
                 |launch call|
    device                       |--kernel--|

Device work refers to its call by ``process_id`` and ``correlation_id``, which is unique only within a process. Work of
a CUDA graph refers to the call that launched the graph; see :mod:`traceviz.analyses.derived.launch.graphs`.
"""

from __future__ import annotations

import re

import polars as pl

from traceviz.analyses.derived.frames import end_ns, gathered, knowing, partners
from traceviz.analyses.derived.view import TraceView
from traceviz.trace import schema

LAUNCH_KEY = ("process_id", "correlation_id")
"""Columns that device work shares with the call that launched it."""


_GRAPH_LAUNCH = r"(?:cuda|cu|hip)GraphLaunch"


def work_with_calls(trace: TraceView) -> pl.DataFrame:
    """Return all device work, with the call that launched it, in no particular order.

    Returns:
        ``process_id, begin_ns, end_ns, op, kernel, graph_node_id`` of the work: names as they are stored; ``kernel`` is
        null for copies, fills and graphs recorded as a whole. ``thread_id, call_ns, call_end_ns`` of the call: null if
        the capture lacks it. ``by_graph``: true if a graph launched the work.
    """
    names = graph_launches(trace)
    known = pl.col("name").is_in(names) if names else pl.lit(value=False)
    launches_graph = known.alias("launches_graph")
    calls = trace.frame("cuda_api", *LAUNCH_KEY, "thread_id", "start_ns", "dur_ns", launches_graph)
    calls = calls.select(
        *LAUNCH_KEY, "thread_id", pl.col("start_ns").alias("call_ns"), end_ns("call_end_ns"), "launches_graph"
    )
    work = pl.concat([_work(trace, name) for name in schema.DEVICE_WORK])
    row = partners(work, calls)  # calls are sorted by start, so the first with an id is the earliest
    joined = work.with_columns(
        gathered(calls[name], row) for name in ("thread_id", "call_ns", "call_end_ns", "launches_graph")
    )
    by_graph = pl.col("launches_graph").fill_null(value=False) | pl.col("by_graph")
    return joined.with_columns(by_graph.alias("by_graph")).drop("correlation_id", "launches_graph")


def launched_work(trace: TraceView) -> pl.DataFrame:
    """Return the rows of :func:`work_with_calls` whose call is known, in order of calls."""
    return knowing(work_with_calls(trace), "call_ns").sort("call_ns", "begin_ns", "end_ns")


def without_graphs(trace: TraceView, work: pl.DataFrame) -> pl.DataFrame:
    """Return the ``work`` that no graph launched; it must have ``graph_node_id`` and :data:`LAUNCH_KEY`."""
    alone = work.filter(pl.col("graph_node_id").is_null()) if work["graph_node_id"].count() else work
    names = graph_launches(trace)
    if not names:
        return alone
    calls = trace.frame("cuda_api", *LAUNCH_KEY, "name").filter(pl.col("name").is_in(names))
    return alone.join(calls, on=LAUNCH_KEY, how="anti", maintain_order="left")


def graph_launches(trace: TraceView) -> list[str]:
    """Return the names of the trace's calls that launch graphs."""
    return [name for name in trace.api_names.get("launch", []) if re.match(_GRAPH_LAUNCH, name)]


def _work(trace: TraceView, table: str) -> pl.DataFrame:
    kernel = ("name",) if table == "kernels" else ()
    node = () if table == "graphs" else ("graph_node_id",)
    rows = trace.frame(table, *LAUNCH_KEY, "start_ns", "dur_ns", "op", *kernel, *node)
    name = pl.col("name") if kernel else pl.lit(None, pl.Categorical)
    number = pl.col("graph_node_id") if node else pl.lit(None, pl.Int64).alias("graph_node_id")
    of_graph = pl.col("graph_node_id").is_not_null() if node else pl.lit(value=True)
    begin = pl.col("start_ns").alias("begin_ns")
    return rows.select(
        *LAUNCH_KEY, begin, end_ns("end_ns"), "op", name.alias("kernel"), number, of_graph.alias("by_graph")
    )
