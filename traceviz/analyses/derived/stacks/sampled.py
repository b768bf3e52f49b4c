"""What each thread ran, and when, as rows of one kind: samples of stacks, else Python functions that were recorded.

A sample taken at a moment stands for the time since the one before it, so that a thread's rows leave no gaps while it
lives. Functions that a profiler recorded have exact times, and no samples::

    samples    .   .   .   .   .   .
    rows       |---- load ----|-wait-|      one row: samples in a row and all the same
"""

from __future__ import annotations

import numpy as np
import polars as pl

from traceviz.analyses.derived.calls.call_tree import CallTree
from traceviz.analyses.derived.calls.segments import innermost
from traceviz.analyses.derived.calls.threads import likely_threads
from traceviz.analyses.derived.frames import bounds, end_ns
from traceviz.analyses.derived.stacks.kinds import activity_seen
from traceviz.analyses.derived.stacks.recorded import function_meanings
from traceviz.analyses.derived.stacks.trees import stack_meanings
from traceviz.analyses.derived.view import TraceView, once_per_trace
from traceviz.intervals import IntervalSet

MAIN_THREAD = r"(?i)^main_?thread$"
"""Name that Python gives the thread that runs a program's main code."""

SAMPLED: dict[str, pl.DataType | type[pl.DataType]] = {
    "process_id": pl.Int32,
    "thread_id": pl.Int32,
    **dict.fromkeys(("start_ns", "end_ns", "samples", "cpu_ns", "stack_id"), pl.Int64),
    **dict.fromkeys(("state", "kind", "activity", "location", "function", "leaf"), pl.String),
    "inside": pl.Boolean,
}
"""Columns of :func:`sampled_stacks`."""
_KEYS = ("kind", "activity", "inside", "location", "function", "leaf", "process_id", "thread_id")

_OF_ROW = ("kind", "activity", "process_id", "thread_id")
"""Those of them that do not follow from the stack alone."""


@once_per_trace
def sampled_stacks(trace: TraceView) -> pl.DataFrame:
    """What every thread did throughout the run, by start.

    Returns:
        Columns :data:`SAMPLED`. ``kind`` is a key of :data:`~traceviz.analyses.derived.stacks.kinds.KINDS`: what the
        time was for where the stack says so, else the ``activity`` of its innermost frame. ``location`` is the
        innermost frame of the program itself (``train.py:41 decode_jpeg``), ``function`` the same without its line,
        ``leaf`` the innermost frame; ``inside`` says whether the location serves what the time was for, and does not
        only call what does. ``samples`` and ``stack_id`` are null for functions that a profiler recorded.
        No rows where neither was recorded.
    """
    if not trace.tables.rows("stacks"):
        return _recorded(trace)
    columns = ("process_id", "thread_id", "start_ns", end_ns(), "samples", "cpu_ns", "stack_id")
    rows = trace.frame("stacks", *columns, pl.col("state").cast(pl.String))
    known = rows.join(stack_meanings(trace), on="stack_id", how="left", maintain_order="left")
    seen = activity_seen(
        pl.col("activity").fill_null("python"),
        pl.col("state"),
        pl.col("cpu_ns"),
        pl.col("end_ns") - pl.col("start_ns"),
        pl.col("samples"),
        ~pl.col("leaf").str.contains(r"[ :]"),
    )
    seen_rows = known.with_columns(seen.alias("activity"))
    kind = pl.when(pl.col("activity") == "gil").then("activity").otherwise(pl.coalesce("purpose", "activity"))
    return (
        seen_rows.with_columns(kind.alias("kind"))
        .select(pl.col(name).cast(dtype) for name, dtype in SAMPLED.items())
        .sort("start_ns", "thread_id", maintain_order=True)
    )


def _recorded(trace: TraceView) -> pl.DataFrame:
    """Python functions that a profiler recorded, each for the time in which it was the innermost of its thread."""
    names = trace.host_names.filter(pl.col("category") == "python")
    if not names.height:
        return pl.DataFrame(schema=SAMPLED)
    calls = trace.host_ops("python").filter(pl.col("end_ns") > pl.col("start_ns"))
    tree = CallTree.of(calls)
    segments = innermost(tree)
    meanings = function_meanings(tree).select(pl.all().gather(pl.Series(segments.owner, dtype=pl.Int64)))
    owners = tree.calls.select("process_id", "thread_id").select(
        pl.all().gather(pl.Series(segments.owner, dtype=pl.Int64))
    )
    times = pl.DataFrame({"start_ns": segments.starts, "end_ns": segments.ends})
    rows = pl.concat([owners, times, meanings], how="horizontal")
    missing = [pl.lit(None, dtype).alias(name) for name, dtype in SAMPLED.items() if name not in rows.columns]
    rows = rows.with_columns(missing).select(pl.col(name).cast(dtype) for name, dtype in SAMPLED.items())
    return rows.sort("start_ns", "thread_id", maintain_order=True)


def time_by_stack(trace: TraceView, within: IntervalSet, process_id: int, thread_id: int | None = None) -> pl.DataFrame:
    """What the threads of a process did in a part of the run, the largest first.

    Args:
        trace: The trace.
        within: The part of the run.
        process_id: The process.
        thread_id: One of its threads; all of them where not given, whose times add up.

    Returns:
        ``kind, activity, inside, location, function, leaf, process_id, thread_id, time_ns, samples, cpu_ns``: time is
        that within the part, samples and processor time are the share of each row that lies in it (``samples`` real,
        null where nothing was sampled).
    """
    rows = sampled_stacks(trace).filter(pl.col("process_id") == process_id)
    if thread_id is not None:
        rows = rows.filter(pl.col("thread_id") == thread_id)
    time = within.overlap(*bounds(rows))
    rows = rows.with_columns(pl.Series("time_ns", time, pl.Int64)).filter(pl.col("time_ns") > 0)
    part = pl.col("time_ns") / (pl.col("end_ns") - pl.col("start_ns"))
    owned = rows.with_columns(pl.col("samples") * part, pl.col("cpu_ns") * part)
    sums = (
        pl.col("time_ns").sum(),
        *(pl.when(pl.col(name).count() > 0).then(pl.col(name).sum()).alias(name) for name in ("samples", "cpu_ns")),
    )
    if owned["stack_id"].null_count() == 0:  # texts follow from the stack, and numbers are put together faster
        texts = [pl.col(name).first() for name in _KEYS if name not in _OF_ROW]
        owned = owned.group_by("stack_id", *_OF_ROW).agg(*texts, *sums)
    found = owned.group_by(_KEYS).agg(*sums)
    return found.sort("time_ns", *_KEYS, descending=[True, *[False] * len(_KEYS)])


def samples_in(trace: TraceView, within: IntervalSet, process_id: int, thread_id: int | None = None) -> float:
    """How many samples stand for a part of the run (see :func:`time_by_stack`); 0 where none were taken."""
    return float(time_by_stack(trace, within, process_id, thread_id)["samples"].sum() or 0)


@once_per_trace
def main_thread(trace: TraceView, process_id: int) -> int | None:
    """The thread that runs the program's main code; ``None`` for a process without known threads.

    The thread whose steps the hooks count, else the one that Python calls its main thread, else the process's first
    one, else the likeliest training thread, else the one with most rows.
    """
    own = pl.col("process_id") == process_id
    steps = trace.frame("phases", "process_id", "thread_id", pl.col("kind").cast(pl.String))
    counted = steps.filter(own & (pl.col("kind") == "step"))["thread_id"].drop_nulls().value_counts()
    if counted.height:
        return int(counted.sort("count", "thread_id", descending=[True, False])["thread_id"][0])
    threads = trace.frame("threads", "process_id", "thread_id", "tid", pl.col("name").cast(pl.String)).filter(own)
    pids = trace.frame("processes", "process_id", "pid").filter(own)["pid"]
    sampled = set(sampled_stacks(trace).filter(own)["thread_id"].unique().to_list())
    named = threads.filter(pl.col("name").str.contains(MAIN_THREAD).fill_null(value=False))
    first = threads.filter(pl.col("tid").is_in(pids.implode()).fill_null(value=False))
    likely = likely_threads(trace).get(process_id)
    candidates = [*named["thread_id"], *first["thread_id"], *([] if likely is None else [likely])]
    found = next((thread for thread in candidates if thread in sampled or not sampled), None)
    if found is not None:
        return int(found)
    return _busiest(trace, process_id)


def _busiest(trace: TraceView, process_id: int) -> int | None:
    rows = sampled_stacks(trace).filter(pl.col("process_id") == process_id)
    if not rows.height:
        return None
    threads, time = rows["thread_id"].to_numpy(), rows["end_ns"].to_numpy() - rows["start_ns"].to_numpy()
    numbers, index = np.unique(threads, return_inverse=True)
    return int(numbers[np.argmax(np.bincount(index, weights=time))])
