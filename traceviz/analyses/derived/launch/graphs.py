"""CUDA graphs: the work that they launched, and where the nodes of that work were made.

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

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from traceviz.analyses.derived.frames import knowing
from traceviz.analyses.derived.view import TraceView, once_per_trace

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
    known = named.join(_originals(nodes), on=_NODE, how="left", maintain_order="left")
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


def _originals(nodes: pl.DataFrame) -> pl.DataFrame:
    """Return the first original of each copy (of copies): ``process_id, graph_node_id, original_node_id``."""
    is_copy = pl.col("original_node_id") != pl.col("graph_node_id")
    copies = nodes.filter(is_copy).unique(_NODE, keep="first", maintain_order=True).select(*_NODE, "original_node_id")
    step = copies.rename({"graph_node_id": "original_node_id", "original_node_id": "next"})
    for _ in range(_MOST_COPIES):
        further = copies.join(step, on=["process_id", "original_node_id"], how="left", maintain_order="left")
        if further["next"].null_count() == further.height:
            break
        copies = further.select(*_NODE, pl.coalesce("next", "original_node_id").alias("original_node_id"))
    return copies


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
