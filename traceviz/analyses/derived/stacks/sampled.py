"""Activity of each thread over time, as uniform rows: stack samples, else Python functions that were recorded.

A sample stands for the time since the previous sample, so a thread's rows have no gaps while it lives. Functions that a
profiler recorded have exact times, and no samples::

    samples    .   .   .   .   .   .
    rows       |---- load ----|-wait-|      consecutive equal samples form one row
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from traceviz.analyses.derived.calls.call_tree import CallTree, innermost
from traceviz.analyses.derived.calls.host_calls import likely_threads
from traceviz.analyses.derived.frames import bounds, end_ns, having
from traceviz.analyses.derived.patterns import matches
from traceviz.analyses.derived.stacks.kinds import activity_seen
from traceviz.analyses.derived.stacks.recorded import function_meanings, function_names
from traceviz.analyses.derived.stacks.trees import stack_meanings
from traceviz.analyses.derived.view import TraceView, once_per_trace
from traceviz.core.arrays.intervals import Array, IntervalSet
from traceviz.core.arrays.nested import Codes, alike

MAIN_THREAD = r"(?i)^main_?thread$"
"""Name that Python gives to the thread that runs a program's main code."""

SAMPLED: dict[str, pl.DataType | type[pl.DataType]] = {
    "process_id": pl.Int32,
    "thread_id": pl.Int32,
    **dict.fromkeys(("start_ns", "end_ns", "samples", "cpu_ns", "stack_id"), pl.Int64),
    **dict.fromkeys(("kind", "activity", "location", "function", "leaf"), pl.String),
    "inside": pl.Boolean,
}
"""Columns of :func:`sampled_stacks`."""
TEXTS = ("kind", "activity", "inside", "location", "function", "leaf")
_KEYS = (*TEXTS, "process_id", "thread_id")


@dataclass(frozen=True, slots=True, eq=False)
class Recorded:
    """Functions that a profiler recorded, each for the time in which it was the innermost of its thread.

    That is its time without the calls directly in it, so no row is needed for each interval::

        f    |-------------------|
        g        |----|    |--|          f: its time, minus that of both calls of g

    Args:
        starts: Start of each call in nanoseconds.
        ends: End of each call.
        meaning: Row of :attr:`Seen.meanings` for each call (int32).
        around: The same for the call around each call, or -1.
    """

    starts: Array
    ends: Array
    meaning: Codes
    around: Codes

    def times(self, within: IntervalSet, meanings: int) -> Array:
        """Return the time within a part of the run, by meaning."""
        total, inner = np.zeros(meanings, np.int64), np.zeros(meanings, np.int64)
        within.add_overlap(self.starts, self.ends, self.meaning, total)
        within.add_overlap(self.starts, self.ends, self.around, inner)
        return total - inner


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """Activity of every thread throughout the run, as sums; :func:`seen_rows` has the times.

    Args:
        meanings: Meanings of rows: columns :data:`TEXTS`, ``process_id`` and ``thread_id``.
        threads: ``process_id, thread_id, start_ns, end_ns, time_ns`` by thread: its first and last evidence, and its
            total time.
        recorded: Functions that a profiler recorded; ``None`` if stacks were sampled.
    """

    meanings: pl.DataFrame
    threads: pl.DataFrame
    recorded: Recorded | None

    @property
    def is_sampled(self) -> bool:
        """True if stacks were sampled."""
        return self.recorded is None


@once_per_trace
def seen(trace: TraceView) -> Seen:
    """Return each thread's activity: stack samples, else recorded Python functions; empty if there are neither."""
    if trace.tables.rows("stacks"):
        rows, meanings = _read_samples(trace)
        length = (pl.col("end_ns") - pl.col("start_ns")).sum().alias("time_ns")
        threads = rows.group_by(_OF_THREAD).agg(pl.col("start_ns").min(), pl.col("end_ns").max(), length)
        return Seen(meanings, threads.sort("thread_id"), None)
    if not having(trace.host_names, "category", "python").height:
        nothing = pl.DataFrame(schema=SAMPLED).with_columns(pl.lit(None, pl.Int64).alias("time_ns"))
        return Seen(nothing.select(_KEYS), nothing.select(*_OF_THREAD, "start_ns", "end_ns", "time_ns"), None)
    return _read_functions(trace)


@once_per_trace
def seen_rows(trace: TraceView) -> pl.DataFrame:
    """Return every thread's activity, by start.

    Returns:
        ``process_id, thread_id, start_ns, end_ns, samples, cpu_ns, stack_id``, and ``meaning``: the row of
        :attr:`Seen.meanings`. ``samples``, ``cpu_ns`` and ``stack_id`` are null for functions that a profiler recorded.
    """
    if trace.tables.rows("stacks"):
        return _read_samples(trace)[0]
    recorded = seen(trace).recorded
    if recorded is None:
        return pl.DataFrame(schema={**SAMPLED, "meaning": pl.Int32}).select(*_NUMBERS, "meaning")
    tree = recorded_calls(trace)
    segments = innermost(tree)
    owners = tree.calls.select(*_OF_THREAD, pl.Series("meaning", recorded.meaning))
    owners = owners.select(pl.all().gather(pl.Series(segments.owner)))
    rows = owners.with_columns(pl.Series("start_ns", segments.starts), pl.Series("end_ns", segments.ends))
    if np.any(segments.starts[1:] < segments.starts[:-1]):  # segments of several threads are concatenated
        rows = rows[np.argsort(segments.starts, kind="stable")]
    unknown = (pl.lit(None, SAMPLED[name]).alias(name) for name in _NUMBERS if name not in rows.columns)
    return rows.with_columns(unknown).select(*_NUMBERS, "meaning")


@once_per_trace
def sampled_stacks(trace: TraceView) -> pl.DataFrame:
    """Return every thread's activity throughout the run, by start.

    Returns:
        Columns :data:`SAMPLED`. ``kind`` is a key of :data:`~traceviz.analyses.derived.stacks.kinds.KINDS`: the purpose
        of the time if the stack shows it, else the ``activity`` of its innermost frame. ``location`` is the innermost
        frame of the program itself (``train.py:41 decode_jpeg``), ``function`` the same without its line, ``leaf`` the
        innermost frame. ``inside`` is true if the location itself serves the purpose, and false if it only calls code
        that does. ``samples`` and ``stack_id`` are null for recorded functions: there are millions, so :func:`seen`
        stores their texts only once. Empty if neither was recorded.
    """
    return with_meanings(trace, seen_rows(trace)).select(pl.col(name).cast(dtype) for name, dtype in SAMPLED.items())


def with_meanings(trace: TraceView, rows: pl.DataFrame) -> pl.DataFrame:
    """Add their meanings to ``rows`` of :func:`seen_rows`."""
    texts = seen(trace).meanings.select(TEXTS)
    return pl.concat([rows, texts.select(pl.all().gather(rows["meaning"]))], how="horizontal")


@once_per_trace
def _read_samples(trace: TraceView) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return :func:`seen_rows` and :attr:`Seen.meanings` of samples."""
    columns = (*_OF_THREAD, "start_ns", end_ns(), "samples", "cpu_ns", "stack_id")
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
    ranks = pl.col("stack_id", "kind", "activity", *_OF_THREAD).rank("dense").cast(pl.Int32).fill_null(-1)
    meaning, first = alike(*(column.to_numpy() for column in ordered.select(ranks)))
    numbers = ordered.select(*_NUMBERS, pl.Series("meaning", meaning, pl.Int32))
    return numbers, ordered.select(_KEYS).select(pl.all().gather(first))


def _read_functions(trace: TraceView) -> Seen:
    tree = recorded_calls(trace)
    texts, meanings = function_meanings(tree, *recorded_names(trace))
    threads = tree.calls.select(_OF_THREAD)
    meaning, first = alike(texts, threads["thread_id"].cast(pl.Int32).to_numpy())
    meanings = meanings.select(pl.all().gather(texts[first])).hstack(threads.select(pl.all().gather(first)))
    around = np.where(tree.parent >= 0, meaning[tree.parent], np.int32(-1)).astype(np.int32)
    recorded = Recorded(tree.starts, tree.ends, meaning, around)
    if not tree.nests:
        segments = innermost(tree)
        alone = np.full(segments.owner.size, -1, np.int32)
        recorded = Recorded(segments.starts, segments.ends, meaning[segments.owner], alone)
    times = meanings.select(_OF_THREAD).with_columns(pl.Series("time_ns", recorded.times(_ALWAYS, meanings.height)))
    outer = tree.depth == 0  # the outermost calls of each thread show its extent
    spans = tree.calls[["thread_id"]].filter(pl.Series(outer))
    spans = spans.with_columns(pl.Series("start_ns", tree.starts[outer]), pl.Series("end_ns", tree.ends[outer]))
    extents = spans.group_by("thread_id").agg(pl.col("start_ns").min(), pl.col("end_ns").max())
    known = times.group_by(_OF_THREAD).agg(pl.col("time_ns").sum()).join(extents, on="thread_id").sort("thread_id")
    return Seen(meanings, known.select(*_OF_THREAD, "start_ns", "end_ns", "time_ns"), recorded)


@once_per_trace
def recorded_calls(trace: TraceView) -> CallTree:
    """Return recorded calls of Python functions with a duration, as a tree with ``name``, process and thread."""
    texts = (*_OF_THREAD, "name")
    lasting = trace.tables.scan("host_ops").filter((pl.col("category") == "python") & (pl.col("dur_ns") > 0))
    return CallTree.of(lasting.select("start_ns", end_ns(), "op_id", *texts).collect(), texts)


@once_per_trace
def recorded_names(trace: TraceView) -> tuple[Codes, pl.DataFrame]:
    """Return, for each of :func:`recorded_calls`, the row of its name, and the names as frames: ``name, file, ...``."""
    return function_names(recorded_calls(trace))


_OF_THREAD = ("process_id", "thread_id")
_NUMBERS = (*_OF_THREAD, "start_ns", "end_ns", "samples", "cpu_ns", "stack_id")
_ALWAYS = IntervalSet.span(-(1 << 62), 1 << 62)


def time_by_stack(trace: TraceView, within: IntervalSet, process_id: int, thread_id: int | None = None) -> pl.DataFrame:
    """Return the activity of a process's threads in a part of the run, the largest first.

    Args:
        trace: The trace.
        within: The part of the run.
        process_id: The process.
        thread_id: One of its threads. If omitted, all of them, and their times add up.

    Returns:
        ``kind, activity, inside, location, function, leaf, process_id, thread_id, time_ns, samples, cpu_ns``: the time
        within the part, and each row's proportional samples and processor time (``samples`` is a float, null if nothing
        was sampled).
    """
    sums = time_by_meaning(trace, within)
    sums = having(sums, "process_id", process_id)
    if thread_id is not None:
        sums = having(sums, "thread_id", thread_id)
    found = sums.group_by(_KEYS).agg(*_SUMS)
    return found.sort("time_ns", *_KEYS, descending=[True, *[False] * len(_KEYS)])


def time_by_meaning(trace: TraceView, within: IntervalSet) -> pl.DataFrame:
    """Return all threads' activity in a part of the run: rows as in :func:`time_by_stack`, and ``meaning``."""
    found = seen(trace)
    if found.recorded is None:
        rows = seen_rows(trace)
        time = pl.Series("time_ns", within.overlap(*bounds(rows)), pl.Int64)
        owned = rows.with_columns(time).filter(pl.col("time_ns") > 0)
        part = pl.col("time_ns") / (pl.col("end_ns") - pl.col("start_ns"))
        sums = owned.with_columns(pl.col("samples") * part, pl.col("cpu_ns") * part).group_by("meaning").agg(*_SUMS)
    else:
        times = pl.Series("time_ns", found.recorded.times(within, found.meanings.height))
        nothing = (pl.lit(None, pl.Float64).alias(name) for name in _PARTS)
        sums = pl.DataFrame([times]).with_row_index("meaning").with_columns(pl.col("meaning").cast(pl.Int32), *nothing)
        sums = sums.filter(pl.col("time_ns") > 0)
    return pl.concat([found.meanings.select(pl.all().gather(sums["meaning"])), sums], how="horizontal")


_PARTS = ("samples", "cpu_ns")
_SUMS = (
    pl.col("time_ns").sum(),
    *(pl.when(pl.col(name).count() > 0).then(pl.col(name).sum()).alias(name) for name in _PARTS),
)


@once_per_trace
def main_thread(trace: TraceView, process_id: int) -> int | None:
    """Return the thread that runs the program's main code; ``None`` for a process without known threads.

    The order of preference: the thread whose steps the hooks count, the thread that Python names its main thread, the
    process's first thread, the likeliest training thread, and the thread with the most time.
    """
    own = pl.col("process_id") == process_id
    steps = trace.frame("phases", "process_id", "thread_id", pl.col("kind").cast(pl.String))
    counted = steps.filter(own & (pl.col("kind") == "step"))["thread_id"].drop_nulls().value_counts()
    if counted.height:
        return int(counted.sort("count", "thread_id", descending=[True, False])["thread_id"][0])
    threads = trace.frame("threads", "process_id", "thread_id", "tid", pl.col("name").cast(pl.String)).filter(own)
    pids = trace.frame("processes", "process_id", "pid").filter(own)["pid"]
    sampled = set(seen(trace).threads.filter(own)["thread_id"].to_list())
    named = threads.filter(matches(pl.col("name"), MAIN_THREAD).fill_null(value=False))
    first = threads.filter(pl.col("tid").is_in(pids.implode()).fill_null(value=False))
    likely = likely_threads(trace).get(process_id)
    candidates = [*named["thread_id"], *first["thread_id"], *([] if likely is None else [likely])]
    found = next((thread for thread in candidates if thread in sampled or not sampled), None)
    if found is not None:
        return int(found)
    busiest = seen(trace).threads.filter(own).sort("time_ns", "thread_id", descending=[True, False])
    return int(busiest["thread_id"][0]) if busiest.height else None
