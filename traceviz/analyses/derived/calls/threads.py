"""The thread of a process that most likely runs the training loop, before its steps are known."""

from __future__ import annotations

import polars as pl

from traceviz.analyses.derived.grouped import counted
from traceviz.analyses.derived.patterns import matches
from traceviz.analyses.derived.view import TraceView, once_per_trace

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
