"""Operators that stall because their threads wait for cores: the pool has more threads than free cores.

A parallel operator ends when the last of its threads does. If one thread waits for a core, all wait for it until the
system lets it run. That takes milliseconds, while the operator takes microseconds::

    thread 1   |##|..............|##|##|        . waits for thread 2
    thread 2   |##|              |##|##|        which waits for a core
    calls      |--|--------------|--|--|
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from traceviz.analyses.derived.calls.call_tree import CallTree
from traceviz.analyses.derived.judged_time import steady_time
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.host.load import host_load
from traceviz.analyses.host.samples import all_series, machine
from traceviz.analyses.host.small_operators import framework_operators, within_steady
from traceviz.trace.rows_to_table import stated_integer

USUAL = 0.1
"""Quantile of an operator's calls that is its usual time, in which all of its threads have a core."""
SLACK = 2.0
"""A call that takes more than this many usual times stalled for the rest of its time."""
STALLED = 5.0
"""An operator stalls if the ratio of its mean to its usual time is this many times that of most calls.

A busy machine slows all operators. Only calls that wait for several threads at once stall.
"""
LEAST_CALLS = 10
"""Least number of calls of an operator for a result."""
LEAST_NS = 1_000
"""Usual times below this are not resolved."""
LEAST_SHARE = 0.20
"""Least share of the steps in stalls for a search for their reason."""
_THREADS = r"^collector\.\w+\.threads\.intra_op$"


@dataclass(frozen=True, slots=True)
class StalledPool:
    """Operators whose threads wait for cores, in steady steps.

    Args:
        threads: Threads of one operator.
        usable: Cores that the program may use.
        free: Cores that other programs leave; ``None`` if that was not measured.
        stalled_ns: Time of the steps in which operators stalled.
        step_ns: Steady step time.
        operator: The operator that stalled longest,
        usual_ns: its usual duration, without what it calls,
        mean_ns: and its mean.
    """

    threads: int
    usable: float
    free: float | None
    stalled_ns: int
    step_ns: int
    operator: str
    usual_ns: int
    mean_ns: int

    @property
    def share(self) -> float:
        """Share of the steps in which operators stalled."""
        return min(self.stalled_ns / self.step_ns, 1.0) if self.step_ns else 0.0


def stalled_pool(trace: TraceView) -> StalledPool | None:
    """Return PyTorch operators that stall; ``None`` if none do, or the pool has no more threads than cores are free."""
    steady = steady_time(trace)
    if trace.rank_busy or trace.has_device_tables or not steady or "pytorch" not in trace.frameworks:
        return None
    # The framework stated among how many threads it divides an operator.
    settings = trace.frame("settings", pl.col("key", "value").cast(pl.String)).drop_nulls()
    stated = settings.filter(pl.col("key").str.contains(_THREADS))["value"].to_list()
    threads = max(filter(None, (stated_integer(value) for value in stated)), default=None)
    host = machine(trace)
    if threads is None or threads < 2 or host.usable is None:
        return None
    step_ns = sum(time.total for time in steady.values())
    stalled = _stalled(trace)
    stalled_ns = int(stalled["stalled_ns"].sum())
    if stalled_ns < LEAST_SHARE * step_ns:
        return None
    neighbours = host_load(trace, all_series(trace), host, 1.0).neighbours
    free = None if neighbours is None else max(host.usable - neighbours.busy_cores, 0.0)
    if threads <= round(host.usable if free is None else free):
        return None
    worst = stalled.row(0, named=True)
    usual, mean = round(worst["usual_ns"]), round(worst["mean_ns"])
    return StalledPool(threads, host.usable, free, stalled_ns, step_ns, worst["name"], usual, mean)


def _stalled(trace: TraceView) -> pl.DataFrame:
    """Return operators that stall in steady steps, the worst first: ``name, usual_ns, mean_ns, stalled_ns``.

    Times exclude called operators. Calls with inputs of other shapes are other operators.
    """
    steady = steady_time(trace)
    tree = CallTree.of(framework_operators(trace, steady))
    called, own = tree.parent >= 0, tree.durations.copy()
    np.subtract.at(own, tree.parent[called], tree.durations[called])
    calls = tree.calls.select("op_id", "name").with_columns(pl.Series("own_ns", own))
    calls = calls.filter(pl.Series(within_steady(tree, steady), dtype=pl.Boolean))
    shapes = pl.DataFrame(schema={"op_id": calls["op_id"].dtype, "shapes": pl.String})
    if "op_args" in trace.tables:
        dims = trace.tables.scan("op_args").filter(pl.col("key") == "Input Dims")
        shapes = dims.select("op_id", pl.col("text").cast(pl.String).alias("shapes")).unique("op_id").collect()
    calls = calls.join(shapes, on="op_id", how="left", maintain_order="left")
    sums = calls.group_by("name", "shapes").agg(
        pl.len().alias("calls"), pl.col("own_ns").mean().alias("mean_ns"), pl.col("own_ns").quantile(USUAL).alias("low")
    )
    known = sums.filter(pl.col("calls") >= LEAST_CALLS).with_columns(
        pl.max_horizontal("low", pl.lit(LEAST_NS)).alias("usual_ns")
    )
    slowed = known.with_columns((pl.col("mean_ns") / pl.col("usual_ns")).alias("slowed")).sort("slowed")
    if not slowed.height:
        return slowed.with_columns(pl.lit(0).alias("stalled_ns"))
    counted = slowed["calls"].cum_sum().to_numpy()
    most = slowed["slowed"][int(np.searchsorted(counted, counted[-1] / 2))]
    beyond = (pl.col("mean_ns") - SLACK * pl.col("usual_ns")) * pl.col("calls")
    stalled = slowed.filter(pl.col("slowed") >= STALLED * most).with_columns(beyond.alias("stalled_ns"))
    return stalled.filter(pl.col("stalled_ns") > 0).sort("stalled_ns", "name", descending=[True, False])
