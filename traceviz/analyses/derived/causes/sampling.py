"""Samples of the leading thread's stack. They divide time that no event explains, or only a range or a wait.

A sample is taken at a moment. Time is divided among the samples whose moments lie in it. The weight of a sample is
the part of its own interval that lies in the time::

    operators      |#####|        |#########|      |####|
    samples         .     .     .     .     .     .     .
    unexplained          |---a---|           |--b--|        two samples lie in it: load, load
"""

from __future__ import annotations

import numpy as np
import polars as pl

from traceviz.analyses.derived.causes.kinds import KindKey
from traceviz.analyses.derived.frames import bounds, having
from traceviz.analyses.derived.host.classes import THREAD_CALLS
from traceviz.analyses.derived.patterns import matches
from traceviz.analyses.derived.stacks.kinds import INTERPRETER, OFF_CORE, UNKNOWN_CODE, StackKind
from traceviz.analyses.derived.stacks.sampled import main_thread, sampled_stacks
from traceviz.analyses.derived.view import TraceView, once_per_trace
from traceviz.core.arrays.intervals import Array, IntervalSet

PROGRAM_CPU = "program CPU"
"""Metric: processor time of all threads and processes of the program, in percent of a core."""
QUEUED = "program waits for a core"
"""Metric: number of the program's threads that are ready and wait for a core, in percent of one thread."""

WORKS = 50.0
"""Percentage of a core, used or waited for, from which the program counts as working."""


@once_per_trace
def find_working_time(trace: TraceView) -> IntervalSet | None:
    """Return the time in which the program uses a core, or waits for one that other programs use.

    A sample stands for the time since the previous sample.

    Returns:
        The time, or ``None`` if the program's processor time was not sampled.
    """
    samples = trace.frame("samples", "start_ns", "value", pl.col("metric").cast(pl.String)).sort("start_ns")
    used, queued = having(samples, "metric", PROGRAM_CPU), having(samples, "metric", QUEUED)
    if used.height < 2:
        return None
    times, values = used["start_ns"].to_numpy(), used["value"].to_numpy().copy()
    if queued.height:
        until = np.searchsorted(queued["start_ns"].to_numpy(), times)
        values += queued["value"].to_numpy()[np.minimum(until, queued.height - 1)]
    works = values[1:] >= WORKS
    return IntervalSet.of(times[:-1][works], times[1:][works])


ENCLOSES = 0.95
"""A line of the program around this share of the samples encloses them, and is no place."""
LEAST_SAMPLES = 10
"""With fewer samples in the judged time, none are used."""

REPLACED: frozenset[KindKey] = frozenset({"unexplained", "range"})
"""Kinds of causes that a sample replaces, since it is more specific. To other causes, it adds the line."""

_SAY_NO_MORE: frozenset[KindKey] = frozenset({"python", "wait"})
"""Kinds that are less specific about time in a system call than the call's name."""

_OF_STACK: dict[StackKind, KindKey] = {
    "input": "input",
    "saving": "saving",
    "logging": "logging",
    "import": "import",
    "compilation": "compilation",
    "collective": "host_collective",
    "device_wait": "device_wait",
    "serialization": "serialization",
    "io": "io",
    "sleep": "sleep",
    "lock": "lock",
    "gil": "gil",
    "wait": "wait",
    "compute": "library",
    "native": "native",
    "python": "python",
}
"""Kinds of causes by kind of stack."""

_WAITS: frozenset[KindKey] = frozenset({"lock", "wait"})
"""Kinds in which the thread waits for another one."""
_NO_PLACE = rf"^({OFF_CORE}|{UNKNOWN_CODE}|{INTERPRETER}|lib[^ /]+\.so\S*|vdso)$"
"""Locations in compiled code that name no function."""
_OF_CALL = ("class", "kind", "cause")
_SAID = ("did", "what", "line", "works")
TICKS = {
    "begin_ns": pl.Int64,
    "moment_ns": pl.Int64,
    **dict.fromkeys(("did", "what", "line"), pl.String),
    "works": pl.Boolean,
}
"""Columns of :func:`find_ticks`."""


@once_per_trace
def find_ticks(trace: TraceView, process_id: int) -> pl.DataFrame:
    """Return samples of the main thread of a process, one row each, by time.

    Returns:
        ``begin_ns`` and ``moment_ns``: the end of the sample before it, and the time it was taken. ``did``: the kind of
        cause, null if the thread ran on no core and nothing shows why. ``what``: the name of the compiled function that
        ran, else the line. ``line``: the line of the program.
        ``works``: true if the program used a core then, or wanted one; null if that was not sampled.
    """
    if not trace.tables.rows("stacks"):  # if functions were recorded, finding their thread takes long
        return pl.DataFrame(schema=TICKS)
    thread = main_thread(trace, process_id)
    if thread is None:
        return pl.DataFrame(schema=TICKS)
    rows = sampled_stacks(trace).filter((pl.col("process_id") == process_id) & (pl.col("thread_id") == thread))
    rows = rows.filter((pl.col("samples") > 0) & (pl.col("end_ns") > pl.col("start_ns")))
    of_row = np.repeat(np.arange(rows.height), rows["samples"].to_numpy())
    number = np.arange(of_row.size) - np.searchsorted(of_row, of_row)
    start, length = rows["start_ns"].to_numpy()[of_row], (rows["end_ns"] - rows["start_ns"]).to_numpy()[of_row]
    count = rows["samples"].to_numpy()[of_row]
    begin, end = start + length * number // count, start + length * (number + 1) // count
    # Without a device, a device wait counts as computation
    kinds = _OF_STACK if process_id in trace.rank_busy else {**_OF_STACK, "device_wait": "library"}
    said = rows.select(
        # That a thread runs on no core does not explain what it waits for
        pl.when(pl.col("leaf") != OFF_CORE).then(pl.col("kind").replace_strict(kinds, default="python")).alias("did"),
        _name_of_code(_find_enclosing_line(rows, trace.rank_extents.get(process_id))),
        pl.when(~pl.col("location").str.contains(_NO_PLACE)).then(pl.col("location")).alias("line"),
    )
    times = pl.DataFrame({"begin_ns": begin, "moment_ns": end - 1})
    known = find_working_time(trace)
    works = pl.lit(None, pl.Boolean) if known is None else pl.Series(known.contains(end - 1), dtype=pl.Boolean)
    times = times.with_columns(works.alias("works"))
    found = pl.concat([times, said.select(pl.all().gather(pl.Series(of_row)))], how="horizontal").sort("moment_ns")
    return _with_work_of_others(trace, process_id, thread, found).select(*TICKS)


def _with_work_of_others(trace: TraceView, process_id: int, thread: int, samples: pl.DataFrame) -> pl.DataFrame:
    """Return ``samples`` of a thread in which another thread's computation replaces the wait for it.

    ::

        main     |--- future.result: lock ---|
        worker      |-- conv2d: computes -|            the time counts as the worker's

    If several threads compute, the thread with the longest total computation counts.
    """
    of_others = (pl.col("process_id") == process_id) & (pl.col("thread_id") != thread) & (pl.col("kind") == "compute")
    work = sampled_stacks(trace).filter(of_others & (pl.col("samples") > 0))
    waits = np.flatnonzero(samples["did"].is_in(list(_WAITS)).to_numpy())
    if not work.height or not waits.size:
        return samples
    lasts = (pl.col("end_ns") - pl.col("start_ns")).sum().alias("lasts")
    threads = work.group_by("thread_id").agg(lasts).sort("lasts", "thread_id", descending=[True, False])["thread_id"]
    moments, worker = samples["moment_ns"].to_numpy()[waits], np.full(waits.size, -1)
    rows = work.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias("row"))
    for number in threads.to_list():
        own = having(rows, "thread_id", number)
        worker = np.where(worker < 0, owners_at(*bounds(own), own["row"].to_numpy(), moments), worker)
    row = np.full(samples.height, -1)
    row[waits] = worker
    index = pl.Series(row).set(pl.Series(row < 0), None)
    said = work.select(_name_of_code(), pl.col("location").alias("line"))
    does = pl.DataFrame({name: said[name].gather(index) for name in said.columns})
    is_work = pl.Series(row >= 0)
    return samples.with_columns(
        pl.when(is_work).then(pl.lit("library")).otherwise("did").alias("did"),
        pl.when(is_work).then(does["what"]).otherwise("what").alias("what"),
        pl.when(is_work).then(does["line"]).otherwise("line").alias("line"),
    )


def _find_enclosing_line(rows: pl.DataFrame, extent: tuple[int, int] | None) -> str:
    """Return the line of the program around nearly all samples from first to last device work; empty if none is."""
    if extent is None:
        return ""
    inside = pl.Series(IntervalSet.span(*extent).overlap(*bounds(rows)))
    times = rows.select("location", inside.alias("time")).group_by("location").agg(pl.col("time").sum())
    nearly_all = times.filter((pl.col("time") > 0) & (pl.col("time") >= ENCLOSES * pl.col("time").sum()))
    return str(nearly_all["location"][0]) if nearly_all.height else ""


def _name_of_code(enclosing: str = "") -> pl.Expr:
    """Return the name of the compiled function that ran, else the line; of a wait, the function that waits.

    A line of the program that encloses all, ``engine.run()``, does not distinguish: then it is the library's function.

    The line that waits is in its location: *get (queue.py) in main (serve.py:12)* is no lock.
    """
    is_called = ~pl.col("leaf").str.contains(r"[^:]:\d| ") | ((pl.col("kind") == "lock") & (pl.col("leaf") != OFF_CORE))
    is_called |= pl.col("location") == enclosing
    return pl.when(is_called).then("leaf").otherwise(pl.col("location")).alias("what")


def find_ticks_within(trace: TraceView, process_id: int, within: IntervalSet) -> pl.DataFrame:
    """Return the :func:`find_ticks` taken in a part of the run; none if there are too few to be reliable."""
    rows = find_ticks(trace, process_id)
    rows = rows.filter(pl.Series(within.contains(rows["moment_ns"].to_numpy()), dtype=pl.Boolean))
    return rows if rows.height >= LEAST_SAMPLES else rows.clear()


def divide_among_samples(causes: pl.DataFrame, samples: pl.DataFrame, keys: tuple[str, ...]) -> pl.DataFrame:
    """Return ``causes`` with their time divided among the samples taken in it; sums do not change.

    Args:
        causes: ``class, kind, cause``, places, ``time_ns, calls``, one row for each combination of ``keys``.
        samples: ``keys`` of the cause of each sample, ``did, what, line, works``, and ``weight``: the part of its
            interval that lies in the cause's time.
        keys: Columns that distinguish causes.
    """
    if not samples.height:
        return causes
    # A numeric library may wait for its own threads, which compute. That counts as computation unless the program uses
    # no processor at the time: then only the wait is known.
    computes = matches(pl.col("cause"), THREAD_CALLS) & pl.col("works").fill_null(value=True)
    is_specific = ~pl.col("did").is_in(list(_SAY_NO_MORE))
    says_more = pl.when(pl.col("did") == "library").then(computes).otherwise(is_specific)
    replaced = pl.col("kind").is_in(list(REPLACED)) | ((pl.col("kind") == "os_call") & says_more)
    seen = samples.group_by(*keys, *_SAID).agg(pl.col("weight").sum())
    seen = seen.filter(pl.col("weight") > 0).sort("weight", *_SAID, descending=[True, *[False] * len(_SAID)])
    joined = _join_samples(causes.with_row_index("row"), seen, keys)
    # Waits are short and steps many: waits of a step without samples are divided by the samples of other steps
    alone = (pl.col("kind") == "os_call") & pl.col("weight").is_null()
    others = seen.group_by(*_OF_CALL, *_SAID, maintain_order=True).agg(pl.col("weight").sum())
    lent = _join_samples(joined.filter(alone).drop(*_SAID, "weight"), others, _OF_CALL)
    joined = pl.concat([joined.filter(~alone), lent]).sort("row", maintain_order=True)
    share = pl.col("weight").cum_sum().over("row") / pl.col("weight").sum().over("row")
    until = (pl.col("time_ns") * share).round(0).cast(pl.Int64)
    known = pl.col("weight").is_not_null()
    replaced &= pl.col("did").is_not_null()
    time = pl.when(known).then(until - until.shift(1).over("row").fill_null(0)).otherwise("time_ns")
    first = pl.int_range(pl.len()).over("row") == 0
    return joined.with_columns(
        time.alias("time_ns"),
        pl.when(first).then("calls").otherwise(0).alias("calls"),
        pl.when(known & replaced).then("did").otherwise("kind").alias("kind"),
        pl.when(known & replaced).then("what").otherwise("cause").alias("cause"),
        pl.coalesce(pl.when(known & replaced).then("line"), "location", "line").alias("location"),
    ).select(causes.columns)


def _join_samples(causes: pl.DataFrame, seen: pl.DataFrame, keys: tuple[str, ...]) -> pl.DataFrame:
    """Join each cause to all samples of it; null if there are none."""
    return causes.join(seen, on=keys, how="left", maintain_order="left_right", nulls_equal=True)


def owners_at(starts: Array, ends: Array, owner: Array, moments: Array) -> Array:
    """Return the owner of the interval in which each moment lies, or -1. Intervals are disjoint."""
    if not starts.size:
        return np.full(moments.size, -1)
    order = np.argsort(starts, kind="stable")
    place = np.searchsorted(starts[order], moments, side="right") - 1
    row = order[np.maximum(place, 0)]
    return np.where((place >= 0) & (moments < ends[row]), owner[row], -1)
