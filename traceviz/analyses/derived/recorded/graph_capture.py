"""Graph capture: calls that record a graph instead of launching work.

::

    thread 1   |Begin| launch | launch | launch |End|      these launch nothing: they become nodes of a graph
    thread 2              | launch |                       neither does this one, if it has no work of its own
    device     ..........................................

A capture that was under way at the start or end of the trace has only one of the two calls.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from traceviz.analyses.derived.frames import parts_by, unions_by
from traceviz.analyses.derived.patterns import matches
from traceviz.core.arrays.intervals import IntervalSet

BEGIN = r"^(cuda|cu|hip)StreamBegin(Capture|Recapture)"
END = r"^(cuda|cu|hip)StreamEndCapture"
"""Names of the calls around a capture, with any suffix."""

NAME = "graph capture"
"""Name of a capture in lists of compilation."""

_KEY = ["process_id", "correlation_id"]


def graph_captures(calls: pl.DataFrame, span_ns: int) -> pl.DataFrame:
    """Return captures of graphs: ``start_ns, end_ns, process_id, thread_id``, by start.

    Args:
        calls: Calls that start or end a capture: ``start_ns, end_ns, process_id, thread_id, name``, in order of start.
        span_ns: End of the trace.
    """
    kinds = calls.with_columns(matches(pl.col("name"), BEGIN).alias("begins"))
    thread = ["process_id", "thread_id"]
    closed = kinds.with_columns(
        pl.when(~pl.col("begins")).then("end_ns").backward_fill().over(thread).fill_null(span_ns).alias("until_ns"),
        pl.col("begins").shift(1).over(thread).alias("was_begun"),
    )
    begun = closed.filter("begins").select("start_ns", pl.col("until_ns").alias("end_ns"), *thread)
    only_ended = closed.filter(~pl.col("begins") & pl.col("was_begun").is_null())
    return pl.concat([begun, only_ended.select(pl.lit(0, pl.Int64).alias("start_ns"), "end_ns", *thread)]).sort(
        "start_ns"
    )


def in_captures(calls: pl.DataFrame, captures: pl.DataFrame, work: pl.LazyFrame) -> pl.Series:
    """Return which ``calls`` were captured: in a capture of their thread, or without work in one of their process.

    Args:
        calls: ``start_ns, process_id, thread_id, correlation_id``.
        captures: :func:`graph_captures`.
        work: Device work: ``process_id, correlation_id``.
    """
    own = _inside(calls, "thread_id", unions_by(captures, "thread_id"))
    near = _inside(calls, "process_id", unions_by(captures, "process_id")) & ~own
    if near.any():
        suspects = calls.select(*_KEY, pl.Series("near", near))
        done = work.join(suspects.lazy().filter("near").select(_KEY), on=_KEY, how="semi").unique().collect()
        works = suspects.join(
            done.with_columns(pl.lit(value=True).alias("works")), on=_KEY, how="left", maintain_order="left"
        )
        near &= works["works"].is_null().to_numpy()
    return pl.Series("captured", own | near)


def _inside(calls: pl.DataFrame, key: str, sets: dict[int, IntervalSet]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return whether each call starts within the set of its ``key``."""
    inside = np.zeros(calls.height, dtype=bool)
    numbered = calls.select("start_ns", key).with_row_index("row")
    for value, part in parts_by(numbered, key).items() if calls.height else ():
        if value in sets:
            inside[part["row"].to_numpy()] = sets[value].contains(part["start_ns"].to_numpy())
    return inside
