"""Calls in which the host waits for the device, their cost, and the operation of the framework that waited.

A wait for a busy device costs nothing in itself, but the gap after it does. The device has finished, the host wakes up
and only then prepares new work. Without the wait the host could have prepared it during the device's work. So a gap can
shrink by at most the wait of the calls that return within it. It cannot shrink by the time spent waiting for input or
in blocking copies::

    device  |####kernel####|.........gap.........|###
    host       |---sync-----|  prepare  | launch |        cost = min(gap, sync)
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import polars as pl

from traceviz.analyses.derived.frames import bounds, having, intervals, knowing, of_process, outermost, parts_by
from traceviz.analyses.derived.host.classes import host_classes
from traceviz.analyses.derived.host.copy_calls import asked_waits, unasked_waits
from traceviz.analyses.derived.judged_time import judged_time, steady_time
from traceviz.analyses.derived.view import TraceView
from traceviz.core.arrays.intervals import Array, IntervalSet


@dataclass(frozen=True, slots=True)
class HostWaits:
    """Waits for devices in steady steps, over all ranks.

    Args:
        calls: Number of calls that waited.
        worst: Function after whose calls devices were idle longest; on a tie, the one called most often.
        exposed_ns: Idle time that the waits of judged time cost.
        causes: ``op, exposed_ns``: outermost operations of the framework around the calls, with the cost of the calls,
            the largest first; no rows if no operation was recorded.
    """

    calls: int
    worst: str
    exposed_ns: int
    causes: pl.DataFrame


def waiting_calls(trace: TraceView) -> pl.DataFrame:
    """Return calls that return only when a device has done its work: rows of :meth:`TraceView.api_calls`.

    These are calls that synchronise, and copies from a device with a hidden wait. The driver copies through memory of
    its own and returns when the data has arrived. ``tensor.item()`` often waits for such a copy.
    """
    calls = trace.api_calls("synchronisation")
    reads = having(unasked_waits(trace), "kind", "d2h")
    return pl.concat([calls, reads.select(calls.columns)])


def host_waits(trace: TraceView) -> HostWaits:
    """Measure the waits of every process that uses a device."""
    calls, blocking = waiting_calls(trace), asked_waits(trace)
    count = 0
    parts = []
    for rank in trace.rank_busy:
        own = of_process(calls, rank).sort("end_ns", "start_ns")
        steady = steady_time(trace).get(rank, IntervalSet.empty())
        count += int(np.count_nonzero(steady.overlap(*bounds(own))))
        copies = intervals(having(blocking, "process_id", rank))  # blocking copies have a rule of their own
        other = host_classes(trace)[rank].input_wait.union(copies)
        gaps = trace.idle_of(rank).intersect(judged_time(trace, rank))
        parts.append(own.with_columns(pl.Series("exposed_ns", _exposed_by(own, gaps, other), dtype=pl.Int64)))
    waits = pl.concat(parts) if parts else calls.with_columns(pl.lit(0, pl.Int64).alias("exposed_ns"))
    by_name = waits.group_by("name").agg(pl.col("exposed_ns").sum(), pl.len())
    worst = by_name.sort("exposed_ns", "len", "name", descending=[True, True, False]).head(1)
    return HostWaits(
        count, str(worst["name"][0]) if worst.height else "", int(waits["exposed_ns"].sum()), _causes(trace, waits)
    )


def _exposed_by(calls: pl.DataFrame, gaps: IntervalSet, other: IntervalSet) -> Array:
    """Return the cost of each of ``calls`` (sorted by end). A gap belongs to the last call that returns within it."""
    cost = np.zeros(calls.height, dtype=np.int64)
    if not calls.height or not len(gaps):
        return cost
    starts, returns = bounds(calls)
    waited = np.concatenate([[0], np.cumsum(returns - starts)])
    first, behind = (np.searchsorted(returns, edge, side="right") for edge in (gaps.starts, gaps.ends))
    winnable = gaps.durations - other.overlap(gaps.starts, gaps.ends)
    lost = np.minimum(winnable, waited[behind] - waited[first])
    any_returns = behind > first
    cost[behind[any_returns] - 1] = lost[any_returns]
    return cost


def _causes(trace: TraceView, calls: pl.DataFrame) -> pl.DataFrame:
    """Return the outermost operation around each call that costs anything, with its cost: ``op, exposed_ns``."""
    costly = calls.filter(pl.col("exposed_ns") > 0)
    threads = costly["thread_id"].unique().to_list()
    operations = trace.host_ops("op").filter(pl.col("thread_id").is_in(threads))
    outer = outermost(operations.sort("thread_id", "start_ns", "end_ns", descending=[False, False, True]))
    parts = parts_by(outer, "thread_id") if outer.height else {}
    named_parts = [
        _around(own, parts[thread]) for thread, own in parts_by(costly, "thread_id").items() if thread in parts
    ]
    named = pl.concat(named_parts) if named_parts else pl.DataFrame(schema={"op": pl.String, "exposed_ns": pl.Int64})
    sums = knowing(named, "op").group_by("op").agg(pl.col("exposed_ns").sum())
    return sums.sort("exposed_ns", "op", descending=[True, False])


def _around(calls: pl.DataFrame, operations: pl.DataFrame) -> pl.DataFrame:
    """Return the operation in which each call starts, null if there is none; operations do not overlap."""
    starts, ends = bounds(operations)
    moments = calls["start_ns"].to_numpy()
    row = np.searchsorted(starts, moments, side="right") - 1
    inside = (row >= 0) & (moments < ends[np.maximum(row, 0)])
    names = operations["name"].cast(pl.String)[np.maximum(row, 0)]
    return pl.DataFrame({"op": names, "exposed_ns": calls["exposed_ns"], "inside": inside}).select(
        pl.when("inside").then("op").alias("op"), "exposed_ns"
    )


_ADVICE = (
    (
        r"^aten::(item|_local_scalar_dense|is_nonzero|equal|allclose)$",
        (
            "PyTorch: loss.item(), float(loss), print(tensor) and `if tensor:` read from the device: do so every N "
            "steps, or sum up on the device and read once."
        ),
    ),
    (
        r"^aten::(nonzero|masked_select|index|index_put_|_?unique\w*|repeat_interleave|bincount|argwhere)$",
        "PyTorch: boolean masks, nonzero and unique need their size on the host: use torch.where, or fixed sizes.",
    ),
    (
        r"^aten::(to|_to_copy|copy_|cpu)$",
        (
            "PyTorch: .cpu() and .to() wait for the device: copy with non_blocking=True, from and to pinned memory, "
            "and read the result a step later."
        ),
    ),
)


def advice_for(causes: pl.DataFrame) -> tuple[str, ...]:
    """Return advice for the operations that wait, the costliest first; none for unknown operations."""
    lines = [words for op in causes["op"] for pattern, words in _ADVICE if re.search(pattern, op)]
    return tuple(dict.fromkeys(lines))
