"""What each thread ran, and when, as rows of one kind: samples of stacks, else Python functions that were recorded.

A sample taken at a moment stands for the time since the one before it, so that a thread's rows leave no gaps while it
lives. Functions that a profiler recorded have exact times, and no samples::

    samples    .   .   .   .   .   .
    rows       |---- load ----|-wait-|      one row: samples in a row and all the same
"""

from __future__ import annotations

from dataclasses import dataclass

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
from traceviz.nested import Codes, alike

MAIN_THREAD = r"(?i)^main_?thread$"
"""Name that Python gives the thread that runs a program's main code."""

SAMPLED: dict[str, pl.DataType | type[pl.DataType]] = {
    "process_id": pl.Int32,
    "thread_id": pl.Int32,
    **dict.fromkeys(("start_ns", "end_ns", "samples", "cpu_ns", "stack_id"), pl.Int64),
    **dict.fromkeys(("kind", "activity", "location", "function", "leaf"), pl.String),
    "inside": pl.Boolean,
}
"""Columns of :func:`sampled_stacks`."""
TEXTS = ("kind", "activity", "inside", "location", "function", "leaf")
"""Columns of :attr:`Seen.meanings`."""
_KEYS = (*TEXTS, "process_id", "thread_id")


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """What every thread did throughout the run: times as numbers, and texts once for all rows that say the same.

    Args:
        rows: ``process_id, thread_id, start_ns, end_ns, samples, cpu_ns, stack_id``, and ``meaning``: the row of
            ``meanings``. By start.
        meanings: Columns :data:`TEXTS`.
        sampled: Whether stacks were sampled; else Python functions were recorded, and ``samples``, ``cpu_ns`` and
            ``stack_id`` are null.
    """

    rows: pl.DataFrame
    meanings: pl.DataFrame
    sampled: bool

    def of(self, process_id: int, thread_id: int | None = None) -> pl.DataFrame:
        """Rows of a process, or of one of its threads."""
        rows = _where(self.rows, "process_id", process_id)
        return rows if thread_id is None else _where(rows, "thread_id", thread_id)

    def said(self, rows: pl.DataFrame) -> pl.DataFrame:
        """``rows`` with what they mean."""
        return pl.concat([rows, self.meanings.select(pl.all().gather(rows["meaning"]))], how="horizontal")


def _where(rows: pl.DataFrame, column: str, value: int) -> pl.DataFrame:
    """Rows with this value; most traces have one process, whose rows are then not copied."""
    is_it = rows[column] == value
    return rows if is_it.all() else rows.filter(is_it)


@once_per_trace
def seen(trace: TraceView) -> Seen:
    """What every thread did: samples of stacks, else Python functions that were recorded; without rows for neither."""
    return _sampled(trace) if trace.tables.rows("stacks") else _recorded(trace)


@once_per_trace
def sampled_stacks(trace: TraceView) -> pl.DataFrame:
    """What every thread did throughout the run, by start.

    Returns:
        Columns :data:`SAMPLED`. ``kind`` is a key of :data:`~traceviz.analyses.derived.stacks.kinds.KINDS`: what the
        time was for where the stack says so, else the ``activity`` of its innermost frame. ``location`` is the
        innermost frame of the program itself (``train.py:41 decode_jpeg``), ``function`` the same without its line,
        ``leaf`` the innermost frame; ``inside`` says whether the location serves what the time was for, and does not
        only call what does. ``samples`` and ``stack_id`` are null for functions that a profiler recorded: these are
        millions, of which :func:`seen` has the texts but once. No rows where neither was recorded.
    """
    found = seen(trace)
    rows = found.said(found.rows)
    return rows.select(pl.col(name).cast(dtype) for name, dtype in SAMPLED.items())


def _sampled(trace: TraceView) -> Seen:
    columns = ("process_id", "thread_id", "start_ns", end_ns(), "samples", "cpu_ns", "stack_id")
    rows = trace.frame("stacks", *columns, pl.col("state").cast(pl.String))
    known = rows.join(stack_meanings(trace), on="stack_id", how="left", maintain_order="left")
    did = activity_seen(
        pl.col("activity").fill_null("python"),
        pl.col("state"),
        pl.col("cpu_ns"),
        pl.col("end_ns") - pl.col("start_ns"),
        pl.col("samples"),
        ~pl.col("leaf").str.contains(r"[ :]"),
    )
    did_rows = known.with_columns(did.alias("activity"))
    kind = pl.when(pl.col("activity") == "gil").then("activity").otherwise(pl.coalesce("purpose", "activity"))
    ordered = did_rows.with_columns(kind.alias("kind")).sort("start_ns", "thread_id", maintain_order=True)
    of_stack = ordered.select(pl.col("stack_id", "kind", "activity").rank("dense").cast(pl.Int32).fill_null(-1))
    meaning, first = alike(*(column.to_numpy() for column in of_stack))
    return Seen(_rows(ordered, meaning), ordered.select(TEXTS).select(pl.all().gather(first)), sampled=True)


def _recorded(trace: TraceView) -> Seen:
    """Python functions that a profiler recorded, each for the time in which it was the innermost of its thread."""
    names = trace.host_names.filter(pl.col("category") == "python")
    if not names.height:
        nothing = pl.DataFrame(schema=SAMPLED)
        return Seen(_rows(nothing, np.empty(0, np.int32)), nothing.select(TEXTS), sampled=False)
    tree = recorded_calls(trace)
    segments = innermost(tree)
    said, meanings = function_meanings(tree)
    owners = tree.calls.select("process_id", "thread_id", pl.Series("meaning", said)).select(
        pl.all().gather(pl.Series(segments.owner))
    )
    rows = owners.with_columns(pl.Series("start_ns", segments.starts), pl.Series("end_ns", segments.ends))
    if np.any(segments.starts[1:] < segments.starts[:-1]):  # several threads, one after the other
        rows = rows[np.argsort(segments.starts, kind="stable")]
    return Seen(_rows(rows, rows["meaning"].to_numpy()), meanings, sampled=False)


@once_per_trace
def recorded_calls(trace: TraceView) -> CallTree:
    """Calls of Python functions that a profiler recorded, as far as they last, as a tree: ``name``, and the process."""
    calls = trace.host_ops("python").filter(pl.col("end_ns") > pl.col("start_ns"))
    return CallTree.of(calls.select("start_ns", "end_ns", "process_id", "thread_id", "op_id", "name"))


def _rows(rows: pl.DataFrame, meaning: Codes) -> pl.DataFrame:
    """:attr:`Seen.rows`; null what is not known."""
    known = [pl.col(name) if name in rows.columns else pl.lit(None).alias(name) for name in _NUMBERS]
    numbers = rows.select(column.cast(SAMPLED[name]) for name, column in zip(_NUMBERS, known, strict=True))
    return numbers.with_columns(pl.Series("meaning", meaning, pl.Int32))


_NUMBERS = ("process_id", "thread_id", "start_ns", "end_ns", "samples", "cpu_ns", "stack_id")


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
    found = seen(trace)
    rows = found.of(process_id, thread_id)
    time = pl.Series("time_ns", within.overlap(*bounds(rows)), pl.Int64)
    sums = (
        pl.col("time_ns").sum(),
        *(pl.when(pl.col(name).count() > 0).then(pl.col(name).sum()).alias(name) for name in _PARTS),
    )
    said = found.said(_sampled_parts(rows, time, sums) if found.sampled else _recorded_times(rows, time))
    return said.group_by(_KEYS).agg(*sums).sort("time_ns", *_KEYS, descending=[True, *[False] * len(_KEYS)])


_PARTS = ("samples", "cpu_ns")
_OF_ROW = ("meaning", "process_id", "thread_id")
"""What rows have in common that are put together as numbers, before texts are compared."""


def _sampled_parts(rows: pl.DataFrame, time: pl.Series, sums: tuple[pl.Expr, ...]) -> pl.DataFrame:
    owned = rows.with_columns(time).filter(pl.col("time_ns") > 0)
    part = pl.col("time_ns") / (pl.col("end_ns") - pl.col("start_ns"))
    return owned.with_columns(pl.col("samples") * part, pl.col("cpu_ns") * part).group_by(_OF_ROW).agg(*sums)


def _recorded_times(rows: pl.DataFrame, time: pl.Series) -> pl.DataFrame:
    """Sums of time by what the rows have in common; nothing was sampled."""
    group, first = alike(*(rows[name].to_numpy() for name in _OF_ROW))
    total = np.zeros(first.size, np.int64)
    np.add.at(total, group, time.to_numpy())
    common = rows.select(pl.col(_OF_ROW).gather(first))
    nothing = [pl.lit(None, pl.Float64).alias(name) for name in _PARTS]
    return common.with_columns(pl.Series("time_ns", total), *nothing).filter(pl.col("time_ns") > 0)


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
    sampled = set(seen(trace).of(process_id)["thread_id"].unique().to_list())
    named = threads.filter(pl.col("name").str.contains(MAIN_THREAD).fill_null(value=False))
    first = threads.filter(pl.col("tid").is_in(pids.implode()).fill_null(value=False))
    likely = likely_threads(trace).get(process_id)
    candidates = [*named["thread_id"], *first["thread_id"], *([] if likely is None else [likely])]
    found = next((thread for thread in candidates if thread in sampled or not sampled), None)
    if found is not None:
        return int(found)
    return _busiest(trace, process_id)


def _busiest(trace: TraceView, process_id: int) -> int | None:
    rows = seen(trace).of(process_id)
    if not rows.height:
        return None
    threads, time = rows["thread_id"].to_numpy(), rows["end_ns"].to_numpy() - rows["start_ns"].to_numpy()
    numbers, index = np.unique(threads, return_inverse=True)
    return int(numbers[np.argmax(np.bincount(index, weights=time))])
