"""Calls of PyTorch operators: their own time on the host, and the device work that they launch.

::

    thread   |--aten::linear------------------------|
                 |--aten::addmm-------------|
                      |cudaLaunchKernel|
    self     |###|    .                .    |#######|    aten::linear
                 |####|                |####|            aten::addmm
    device                            |--kernel--|       aten::addmm by itself, both in total

An operator's own time on the host excludes the operators inside it and the CUDA calls that it makes itself. PyTorch's
profiler and its TensorBoard plugin define it this way. Ranges and Python frames between two operators are ignored.
Device work belongs to the innermost operator that runs on the thread and at the start of its launch call.

Work that a graph launched belongs to the operator in which its node was made, if that was recorded. Otherwise it
belongs to the part of the graph that the program names. The operator that launched the graph then has it in total, not
as its own. If neither is known, the work belongs to the operator that launched the graph
(:mod:`traceviz.analyses.derived.launch.join`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from traceviz.analyses.derived.calls.call_tree import CallTree
from traceviz.analyses.derived.calls.host_calls import argument, calls_named, values_of
from traceviz.analyses.derived.calls.op_names import torch_matrix_op
from traceviz.analyses.derived.frames import end_ns, outermost
from traceviz.analyses.derived.launch.join import GraphTime, graph_time, with_origins, work_with_calls
from traceviz.analyses.derived.patterns import matches
from traceviz.analyses.derived.view import TraceView, once_per_trace
from traceviz.core.arrays.intervals import Array
from traceviz.core.arrays.nested import outer_alike

_NOT_AN_OPERATOR = r"^(?:Optimizer\.|(?:Distributed)?DataParallel\.forward$)"
"""Ranges that PyTorch itself opens. Old traces list them as operators."""

_XLA_FORMATS = ("xplane", "tf-trace-json")


def of_pytorch(trace: TraceView) -> bool:
    """Return whether the host operations of a trace may be PyTorch's: the trace names no other framework."""
    run = trace.tables.run_facts()
    is_pytorch = "pytorch" in trace.frameworks or not run.get("framework")
    return is_pytorch and run.get("format") not in _XLA_FORMATS


@dataclass(frozen=True, slots=True, eq=False)
class OperatorCalls:
    """Every call of an operator, in the order of ``tree.calls``; times are in nanoseconds.

    Args:
        tree: The calls and their nesting among themselves.
        host_self: Time on the host without the operators inside and the CUDA calls made directly.
        device_self: Device work launched directly, summed over streams.
        kernel_self: The part of it in kernels.
        tensor_core_self: The part of ``kernel_self`` in kernels that compute on tensor cores.
        outer: True if no operator of the same name is around the call. Its total time is then counted here.
        again: True if the call is the only one inside another of the same name: the same call, recorded twice.
        eligible: True if it, or an operator inside it, is a matrix product or convolution.
        elsewhere: Device work without a known call: ``op``, ``dur_ns``, and the parts ``kernel_ns`` and
            ``tensor_core_ns``. ``op`` is null if it is not known, or if a range of the program launched the work. For a
            graph, it is the name of its part.
        handed_on: Device work in graphs that each operator launched and that belongs to another operator or to a part.
            It is added to the total, except for work that the total includes already.
        replayed: Device work in graphs that belongs to an operator by its node: ``row`` in the tree, ``process_id``,
            ``call_ns`` of the launch of the graph (null if not known), ``dur_ns``.
        graphs: Known facts about the work of graphs.
    """

    tree: CallTree
    host_self: Array
    device_self: Array
    kernel_self: Array
    tensor_core_self: Array
    outer: npt.NDArray[np.bool_]
    again: npt.NDArray[np.bool_]
    eligible: npt.NDArray[np.bool_]
    elsewhere: pl.DataFrame
    handed_on: Array
    replayed: pl.DataFrame
    graphs: GraphTime

    @property
    def device_total(self) -> Array:
        """Device work launched by each call and by all operators inside it."""
        return self.tree.totals(self.device_self + self.handed_on)


@once_per_trace
def operator_calls(trace: TraceView) -> OperatorCalls:
    """Return the operators of ``trace``."""
    names = trace.host_names.filter((pl.col("category") == "op") & ~matches(pl.col("name"), _NOT_AN_OPERATOR))
    known = names.with_row_index("code").with_columns(torch_matrix_op("name").alias("matrix"))
    tree = CallTree.of(calls_named(trace, known))
    on_tensor_cores = [name for name, kernel in trace.kernel_classes.items() if kernel.tensor_core]
    duration = pl.col("end_ns") - pl.col("begin_ns")
    kernel = pl.col("kernel").is_not_null()
    tensor_core = pl.col("kernel").is_in(on_tensor_cores).fill_null(value=False)
    work = with_origins(trace, work_with_calls(trace)).select(
        duration.alias("dur_ns"),
        pl.when(kernel).then(duration).otherwise(0).alias("kernel_ns"),
        pl.when(tensor_core).then(duration).otherwise(0).alias("tensor_core_ns"),
        *("op", "process_id", "thread_id", "call_ns", "by_graph", "made_thread_id", "made_ns", "part"),
    )
    launched = tree.around_known(work, "thread_id", "call_ns")
    made = tree.around_known(work, "made_thread_id", "made_ns")
    of_part = (made < 0) & work["part"].is_not_null().to_numpy()
    row = np.where(made >= 0, made, np.where(of_part, -1, launched))
    others = trace.host_names.join(names, on="name", how="anti")["name"].to_list()
    operator = pl.col("op").cast(pl.String)
    named = pl.when(pl.Series(of_part)).then(pl.col("part")).when(~operator.is_in(others)).then(operator)
    threads = tree.calls["thread_id"].to_numpy().astype(np.int64)
    durations = work["dur_ns"].to_numpy()
    return OperatorCalls(
        tree,
        np.maximum(tree.durations - tree.children(tree.durations) - _api_time(trace, tree), 0),
        tree.sums(row, durations),
        tree.sums(row, work["kernel_ns"].to_numpy()),
        tree.sums(row, work["tensor_core_ns"].to_numpy()),
        outer_alike(threads, tree.ends, tree.calls["code"].to_numpy().astype(np.int32)),
        _repeats(tree),
        tree.totals(tree.calls["matrix"].cast(pl.Int64).to_numpy()) > 0,
        work.with_columns(named.alias("op"))
        .filter(pl.Series(row < 0))
        .select("op", "dur_ns", "kernel_ns", "tensor_core_ns"),
        _passed_to_makers(tree, np.where(row != launched, launched, -1), made, durations),
        work.select(pl.Series("row", made), "process_id", "call_ns", "dur_ns").filter(pl.col("row") >= 0),
        graph_time(work, (made >= 0) | of_part),
    )


def _passed_to_makers(tree: CallTree, launched: Array, made: Array, durations: Array) -> Array:
    """Return work that ``launched`` operators pass to those that ``made`` its nodes, less work that totals include.

    A graph may be captured and launched inside one operator, whose total has the work already.
    """
    handed = tree.sums(launched, durations)
    return handed - tree.sums(tree.common(launched, made), durations) if handed.any() else handed


def _api_time(trace: TraceView, tree: CallTree) -> Array:
    """Return the time of the CUDA calls that each operator makes directly; calls within calls are not counted twice."""
    calls = trace.frame("cuda_api", "thread_id", "start_ns", end_ns())
    outer = outermost(calls.sort("thread_id", "start_ns", "end_ns", descending=[False, False, True]))
    row = tree.around(outer["thread_id"].to_numpy(), outer["start_ns"].to_numpy())
    return tree.sums(row, (outer["end_ns"] - outer["start_ns"]).to_numpy())


def _repeats(tree: CallTree) -> npt.NDArray[np.bool_]:
    """Return whether each call is the only one inside another of the same name."""
    names = tree.calls["code"].to_numpy()
    inside = tree.children(np.ones(tree.calls.height, np.int64))
    parent = tree.parent
    return np.asarray((parent >= 0) & (names == names[parent]) & (inside[parent] == 1))


def input_shapes(trace: TraceView, operators: OperatorCalls) -> pl.Series | None:
    """Return shapes of the inputs of each call as the trace writes them, null for none; ``None`` if it writes none."""
    recorded = argument(trace, "Input Dims", "text")
    return values_of(operators.tree.calls["op_id"], recorded) if recorded.height else None
