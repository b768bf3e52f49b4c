"""Host operations selected by their distinct names (a few names filter millions of rows), and their likely thread."""

from __future__ import annotations

import numpy as np
import polars as pl

from traceviz.analyses.derived.frames import codes, gathered
from traceviz.analyses.derived.grouped import counted
from traceviz.analyses.derived.patterns import matches
from traceviz.analyses.derived.view import HOST_OPS_VIEW, TraceView, once_per_trace
from traceviz.core.arrays.matching import Pairs, first_rows
from traceviz.core.arrays.nested import alike

_COLUMNS = ("start_ns", "dur_ns", "process_id", "thread_id", "op_id", "name", "category")


def calls_named(trace: TraceView, names: pl.DataFrame) -> pl.DataFrame:
    """Return the host operations with these names, by start.

    Args:
        trace: The trace.
        names: Rows of :attr:`TraceView.host_names`; further columns are passed on.

    Returns:
        ``start_ns, dur_ns, process_id, thread_id, op_id, name, category``, and the further columns of ``names``. Names
        are text, and unknown durations are 0.
    """
    named = names["name"].unique().to_list()
    if "host_ops" in trace.tables:
        found = trace.tables.scan("host_ops").filter(pl.col("name").is_in(named)).select(_COLUMNS)
        rows = found.collect(engine=trace.tables.engine)
    else:
        rows = trace.frame("host_ops", *_COLUMNS)
    known = _with_names(rows.with_columns(pl.col("dur_ns").fill_null(0)), names)
    starts, ids = known["start_ns"].to_numpy(), known["op_id"].to_numpy()
    follows = (starts[1:] > starts[:-1]) | ((starts[1:] == starts[:-1]) & (ids[1:] >= ids[:-1]))
    return known if follows.all() else known.sort("start_ns", "op_id")


def _with_names(rows: pl.DataFrame, names: pl.DataFrame) -> pl.DataFrame:
    """Return the ``rows`` whose name and category are in ``names``, as text. Each distinct pair is looked up once."""
    group, first = alike(codes(rows["name"]), codes(rows["category"]))
    distinct = rows.select(pl.col("name", "category").gather(first)).select(pl.all().cast(pl.String))
    known = distinct.with_row_index("group").join(names, on=["name", "category"])
    place = np.full(distinct.height, -1, np.int32)
    place[known["group"].to_numpy()] = np.arange(known.height, dtype=np.int32)
    of_row = place[group]
    if (of_row < 0).any():
        rows, of_row = rows.filter(pl.Series(of_row >= 0)), of_row[of_row >= 0]
    return rows.drop("name", "category").hstack(known.drop("group").select(pl.all().gather(of_row)))


def annotated_calls(trace: TraceView, pattern: str) -> pl.DataFrame:
    """Return the host operations that last and whose name matches ``pattern``: rows of :meth:`TraceView.host_ops`.

    Names are text, and ``parent_id`` is included. Python frames and tf.data stages do not count as annotations.
    """
    if not trace.host_names.height:
        return _no_annotations(trace)
    known = trace.host_names.filter(~pl.col("category").is_in(["python", "pipeline"]))
    names = known.filter(pl.col("name").str.contains(pattern))["name"].unique().to_list()
    if not names:
        return _no_annotations(trace)
    scan = trace.tables.scan("host_ops").filter(pl.col("name").is_in(names) & (pl.col("dur_ns") > 0))
    rows = scan.select(*HOST_OPS_VIEW, "parent_id").collect(engine=trace.tables.engine)
    return rows.with_columns(pl.col("name", "category").cast(pl.String)).sort("start_ns", "op_id")


@once_per_trace
def _no_annotations(trace: TraceView) -> pl.DataFrame:
    texts, parent = pl.col("name", "category").cast(pl.String), pl.lit(None, pl.Int64).alias("parent_id")
    return trace.host_ops().with_columns(texts, parent)


def argument(trace: TraceView, key: str, value: str) -> pl.DataFrame:
    """Return ``op_id`` and the ``value`` column (``integer``, ``real`` or ``text``) of the arguments named ``key``."""
    if "op_args" not in trace.tables:
        return trace.frame("op_args", "op_id", value)
    rows = trace.tables.scan("op_args").filter(pl.col("key") == key).select("op_id", value)
    return rows.collect(engine=trace.tables.engine)


def values_of(ids: pl.Series, recorded: pl.DataFrame) -> pl.Series:
    """Return the values that :func:`argument` gives for the operations ``ids``, or null if nothing was recorded."""
    sought, among = (Pairs(np.zeros(len(some), np.int8), some.to_numpy()) for some in (ids, recorded["op_id"]))
    return gathered(recorded.to_series(1), first_rows(sought, among))


_EVENTS = ("nvtx", "cuda_api", "os_calls", "host_ops")
_PYTHON_THREAD = r"(?i)^(python|ipykernel|jupyter|main)"
_WORKER_THREAD = r"(?i)^(tf_|tsl|xla|pjrt|eigen|grpc|jax)|pool|worker"


@once_per_trace
def likely_threads(trace: TraceView) -> dict[int, int]:
    """Return the likeliest training thread of each process that has host events, by ``process_id``.

    Choose the process's first thread (tid = pid), else a thread named like Python's, else a thread not named like a
    framework worker. Among several, choose the thread with the most host events.
    """
    events = [counted(trace.frame(name, "thread_id")["thread_id"]) for name in _EVENTS if trace.tables.rows(name)]
    if not events:
        return {}
    counts = pl.concat(events)
    active = counts.group_by("thread_id").agg(pl.col("len").sum())
    threads = active.join(trace.frame("threads", "thread_id", "process_id", "tid", "name"), on="thread_id")
    threads = threads.join(trace.frame("processes", "process_id", "pid"), on="process_id").with_columns(
        (pl.col("tid") == pl.col("pid")).fill_null(value=False).alias("first"),
        matches(pl.col("name"), _PYTHON_THREAD).fill_null(value=False).alias("python"),
        matches(pl.col("name"), _WORKER_THREAD).fill_null(value=False).alias("worker"),
    )
    descending = [True, True, False, True, False]
    ranked = threads.sort("first", "python", "worker", "len", "thread_id", descending=descending)
    best = ranked.unique("process_id", keep="first", maintain_order=True)[["process_id", "thread_id"]]
    return dict(best.iter_rows())
