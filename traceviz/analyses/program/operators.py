"""PyTorch operators: calls, and time on the host and on the device, own and total.

The definitions are those of PyTorch's profiler and its TensorBoard plugin (see
:mod:`traceviz.analyses.program.operator_calls`). Total times count an operator inside one of the same name once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from traceviz.analyses.base import Analysis
from traceviz.analyses.derived.calls.op_names import torch_matrix_op
from traceviz.analyses.derived.frames import codes, knowing
from traceviz.analyses.derived.grouped import Groups
from traceviz.analyses.derived.judged_time import host_time
from traceviz.analyses.derived.launch.join import GraphTime
from traceviz.analyses.derived.statistics import CALLS, frame_grid, ratio, share
from traceviz.analyses.derived.steps.search import training_steps
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.program.autograd import backward_work
from traceviz.analyses.program.graph_words import graph_facts, graph_words
from traceviz.analyses.program.operator_calls import OperatorCalls, input_shapes, of_pytorch, operator_calls
from traceviz.core.arrays.intervals import Array
from traceviz.core.arrays.nested import alike
from traceviz.report import Column, Fact, Facts, Section, Skipped, hide_columns

Steady = np.ndarray[tuple[int], np.dtype[np.bool_]]
"""Mask of calls that start in a steady step."""


@dataclass(frozen=True, slots=True)
class OperatorTimes:
    """Operators by name, and by name and shapes; those with the most own device time come first.

    Args:
        by_name: One row per name with the columns of the report.
        by_shape: One row per name and shapes of the inputs; ``None`` if the trace records no shapes.
        device_ns: Device work of the operators, summed over streams.
        all_device_ns: All device work of the capture, summed over streams.
        kernel_ns: The part of ``device_ns`` in kernels.
        eligible_ns: The part of ``kernel_ns`` launched by matrix products and convolutions.
        tensor_core_ns: The part of ``kernel_ns`` on tensor cores.
        steps: Steady steps; 0 if none had operators.
        graphs: Known facts about the work of graphs.
    """

    by_name: pl.DataFrame
    by_shape: pl.DataFrame | None
    device_ns: int
    all_device_ns: int
    kernel_ns: int
    eligible_ns: int
    tensor_core_ns: int
    steps: int
    graphs: GraphTime


@dataclass(frozen=True, slots=True)
class OperatorsAnalysis(Analysis[OperatorTimes]):
    """Time per PyTorch operator, on the host and on the device."""

    slug = "operators"
    title = "Operators"

    def run(self, trace: TraceView) -> OperatorTimes | Skipped:
        """Aggregate calls, and device work by the operator that launched it."""
        if not of_pytorch(trace):
            return self.skipped("the trace is not of PyTorch: see the framework ops")
        operators = operator_calls(trace)
        # Device work whose operator is known by name only.
        eligible = pl.when(torch_matrix_op("op")).then(pl.col("kernel_ns")).otherwise(0)
        elsewhere = knowing(operators.elsewhere, "op").select(
            pl.col("op").alias("name"),
            torch_matrix_op("op").alias("tensor_core_eligible"),
            pl.col("dur_ns").alias("device_ns"),
            pl.col("dur_ns").alias("device_self_ns"),
            "kernel_ns",
            eligible.alias("eligible_ns"),
            "tensor_core_ns",
        )
        if not operators.tree.calls.height and not elsewhere.height:
            return self.skipped("the trace names no operators")
        shapes = input_shapes(trace, operators)
        sums = _sums(trace, operators, shapes)
        steps = training_steps(trace).steady.height
        by_name = _totals(pl.concat([sums, elsewhere], how="diagonal_relaxed"), steps, "name")
        return OperatorTimes(
            by_name,
            _totals(sums, steps, "name", "shapes") if shapes is not None else None,
            int(by_name["device_self_ns"].sum()),
            int(operators.device_self.sum()) + int(operators.elsewhere["dur_ns"].sum()),
            int(by_name["kernel_ns"].sum()),
            int(by_name["eligible_ns"].sum()),
            int(by_name["tensor_core_ns"].sum()),
            steps,
            operators.graphs,
        )

    def describe(self, result: OperatorTimes) -> Section:
        """Describe totals, operators by name, and by name and shapes for programs."""
        by_name = result.by_name
        facts = (
            Fact("operators", "distinct operators", by_name.height, "count"),
            Fact("calls", "calls", int(by_name["calls"].sum()), "count"),
            Fact("host_self_ns", "host time, summed over threads", int(by_name["host_self_ns"].sum()), "ns"),
        )
        attributed = ratio(result.device_ns, result.all_device_ns)
        eligible = ratio(result.eligible_ns, result.kernel_ns)
        on_tensor_cores = ratio(result.tensor_core_ns, result.kernel_ns)
        device = (
            Fact("device_ns", "device time, summed over streams", result.device_ns, "ns"),
            Fact("attributed_share", "of all device work", attributed, "ratio"),
            Fact("eligible_share", "matrix ops, of kernel time", eligible, "ratio"),
            Fact("tensor_core_share", "tensor cores, of kernel time", on_tensor_cores, "ratio"),
            *graph_facts(result.graphs, "operator"),
        )
        shown = Facts((*facts, *device)) if result.device_ns else Facts(facts)
        rest = () if result.device_ns else (Facts(device, audience="machine"),)
        # Columns with only zeros or nulls are for programs only.
        hidden = {
            *(() if result.device_ns else _ON_DEVICE),
            *(() if result.device_ns and result.tensor_core_ns else ("tensor_core_share",)),
            *(() if result.device_ns and by_name["backward_ns"].sum() else ("backward_ns",)),
            *(() if result.steps else ("calls_per_step",)),
        }
        columns = hide_columns(_COLUMNS, hidden)
        blocks = (shown, *rest, frame_grid(columns, by_name), *graph_words(result.graphs, "operator"))
        if result.by_shape is not None:
            shaped = (columns[0], _SHAPES, *columns[1:])
            blocks = (*blocks, frame_grid(shaped, result.by_shape, "By shapes", audience="machine"))
        return Section(self.slug, self.title, blocks)


_COLUMNS = (
    Column("name", "Operator", "text", 0),
    CALLS,
    Column("calls_per_step", "Per step", "number", 6),
    Column("device_self_ns", "Device self", "ns", 0, additive=True),
    Column("share_of_device_op_time", "Of device op time", "ratio", 1, bar=True),
    Column("device_ns", "Device total", "ns", 3),
    Column("host_self_ns", "Host self", "ns", 0, additive=True),
    Column("host_ns", "Host total", "ns", 2),
    Column("tensor_core_eligible", "Matrix op", "bool", 5),
    Column("tensor_core_share", "Tensor cores", "ratio", 4),
    Column("backward_ns", "Backward", "ns", 5),
    Column("device_self_per_step_ns", "Device self per step", "ns", 9),
    Column("host_self_per_step_ns", "Host self per step", "ns", 9),
)
_SHAPES = Column("shapes", "Input shapes", "text", 1)
_ON_DEVICE = ("device_self_ns", "share_of_device_op_time", "device_ns", "tensor_core_eligible")


def _sums(trace: TraceView, operators: OperatorCalls, shapes: pl.Series | None) -> pl.DataFrame:
    """Return one row per name and shapes, if these are known, with the sums of its calls."""
    calls = operators.tree.calls
    distinct = calls.select("name") if shapes is None else calls.select("name", shapes.alias("shapes"))
    own = () if shapes is None else (codes(shapes),)
    group, first = alike(calls["code"].to_numpy().astype(np.int32), *own)
    keys = distinct.select(pl.all().gather(first).cast(pl.String))
    groups = Groups(keys, group)
    return keys.with_columns(
        pl.Series("tensor_core_eligible", groups.sums(operators.eligible.astype(np.int64)) > 0),
        *(pl.Series(name, groups.sums(amounts)) for name, amounts in _amounts(trace, operators)),
    )


def _amounts(trace: TraceView, operators: OperatorCalls) -> Iterator[tuple[str, Array]]:
    """Yield the amounts of each call, figure by figure, because amounts of millions of calls take memory."""
    tree = operators.tree
    once = np.where(operators.again, 0, 1)
    yield "calls", once
    yield "host_ns", np.where(operators.outer, tree.durations, 0)
    yield "host_self_ns", operators.host_self
    yield "device_ns", np.where(operators.outer, operators.device_total, 0)
    yield "device_self_ns", operators.device_self
    yield "kernel_ns", operators.kernel_self
    yield "eligible_ns", np.where(operators.eligible, operators.kernel_self, 0)
    yield "tensor_core_ns", operators.tensor_core_self
    backward = tree.totals(backward_work(trace, operators, operators.device_self))
    yield "backward_ns", np.where(operators.outer, backward, 0)
    steady = _in_steady_steps(trace, tree.calls)
    yield "steady_calls", np.where(steady, once, 0)
    yield "steady_host_ns", np.where(steady, operators.host_self, 0)
    steady_device = np.where(steady, operators.device_self, 0)
    if operators.replayed.height:  # operators in graphs work when the graph is launched, not when it was captured
        replayed = operators.replayed
        row, durations = replayed["row"].to_numpy(), replayed["dur_ns"].to_numpy()
        launches = replayed.select("process_id", pl.col("call_ns").alias("start_ns").fill_null(-1))
        inside = operators.tree.sums(row, np.where(_in_steady_steps(trace, launches), durations, 0))
        steady_device = steady_device + inside - np.where(steady, operators.tree.sums(row, durations), 0)
    yield "steady_device_ns", steady_device


_SUMS = (
    *("calls", "host_ns", "host_self_ns", "device_ns", "device_self_ns", "backward_ns"),
    *("kernel_ns", "eligible_ns", "tensor_core_ns"),
    *("steady_calls", "steady_host_ns", "steady_device_ns"),
)

_PER_STEP = {
    "steady_calls": "calls_per_step",
    "steady_device_ns": "device_self_per_step_ns",
    "steady_host_ns": "host_self_per_step_ns",
}


def _in_steady_steps(trace: TraceView, calls: pl.DataFrame) -> Steady:
    inside = np.zeros(calls.height, dtype=np.bool_)
    process, starts = calls["process_id"].to_numpy(), calls["start_ns"].to_numpy()
    for rank, steps in host_time(trace).items():
        inside |= (process == rank) & steps.contains(starts)
    return inside


def _totals(rows: pl.DataFrame, steps: int, *keys: str) -> pl.DataFrame:
    """Sum by ``keys``, with shares and figures per step; the most own device time first, then the most host time."""
    sums = rows.group_by(keys).agg(pl.col(_SUMS).sum(), pl.col("tensor_core_eligible").any())
    seen = pl.when(pl.col("calls") > 0)  # host time is not known for an operator that only the device names
    per_step = (
        (seen.then(pl.col(part) / steps) if steps else pl.lit(None, pl.Float64)).alias(name)
        for part, name in _PER_STEP.items()
    )
    known = sums.with_columns(
        seen.then(pl.col("host_ns", "host_self_ns")),
        share("device_self_ns", int(sums["device_self_ns"].sum()), "share_of_device_op_time"),
        pl.when(pl.col("kernel_ns") > 0)
        .then(pl.col("tensor_core_ns") / pl.col("kernel_ns"))
        .alias("tensor_core_share"),
        *per_step,
    )
    order = ("device_self_ns", "host_self_ns")
    return known.sort(*order, *keys, descending=[True, True, *[False] * len(keys)], nulls_last=True)
