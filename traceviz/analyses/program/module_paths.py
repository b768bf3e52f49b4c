"""The parts of a program that a PyTorch trace names, and where in their tree each operator and launch belongs.

In order of trust: calls of ``nn.Module`` (Python frames named ``nn.Module: Linear_0``), the module hierarchy that
operators of TorchScript carry (``TOP(Net)::forward.layer1(Block)::forward.``), ranges of the program
(``torch.profiler.record_function``)::

    call     |--nn.Module: Net_0-----------------------------|      path  Net_0
                |--nn.Module: Linear_0--|  |--nn.Module: ... |      path  Net_0, Linear_0
    op              |--aten::linear--|
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from traceviz.analyses.derived.call_tree import CallTree
from traceviz.analyses.derived.host_calls import argument, calls_named
from traceviz.analyses.derived.launches import launched_work
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.program.autograd import backward_work
from traceviz.analyses.program.operator_calls import OperatorCalls, operator_calls
from traceviz.intervals import Array

ModuleSource = Literal["nn.Module", "module hierarchy", "ranges"]

_FRAME = r"^nn\.Module: "
_HIERARCHY_STEP = r"[^.()]+\([^()]*\)"
"""One module of a hierarchy: its name in the module around it, and its class in parentheses."""

_PART_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "path": pl.List(pl.String),
    "calls": pl.Int64,
    "start_ns": pl.Int64,
    "host_self_ns": pl.Int64,
    "device_self_ns": pl.Int64,
    "backward_self_ns": pl.Int64,
}


_PATHS: dict[str, pl.DataType | type[pl.DataType]] = {"number": pl.Int64, "path": pl.List(pl.String)}


@dataclass(frozen=True, slots=True)
class NamedParts:
    """Figures of every part by itself, without the parts inside it.

    Args:
        source: Where the names come from.
        parts: One row per path: ``path, calls, start_ns, host_self_ns, device_self_ns, backward_self_ns``. ``path``
            holds the names from the outermost part inwards, ``start_ns`` is the first start, ``calls`` is null where
            calls are not recorded.
    """

    source: ModuleSource
    parts: pl.DataFrame


def named_parts(trace: TraceView) -> NamedParts | None:
    """The parts that ``trace`` names, from the first source that it has; ``None`` where it has none."""
    python = (pl.col("category") == "python") & pl.col("name").str.contains(_FRAME)
    operators = operator_calls(trace)
    frames = trace.host_names.filter(python)
    if frames.height:
        part = pl.col("name").str.replace(_FRAME, "").alias("part")
        return NamedParts("nn.Module", _of_calls(trace, operators, frames.with_columns(part)))
    hierarchy = _hierarchy(trace)
    if hierarchy.height:
        return NamedParts("module hierarchy", _of_hierarchy(trace, operators, hierarchy))
    ranges = trace.host_names.filter(pl.col("category") == "annotation")
    if ranges.height:
        return NamedParts("ranges", _of_calls(trace, operators, ranges.with_columns(pl.col("name").alias("part"))))
    return None


def _hierarchy(trace: TraceView) -> pl.DataFrame:
    """The modules around each operation that states them: ``op_id, path``."""
    stated = argument(trace, "Module Hierarchy", "text").with_columns(pl.col("text").cast(pl.String)).drop_nulls()
    path = pl.col("text").str.extract_all(_HIERARCHY_STEP).alias("path")
    distinct = stated.select("text").unique().with_columns(path).filter(pl.col("path").list.len() > 0)
    return stated.unique("op_id").join(distinct, on="text").select("op_id", "path")


def _of_calls(trace: TraceView, operators: OperatorCalls, names: pl.DataFrame) -> pl.DataFrame:
    """Parts from calls that contain operators and launches in time, on their thread."""
    tree = CallTree.of(calls_named(trace, names))
    work = launched_work(trace)
    threads, calls = work["thread_id"].to_numpy(), work["call_ns"].to_numpy()
    durations = (work["end_ns"] - work["begin_ns"]).to_numpy()
    launched = tree.around(threads, calls)
    nested = operators.tree
    of_operator = tree.around(nested.calls["thread_id"].to_numpy(), nested.starts)
    by_operator = np.where(launched < 0, nested.around(threads, calls), -1)  # work of a part counts there only
    backward = backward_work(trace, operators, nested.sums(by_operator, durations))
    path, paths = _paths(tree)
    own = pl.DataFrame(
        {
            "number": path,
            "start_ns": tree.starts,
            "host_self_ns": np.maximum(tree.durations - tree.children(tree.durations), 0),
            "device_self_ns": tree.sums(launched, durations),
            "backward_self_ns": tree.sums(of_operator, backward),
        }
    )
    sums = own.group_by("number").agg(pl.len().alias("calls"), pl.col("start_ns").min(), _own_times().sum())
    return _in_order(sums.join(paths, on="number"))


def _paths(tree: CallTree) -> tuple[Array, pl.DataFrame]:
    """The number of the path of each call, and ``path`` by ``number``."""
    parts = tree.calls["part"]
    codes, names = parts.rank("dense").to_numpy().astype(np.int64), parts.to_list()
    number = np.full(codes.size, -1, np.int64)
    paths: list[list[str]] = []
    for level in range(int(tree.depth.max(initial=-1)) + 1):  # once per depth, not per call
        rows = np.flatnonzero(tree.depth == level)
        around = np.where(tree.parent[rows] >= 0, number[tree.parent[rows]], -1)
        pairs = (around + 1) * (codes.size + 1) + codes[rows]
        _, first, index = np.unique(pairs, return_index=True, return_inverse=True)
        number[rows] = len(paths) + index
        for row in first:  # distinct paths, of which there are few
            outer = paths[around[row]] if around[row] >= 0 else []
            paths.append([*outer, names[rows[row]]])
    return number, pl.DataFrame({"number": range(len(paths)), "path": paths}, _PATHS)


def _of_hierarchy(trace: TraceView, operators: OperatorCalls, hierarchy: pl.DataFrame) -> pl.DataFrame:
    """Parts from the hierarchies that operators state; operators without one count in the operator around them."""
    tree = operators.tree
    unplaced = ~tree.calls["op_id"].is_in(hierarchy["op_id"].implode()).to_numpy()
    backward = backward_work(trace, operators, np.where(unplaced, operators.device_self, 0))  # others count as forward
    own = tree.calls.select("op_id", "start_ns").with_columns(
        pl.Series("host_self_ns", np.maximum(tree.durations - tree.children(tree.durations), 0)),
        pl.Series("device_self_ns", operators.device_self),
        pl.Series("backward_self_ns", backward),
    )
    parts = own.join(hierarchy, on="op_id").group_by("path")
    return _in_order(parts.agg(pl.lit(None, pl.Int64).alias("calls"), pl.col("start_ns").min(), _own_times().sum()))


def _own_times() -> pl.Expr:
    return pl.col("host_self_ns", "device_self_ns", "backward_self_ns")


def _in_order(parts: pl.DataFrame) -> pl.DataFrame:
    return parts.select(pl.col(name).cast(kind) for name, kind in _PART_SCHEMA.items()).sort("start_ns", "path")
