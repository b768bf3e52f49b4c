"""Small operators: calls whose fixed cost, in Python and in the framework, exceeds their computing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from traceviz.analyses.derived.calls.call_tree import CallTree
from traceviz.analyses.derived.frames import unions_by
from traceviz.analyses.derived.judged_time import steady_time
from traceviz.analyses.derived.steps.search import training_steps
from traceviz.analyses.derived.view import TraceView
from traceviz.core.arrays.intervals import Array, IntervalSet

SMALL_NS = 100_000
"""Up to this duration, an operator mostly costs the call itself: ten to fifty microseconds while it is recorded."""
NEAR = 2.0
"""A call counts for at most this many medians of its operator. Longer time is a stall, not the call."""
_OF_FRAMEWORK = r"^(aten|torchvision|torchaudio)::|^autograd::engine|Backward\d*$|^Optimizer\."
_AROUND = r"^(autograd::engine|Optimizer\.|torch::autograd)|Backward\d*$"
"""Events that only enclose operators."""


@dataclass(frozen=True, slots=True)
class SmallOperators:
    """Operators that the program calls one by one in steady steps.

    Args:
        calls: Number of them, without those that other operators call.
        steps: Steady steps, without a few that are much longer than the others.
        median_ns: Their median duration.
        small_ns: Time of the steps in small operators, each near the median of its operator, and between them.
        step_ns: Time of these steps.
        most: The operator with most calls.
        most_calls: Its calls.
        batch: Examples in a batch, if the trace shows it.
    """

    calls: int
    steps: int
    median_ns: int
    small_ns: int
    step_ns: int
    most: str
    most_calls: int
    batch: int | None

    @property
    def per_step(self) -> float:
        """Calls in a step."""
        return self.calls / max(self.steps, 1)

    @property
    def share(self) -> float:
        """Share of the steps that small operators take."""
        return min(self.small_ns / self.step_ns, 1.0) if self.step_ns else 0.0


def small_operators(trace: TraceView) -> SmallOperators | None:
    """Return PyTorch's operators of a program without a device; ``None`` if there are none in steady steps."""
    if trace.rank_busy or trace.has_device_tables or "pytorch" not in trace.frameworks or not steady_time(trace):
        return None
    steady_steps = training_steps(trace).steady
    lasting = pl.col("end_ns") - pl.col("start_ns")
    steps = steady_steps.filter(lasting <= LONG * lasting.median())
    steps = steps if steps.height >= (1 - MOST_LONG) * steady_steps.height else steady_steps
    steady = unions_by(steps, "process_id")
    tree = CallTree.of(framework_operators(trace, steady))
    inside = within_steady(tree, steady)
    outer = tree.calls.with_columns(pl.Series("dur_ns", tree.durations)).filter(pl.Series((tree.depth == 0) & inside))
    if not outer.height:
        return None
    # The median by name decides, because any single call lasts longer if another thread takes the core
    usual = pl.col("dur_ns").median().over("name")
    outer = outer.with_columns((usual <= SMALL_NS).alias("small"), (NEAR * usual).cast(pl.Int64).alias("near_ns"))
    small = [_time_of_small(part, steady[int(key[0])]) for key, part in outer.group_by("process_id")]
    names = outer.group_by("name").len().sort("len", "name", descending=[True, False])
    return SmallOperators(
        calls=outer.height,
        steps=steps.height,
        median_ns=round(float(outer["dur_ns"].to_numpy().mean() if outer.height < 2 else np.median(outer["dur_ns"]))),
        small_ns=sum(small),
        step_ns=sum(time.total for time in steady.values()),
        most=str(names["name"][0]),
        most_calls=int(names["len"][0]),
        batch=_batch(trace, outer),
    )


LONG = 3.0
"""A step that lasts this many medians is unusual: a call stalled in it, or it does other work."""
MOST_LONG = 0.25
"""If more than this part of the steps are that long, there are two kinds of steps, and all count."""


def framework_operators(trace: TraceView, steady: dict[int, IntervalSet]) -> pl.DataFrame:
    """Return calls of PyTorch's operators in the processes that have ``steady`` steps, names as text."""
    operators = trace.host_ops("op").with_columns(pl.col("name").cast(pl.String))
    operators = operators.filter(pl.col("name").str.contains(_OF_FRAMEWORK) & ~pl.col("name").str.contains(_AROUND))
    return operators.filter(pl.col("process_id").is_in(list(steady)))


def within_steady(tree: CallTree, steady: dict[int, IntervalSet]) -> Array:
    """Return which calls of ``tree`` start in the steady steps of their process."""
    processes = tree.calls["process_id"].to_numpy()
    inside = np.zeros(processes.size, dtype=bool)
    for process, time in steady.items():
        own = processes == process
        inside[own] = time.contains(tree.starts[own])
    return inside


def _time_of_small(operators: pl.DataFrame, steady: IntervalSet) -> int:
    """Return the time of steps in small operators and in the short gaps after them, in which Python calls the next one.

    If a call stalls because its threads wait for cores, it counts near the median of its operator::

        calls     |##|  |##|  |#################|  |##|
        counted   |-----|-----|----|            |--|--|
    """
    found = []
    for _, part in operators.sort("start_ns").group_by("thread_id", maintain_order=True):
        starts, ends = part["start_ns"].to_numpy(), part["end_ns"].to_numpy()
        following = np.append(starts[1:], ends[-1:])
        reaches = np.where(following - ends <= SMALL_NS, np.maximum(following, ends), ends)
        near = np.minimum(ends, starts + part["near_ns"].to_numpy())
        is_small = part["small"].to_numpy()
        found.append(IntervalSet.of(starts[is_small], near[is_small]))
        found.append(IntervalSet.of(ends[is_small], reaches[is_small]))
    return IntervalSet.empty().union(*found).intersect(steady).total


_BATCH_OPERATORS = r"^aten::(linear|addmm|conv[123]d|mm|matmul|embedding|lstm|gru)$"


def _batch(trace: TraceView, operators: pl.DataFrame) -> int | None:
    """Return the first dimension of most layers' input, if shapes were recorded."""
    layers = operators.filter(pl.col("name").str.contains(_BATCH_OPERATORS))[["op_id"]]
    if "op_args" not in trace.tables or not layers.height:
        return None
    scan = trace.tables.scan("op_args").filter(pl.col("key") == "Input Dims").select("op_id", "text")
    shapes = scan.join(layers.lazy(), on="op_id", how="semi").collect()["text"].cast(pl.String)
    first = shapes.str.extract(r"^\[\[(\d+),").cast(pl.Int64, strict=False).drop_nulls()
    if not first.len():
        return None
    counts = first.value_counts(sort=True)
    return int(counts[first.name][0])
