"""Backward work and its forward operator.

PyTorch numbers the operators that autograd will differentiate. Every operator records the next number. Of those with
the same number, the last to start took it. The backward operator also records that number, and the thread of the
forward pass::

    forward    |--aten::linear 890--|                         looked at 890
                   |-aten::addmm 890-|                        took it
    backward                     |--AddmmBackward0 890, forward thread 1--|
"""

from __future__ import annotations

import numpy as np
import polars as pl

from traceviz.analyses.derived.calls.host_calls import argument, values_of
from traceviz.analyses.derived.frames import knowing
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.program.operator_calls import OperatorCalls
from traceviz.core.arrays.intervals import Array
from traceviz.core.arrays.matching import Pairs, first_rows


def backward_links(trace: TraceView, operators: OperatorCalls) -> tuple[Array, Array]:
    """Return ``(backward, forward)``: rows of backward operators in the tree, and of the forward operator of each."""
    calls = _numbered(trace, operators)
    tree = operators.tree
    is_backward = calls["backward"].to_numpy()
    if not is_backward.any():
        return np.empty(0, np.int64), np.empty(0, np.int64)
    around = tree.nearest(is_backward)
    outer = is_backward & ((tree.parent < 0) | (around[tree.parent] < 0))
    key = ("process_id", "sequence")
    numbered = calls.filter(pl.col("sequence") >= 0)
    backward = numbered.filter(pl.Series(outer)[numbered["row"]])
    forward = numbered.filter(pl.Series(around < 0)[numbered["row"]])
    forward = forward.filter(pl.Series(first_rows(_pairs(forward), _pairs(backward)) >= 0))  # most have no backward
    linked = backward.sort("start_ns", "row").join_asof(
        forward.sort("start_ns", "row"),
        on="start_ns",
        by=key,
        strategy="backward",
        suffix="_forward",
        check_sortedness=False,
    )
    pairs = knowing(linked, "row_forward")
    return pairs["row"].to_numpy(), pairs["row_forward"].to_numpy()


def _pairs(calls: pl.DataFrame) -> Pairs:
    return Pairs(calls["process_id"].to_numpy(), calls["sequence"].to_numpy())


def backward_work(trace: TraceView, operators: OperatorCalls, device_self: Array) -> Array:
    """Return device work of the backward pass by the forward operator that it belongs to, in nanoseconds.

    Args:
        trace: The trace.
        operators: Its operators.
        device_self: Device work launched directly by each operator, 0 if it must not count.
    """
    backward, forward = backward_links(trace, operators)
    return operators.tree.sums(forward, operators.tree.totals(device_self)[backward])


def _numbered(trace: TraceView, operators: OperatorCalls) -> pl.DataFrame:
    """Return every call in the order of the tree: ``row, process_id, start_ns, sequence, backward``."""
    calls = operators.tree.calls.select("op_id", "process_id", "start_ns").with_row_index("row")
    sequence = values_of(calls["op_id"], argument(trace, "Sequence number", "integer"))
    thread = values_of(calls["op_id"], argument(trace, "Fwd thread id", "integer"))
    backward = (thread > 0).fill_null(value=False) & sequence.is_not_null()
    row = pl.col("row").cast(pl.Int64)
    return calls.select(row, "process_id", "start_ns", sequence.alias("sequence"), backward.alias("backward"))
