"""The call that launched each piece of device work: the basis for ranges, operators and modules.

::

    thread   |--operator------------------|
                 |launch call|
    device                       |--kernel--|

Device work refers to its call by ``process_id`` and ``correlation_id``, which is unique only within a process. Work of
a CUDA graph refers to the call that launched the graph.

A graph is captured (or built) once and launched many times. One call launches the whole graph, so it only shows where
the graph was launched. If the creation of a node was recorded, its place shows the purpose of the node::

    capture   |--aten::mm--|   |--aten::add--|          node 1      node 2
                 make 1            make 2                  |           |
    step                                          |launch graph|       |
    device                                             |-- 1 --|    |-- 2 --|     of aten::mm, of aten::add

Instantiating a graph copies its nodes; a copy refers to its original node. PyTorch can record the program's names for
the parts of a graph in its trace (``torch.cuda.graph_annotations``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from traceviz.analyses.derived.frames import end_ns, gathered, knowing, partners
from traceviz.analyses.derived.view import TraceView, once_per_trace
from traceviz.core.arrays.intervals import IntervalSet
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
    work = pl.concat([_read_work(trace, name) for name in schema.DEVICE_WORK])
    row = partners(work, calls)  # calls are sorted by start, so the first with an id is the earliest
    joined = work.with_columns(
        gathered(calls[name], row) for name in ("thread_id", "call_ns", "call_end_ns", "launches_graph")
    )
    by_graph = pl.col("launches_graph").fill_null(value=False) | pl.col("by_graph")
    return joined.with_columns(by_graph.alias("by_graph")).drop("correlation_id", "launches_graph")


@once_per_trace
def unrecorded_time(trace: TraceView) -> dict[int, IntervalSet]:
    """Return the time in which device work was lost, by ``process_id`` of the processes that lost some.

    Profilers lose whole buffers: neighbouring launches then have no work, although other calls of their names have::

        call     |launch| |launch|launch|launch| |launch|
        device     |work|                          |work|
                         ^------ not known -------^
    """
    launches = knowing(trace.api_calls("launch").select(*LAUNCH_KEY, "name", "start_ns"), "correlation_id")
    work = pl.concat([trace.frame(name, *LAUNCH_KEY) for name in schema.DEVICE_WORK])
    row = partners(launches, work)
    if not launches.height or not work.height or row.min() >= 0:
        return {}
    times = pl.concat([trace.frame(name, "start_ns", end_ns()) for name in schema.DEVICE_WORK])
    called = launches.select("process_id", "name", pl.col("start_ns").alias("call_ns")).with_columns(
        gathered(times["start_ns"], row), gathered(times["end_ns"], row)
    )
    has_work = pl.col("start_ns").is_not_null()
    called = called.filter(has_work.mean().over("process_id", "name") >= MOSTLY_RECORDED)
    holes = {}
    for (process,), own in called.sort("call_ns").partition_by("process_id", as_dict=True).items():
        known = np.flatnonzero(own["start_ns"].is_not_null().to_numpy())
        before = np.flatnonzero(np.diff(known) > LEAST_LOST)
        last, following = known[before], known[before + 1]
        ends, first = own["end_ns"].to_numpy()[last], own["call_ns"].to_numpy()[last + 1]
        begin, until = np.maximum(ends, first).astype(np.int64), own["start_ns"].to_numpy()[following].astype(np.int64)
        if (until > begin).any():
            holes[int(process)] = IntervalSet.of(begin[until > begin], until[until > begin])
    return holes


MOSTLY_RECORDED = 0.5
"""Calls of a name launch device work if this part of them did."""
LEAST_LOST = 5
"""Least number of neighbouring launches whose work was lost; fewer may have failed, or launched nothing."""


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


def _read_work(trace: TraceView, table: str) -> pl.DataFrame:
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


_NODE = ("process_id", "graph_node_id")
_ORIGIN = {
    "made_ns": pl.Int64,
    "made_thread_id": pl.Int32,
    "part": pl.String,
    "part_module": pl.String,
    "is_backward": pl.Boolean,
}
_MOST_COPIES = 16
"""Maximum depth of copies of copies to follow: deeper chains are cycles in a broken trace."""

BACKWARD = "backward"
"""Value of ``graph_nodes.phase``."""


def graph_name() -> pl.Expr:
    """Return the display name of a row of table ``graphs``, as text column ``name``."""
    number = pl.col("graph_id").cast(pl.String)
    return pl.when(number.is_null()).then(pl.lit("CUDA graph")).otherwise("CUDA graph " + number).alias("name")


@once_per_trace
def node_origins(trace: TraceView) -> pl.DataFrame:
    """Return the known facts about graph nodes, one row per node.

    Returns:
        ``process_id, graph_node_id``; ``made_ns`` and ``made_thread_id``: when and on which thread the node, or the
        original of a copy, was made; ``part``: the program's name for its part of the graph; ``part_module``: the path
        of its module; and ``is_backward``. Unknown values are null.
    """
    nodes = trace.frame("graph_nodes", *_NODE, "start_ns", "thread_id", "original_node_id", "part", "module", "phase")
    nodes = knowing(nodes, "graph_node_id").sort("start_ns", maintain_order=True)
    made = knowing(nodes, "thread_id").unique(_NODE, keep="first", maintain_order=True)
    made = made.select(*_NODE, pl.col("start_ns").alias("made_ns"), pl.col("thread_id").alias("made_thread_id"))
    named = nodes.group_by(_NODE, maintain_order=True).agg(
        pl.col("part", "module", "phase").cast(pl.String).drop_nulls().first()
    )
    # Return the first original of each copy (of copies): ``process_id, graph_node_id, original_node_id``.
    is_copy = pl.col("original_node_id") != pl.col("graph_node_id")
    copies = nodes.filter(is_copy).unique(_NODE, keep="first", maintain_order=True).select(*_NODE, "original_node_id")
    step = copies.rename({"graph_node_id": "original_node_id", "original_node_id": "next"})
    for _ in range(_MOST_COPIES):
        further = copies.join(step, on=["process_id", "original_node_id"], how="left", maintain_order="left")
        if further["next"].null_count() == further.height:
            break
        copies = further.select(*_NODE, pl.coalesce("next", "original_node_id").alias("original_node_id"))
    known = named.join(copies, on=_NODE, how="left", maintain_order="left")
    source = [pl.col("process_id"), pl.coalesce("original_node_id", "graph_node_id").alias("source")]
    placed = known.with_columns(source).join(
        made, left_on=["process_id", "source"], right_on=_NODE, how="left", maintain_order="left"
    )
    return placed.select(
        *_NODE,
        "made_ns",
        "made_thread_id",
        "part",
        pl.col("module").alias("part_module"),
        (pl.col("phase") == BACKWARD).alias("is_backward"),
    )


def with_origins(trace: TraceView, work: pl.DataFrame) -> pl.DataFrame:
    """Add the columns of :func:`node_origins` to ``work`` (``process_id``, ``graph_node_id``), and keep its order.

    They are null for work that no graph launched.
    """
    if not trace.tables.rows("graph_nodes"):
        return work.with_columns(pl.lit(None, kind).alias(name) for name, kind in _ORIGIN.items())
    return work.join(node_origins(trace), on=_NODE, how="left", maintain_order="left")


@dataclass(frozen=True, slots=True)
class GraphTime:
    """Device work that graphs launched, summed over streams, and how much of it is unknown.

    Args:
        all_ns: All device work of the capture.
        graph_ns: Work launched by graphs; 0 if there is none.
        unknown_ns: Part of ``graph_ns`` for which only the graph's launch is known.
    """

    all_ns: int
    graph_ns: int
    unknown_ns: int


def graph_time(work: pl.DataFrame, known: npt.NDArray[np.bool_]) -> GraphTime:
    """Sum ``work`` (``dur_ns, by_graph``): the whole, the part that graphs launched, and the part not ``known``."""
    durations, by_graph = work["dur_ns"].to_numpy(), work["by_graph"].to_numpy()
    return GraphTime(int(durations.sum()), int(durations[by_graph].sum()), int(durations[by_graph & ~known].sum()))
