"""Start and end of the program within a capture, without the profiler's own start and stop.

::

    capture    |---------------------------------------------|
    profiler   |===start_trace===|            |==stop_trace==|
    program                      |------------|

Only overhead at an edge of the capture is excluded. Overhead in its middle interrupts the program.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from traceviz.analyses.derived.frames import bounds, end_ns, intervals, knowing, unions_by
from traceviz.core.arrays.intervals import Array, IntervalSet
from traceviz.trace import schema
from traceviz.trace.tables import TraceTables

_ON_THREADS = ("cuda_api", "nvtx", "host_ops", "steps")
_EVENTS = (*schema.DEVICE_WORK, *_ON_THREADS)
"""Tables whose rows show that the program runs. Operating-system calls do not: idle threads wait in them."""
_NO_WORK = ("python", "runtime")
"""Host operations that do not show it: frames around the profiler's own call, and idle thread pools."""


def without_edges(tables: TraceTables, begin: int, end: int) -> tuple[int, int]:
    """Return ``begin`` and ``end`` of a capture in ns, moved past the profiler's overhead at these edges.

    Overhead is at an edge if it is at least as long as the time between them. It is excluded up to the first event of
    the program, and from the last one on. Events within a profiler call, on its thread, belong to the profiler.
    """
    if "overhead" not in tables:
        return begin, end
    overhead = tables.select("overhead", "start_ns", end_ns(), "thread_id")
    taken = intervals(overhead).clip(begin, end)
    first, last = begin, end
    if len(taken) and taken.starts[0] - begin <= taken.durations[0]:
        first = int(taken.ends[0])
    if len(taken) and end - taken.ends[-1] <= taken.durations[-1]:
        last = int(taken.starts[-1])
    if (first, last) == (begin, end):
        return begin, end
    calls = knowing(overhead, "thread_id")
    profiler = unions_by(calls, "thread_id") if calls.height else {}
    for name in (name for name in _EVENTS if name in tables):
        starts, ends = _program(tables, name, profiler, first, last)
        first = min([first, *np.maximum(starts[ends > begin], begin).tolist()])
        last = max([last, *np.minimum(ends[starts < end], end).tolist()])
    return (first, last) if first < last else (begin, end)


def without_unsampled(tables: TraceTables, begin: int, end: int) -> tuple[int, int]:
    """Return ``begin`` and ``end`` in ns of a capture that has only stack samples, limited to the sampled time.

    ::

        process   |-----------------------------|
        samples   |. . . . . . .|                      the captured time, if nothing else was recorded
    """
    if "phases" not in tables or any(tables.rows(name) for name in _EVENTS if name in tables):
        return begin, end
    kind, name = (pl.col(column).cast(pl.String) for column in ("kind", "name"))
    phases = tables.select("phases", "process_id", "start_ns", kind.alias("kind"), name.alias("name"))
    programs = phases.filter((pl.col("kind") == "program") & (pl.col("name") == "program"))["process_id"]
    until = phases.filter(pl.col("kind") == "unsampled").group_by("process_id").agg(pl.col("start_ns").min())
    until = until.filter(pl.col("process_id").is_in(programs.implode()))
    if not until.height or until.height < programs.n_unique():
        return begin, end
    return begin, min(end, max(begin, int(until["start_ns"].max())))  # type: ignore[arg-type]


def _program(
    tables: TraceTables, name: str, profiler: dict[int, IntervalSet], first: int, last: int
) -> tuple[Array, Array]:
    """Return starts and ends of the program's events that start before ``first`` or end after ``last``."""
    events = tables.scan(name)
    if name == "host_ops":
        events = events.filter(~pl.col("category").cast(pl.String).is_in(_NO_WORK))
    thread = ("thread_id",) if name in _ON_THREADS else ()
    outside = (pl.col("start_ns") < first) | (pl.col("end_ns") > last)
    frame = events.select("start_ns", end_ns(), *thread).filter(outside).collect(engine=tables.engine)
    starts, ends = bounds(frame)
    own = np.zeros(starts.size, dtype=bool)
    for number, calls in profiler.items() if thread else ():
        within = calls.contains(starts) & (calls.overlap(starts, ends) == ends - starts)
        own |= within & (frame["thread_id"] == number).fill_null(value=False).to_numpy()
    return starts[~own], ends[~own]
