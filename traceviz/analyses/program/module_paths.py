"""Named parts of a program in a PyTorch trace, and the place of operators and launches in their tree.

In order of trust: calls of ``nn.Module`` (Python frames named ``nn.Module: Linear_0``), the module hierarchy that
operators of TorchScript carry (``TOP(Net)::forward.layer1(Block)::forward.``), ranges of the program
(``torch.profiler.record_function``), parts of graphs::

    call     |--nn.Module: Net_0-----------------------------|      path  Net_0
                |--nn.Module: Linear_0--|  |--nn.Module: ... |      path  Net_0, Linear_0
    op              |--aten::linear--|

If it was recorded where and when the node of work in a graph was made, the work belongs to the part that ran there.
Otherwise it belongs, inside the part that launched the graph, to the module that the program names for this part of the
graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from traceviz.analyses.derived.calls.call_tree import CallTree
from traceviz.analyses.derived.calls.host_calls import argument, calls_named
from traceviz.analyses.derived.frames import having
from traceviz.analyses.derived.launch.join import GraphTime, graph_time, with_origins, work_with_calls
from traceviz.analyses.derived.patterns import matches, replaced
from traceviz.analyses.derived.view import TraceView, once_per_trace
from traceviz.analyses.program.autograd import backward_work
from traceviz.analyses.program.operator_calls import OperatorCalls, operator_calls
from traceviz.core.arrays.intervals import Array

ModuleSource = Literal["nn.Module", "module hierarchy", "ranges", "parts of graphs"]

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


MADE = ("made_thread_id", "made_ns")
"""Thread and time in which the node of work in a graph was made."""
_MOST_LEVELS = 64
"""Names of parts of graphs with more dots are not paths of modules."""
_OWN_TIMES = pl.col("host_self_ns", "device_self_ns", "backward_self_ns")
_PATHS: dict[str, pl.DataType | type[pl.DataType]] = {"number": pl.Int64, "path": pl.List(pl.String)}


@dataclass(frozen=True, slots=True)
class NamedParts:
    """Figures of every part, without the parts inside it.

    Args:
        source: Source of the names.
        parts: One row per path: ``path, calls, start_ns, host_self_ns, device_self_ns, backward_self_ns``. ``path``
            holds the names from the outermost part inwards, ``start_ns`` is the first start, ``calls`` is null if calls
            are not recorded.
        graphs: Known facts about the work of graphs.
    """

    source: ModuleSource
    parts: pl.DataFrame
    graphs: GraphTime


@dataclass(frozen=True, slots=True)
class PartNames:
    """Names of the parts of a program.

    Args:
        source: Source of the names.
        calls: Rows of :attr:`TraceView.host_names` with ``part``, the name of the part that such a call is.
        hierarchy: The modules around each operation that states them: ``op_id, path``; without rows for other sources.
    """

    source: ModuleSource
    calls: pl.DataFrame
    hierarchy: pl.DataFrame


def part_names(trace: TraceView) -> PartNames | None:
    """Return the first source of names that ``trace`` has; ``None`` if it has none."""
    nothing = pl.DataFrame(schema={"op_id": pl.Int64, "path": pl.List(pl.String)})
    python = (pl.col("category") == "python") & matches(pl.col("name"), _FRAME)
    frames = trace.host_names.filter(python)
    if frames.height:
        part = replaced(pl.col("name"), _FRAME, "").alias("part")
        return PartNames("nn.Module", frames.with_columns(part), nothing)
    stated = argument(trace, "Module Hierarchy", "text").with_columns(pl.col("text").cast(pl.String)).drop_nulls()
    path = pl.col("text").str.extract_all(_HIERARCHY_STEP).alias("path")
    distinct = stated[["text"]].unique().with_columns(path).filter(pl.col("path").list.len() > 0)
    hierarchy = stated.unique("op_id").join(distinct, on="text")[["op_id", "path"]]
    ranges = having(trace.host_names, "category", "annotation").with_columns(pl.col("name").alias("part"))
    if hierarchy.height:
        return PartNames("module hierarchy", ranges.clear(), hierarchy)
    if ranges.height:
        return PartNames("ranges", ranges, nothing)
    return PartNames("parts of graphs", ranges, nothing) if named_work(trace)["named"].count() else None


def named_parts(trace: TraceView) -> NamedParts | None:
    """Return the parts that ``trace`` names, from the first source that it has; ``None`` if it has none."""
    names = part_names(trace)
    if names is None:
        return None
    operators, work = operator_calls(trace), named_work(trace)
    if names.source == "module hierarchy":
        # Operators without a hierarchy count in the operator around them.
        tree = operators.tree
        is_placed = tree.calls["op_id"].is_in(names.hierarchy["op_id"].implode()).to_numpy()
        unplaced = np.where(is_placed, 0, operators.device_self)
        backward = backward_work(trace, operators, unplaced)  # others count as forward
        own = tree.calls[["op_id", "start_ns"]].with_columns(
            pl.Series("host_self_ns", np.maximum(tree.durations - tree.children(tree.durations), 0)),
            pl.Series("device_self_ns", operators.device_self),
            pl.Series("backward_self_ns", backward),
        )
        sums = own.join(names.hierarchy, on="op_id").group_by("path")
        parts = sums.agg(pl.lit(None, pl.Int64).alias("calls"), pl.col("start_ns").min(), _OWN_TIMES.sum())
        made = tree.around_known(work, *MADE)
        of_part = (made < 0) & work["named"].is_not_null().to_numpy()
        alone = work.with_columns(number=pl.lit(-1, pl.Int64)).filter(pl.Series(of_part))
        inside = _parts_of_graphs(alone, pl.DataFrame(schema=_PATHS))
        known = of_part | (made >= 0) & np.append(is_placed, False)[made]
        return NamedParts("module hierarchy", _in_order(pl.concat([_typed(parts), inside])), graph_time(work, known))
    return _of_calls(trace, operators, names.calls, work, names.source)


@once_per_trace
def named_work(trace: TraceView) -> pl.DataFrame:
    """Return device work with its call and facts on its node; ``named`` is the path of the part of a graph."""
    duration = (pl.col("end_ns") - pl.col("begin_ns")).alias("dur_ns")
    work = with_origins(trace, work_with_calls(trace)).with_columns(duration)
    parts = work[["part_module", "part"]].unique().filter(~pl.all_horizontal(pl.all().is_null()))
    module = pl.col("part_module")
    is_path = module.str.count_matches(".", literal=True) < _MOST_LEVELS
    name = pl.concat_list(pl.coalesce("part_module", "part"))
    path = pl.when(is_path.fill_null(value=False)).then(module.str.split(".")).otherwise(name).alias("named")
    if not parts.height:
        return work.with_columns(pl.lit(None, pl.List(pl.String)).alias("named"))
    named = parts.with_columns(path)
    return work.join(named, on=["part_module", "part"], how="left", nulls_equal=True, maintain_order="left")


def _of_calls(
    trace: TraceView, operators: OperatorCalls, names: pl.DataFrame, work: pl.DataFrame, source: ModuleSource
) -> NamedParts:
    """Return parts from calls that contain operators and launches in time, on their thread."""
    tree = CallTree.of(calls_named(trace, names))
    durations = work["dur_ns"].to_numpy()
    launched, made = tree.around_known(work, "thread_id", "call_ns"), tree.around_known(work, *MADE)
    of_part = (made < 0) & work["named"].is_not_null().to_numpy()
    row = np.where(made >= 0, made, np.where(of_part, -1, launched))
    nested = operators.tree
    of_operator = tree.around(nested.calls["thread_id"].to_numpy(), nested.starts)
    by_node = nested.around_known(work, *MADE)
    caller = np.where(by_node >= 0, by_node, nested.around_known(work, "thread_id", "call_ns"))
    by_operator = np.where((row < 0) & ~of_part, caller, -1)  # work of a part counts only there
    backward = backward_work(trace, operators, nested.sums(by_operator, durations))
    path, paths = _paths(tree)
    own = pl.DataFrame(
        {
            "number": path,
            "start_ns": tree.starts,
            "host_self_ns": np.maximum(tree.durations - tree.children(tree.durations), 0),
            "device_self_ns": tree.sums(row, durations),
            "backward_self_ns": tree.sums(of_operator, backward),
        }
    )
    sums = own.group_by("number").agg(pl.len().alias("calls"), pl.col("start_ns").min(), _OWN_TIMES.sum())
    parts = sums.join(paths, on="number")
    number = np.where(launched >= 0, path[launched], -1) if path.size else launched
    inside = _parts_of_graphs(work.with_columns(number=pl.Series(number)).filter(pl.Series(of_part)), paths)
    known = (made >= 0) | of_part | (by_operator >= 0) & (by_node >= 0)
    return NamedParts(source, _in_order(pl.concat([_typed(parts), inside])), graph_time(work, known))


def _parts_of_graphs(work: pl.DataFrame, paths: pl.DataFrame) -> pl.DataFrame:
    """Return parts that the program names in graphs, inside the path (``number``) that launched the graph.

    ``work`` is only theirs. A part is named while the graph is captured, so its calls are not known.
    """
    is_backward = pl.col("is_backward").fill_null(value=False)
    sums = work.group_by("number", "named").agg(
        pl.col("begin_ns").min().alias("start_ns"),
        pl.col("dur_ns").filter(~is_backward).sum().alias("device_self_ns"),
        pl.col("dur_ns").filter(is_backward).sum().alias("backward_self_ns"),
    )
    placed = sums.join(paths, on="number", how="left")
    path = pl.when(pl.col("path").is_null()).then("named").otherwise(pl.concat_list("path", "named")).alias("path")
    return _typed(placed.with_columns(path, pl.lit(None).alias("calls"), pl.lit(0).alias("host_self_ns")))


def _paths(tree: CallTree) -> tuple[Array, pl.DataFrame]:
    """Return the number of the path of each call, and ``path`` by ``number``."""
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
        for row in first:  # distinct paths are few
            outer = paths[around[row]] if around[row] >= 0 else []
            paths.append([*outer, names[rows[row]]])
    return number, pl.DataFrame({"number": range(len(paths)), "path": paths}, _PATHS)


def _typed(parts: pl.DataFrame) -> pl.DataFrame:
    return parts.select(pl.col(name).cast(kind) for name, kind in _PART_SCHEMA.items())


def _in_order(parts: pl.DataFrame) -> pl.DataFrame:
    """Sort parts by time. A part that is both named in a graph and called elsewhere becomes one."""
    if parts["path"].n_unique() != parts.height:
        calls = pl.when(pl.col("calls").count() > 0).then(pl.col("calls").sum()).alias("calls")
        parts = _typed(parts.group_by("path").agg(calls, pl.col("start_ns").min(), _OWN_TIMES.sum()))
    return parts.sort("start_ns", "path")
