"""Calls that take long because they are the first: they create the context of a device, or load its code.

::

    host    |cudaFree(0).....context.....|cudaMalloc|launch...code...|launch|launch|
    device                                                           |kernel|kernel|kernel|

The first call that needs a device creates a context there, regardless of its purpose. The first launch of a kernel
loads its code, since drivers load lazily; the first launch of a process often loads whole libraries. Libraries
(cuBLAS, cuDNN) start with cudaFree(0), and load their code in it. The first call of an operator may load a library on
the host, and search for the fastest algorithm. None of these costs recurs.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from traceviz.analyses.derived.frames import bounds, end_ns, in_one_piece, intervals, parts_by
from traceviz.analyses.derived.launch.join import LAUNCH_KEY
from traceviz.analyses.derived.patterns import matches
from traceviz.analyses.derived.view import CALL_COLUMNS, TraceView, once_per_trace
from traceviz.core.arrays.intervals import union_all
from traceviz.trace.names.cuda_names import ApiKind

LOADS_NS = 1_000_000
"""Minimum duration of a launch that loads code."""
CREATES_NS = 10_000_000
"""Minimum duration of a call that creates a context, unless its name shows that it does."""
TIMES_MEDIAN = 10
"""Minimum duration of a first call, in median calls of its kind."""
LAUNCH_AT_MOST_NS = 100_000
"""Maximum duration of an ordinary launch, since the median of three launches may include loading code."""

FREES_NS = 100_000_000
"""From this duration on, a call that frees memory while no device works loads a library instead."""

_FREES = r"^(cuda|hip)Free$|^cuMemFree"
_CREATES = r"^(cu|hip)(Init\b|CtxCreate|DevicePrimaryCtxRetain)|^(cuda|hip)(InitDevice|SetDevice)\b"
_STARTS_DRIVER = r"^(cu|hip)Init\b"
_OF_DRIVER = r"^(cuda|cu|hip)[A-Z]"
_OF_PROFILER = r"Profiler"
_ALLOCATES: tuple[ApiKind, ...] = ("allocation", "pool_allocation")
_MAY_CREATE: tuple[ApiKind, ...] = ("other", "stream", *_ALLOCATES)
_BY_NAME = ("process_id", "name")


@once_per_trace
def first_uses(trace: TraceView) -> pl.DataFrame:
    """Return first calls of operators that take most of the time of all calls of their operator, and far longer.

    Only operators that launch kernels count, since the size of their data hardly changes their time on the host. If
    :func:`first_calls` take half of the time, they are its cause, and the operator is none.

    Returns:
        ``process_id, thread_id, name, start_ns, end_ns`` of the first call, by start, the name as text; ``later``, the
        number of later calls, and ``later_ns``, their median time.
    """
    launches = trace.api_calls("launch")
    columns = (*_BY_NAME, "thread_id", "start_ns", "dur_ns")
    calls = trace.frame("host_ops", *columns).head(0)
    if launches.height and "host_ops" in trace.tables:
        operators = trace.tables.scan("host_ops").filter(pl.col("category") == "op").select(columns)
        slow = operators.filter(pl.col("dur_ns") >= LOADS_NS).select(pl.col("name").cast(pl.String).unique())
        names = slow.collect(engine=trace.tables.engine)["name"].to_list()
        if names:
            calls = operators.filter(pl.col("name").is_in(names)).collect(engine=trace.tables.engine)
    calls = calls.sort("start_ns", "dur_ns", descending=[False, True]).with_columns(pl.col("name").cast(pl.String))
    first, later = pl.col("dur_ns").first(), pl.col("dur_ns").slice(1)
    found = calls.group_by(_BY_NAME).agg(
        pl.col("thread_id", "start_ns").first(),
        (pl.col("start_ns") + pl.col("dur_ns")).first().alias("end_ns"),
        later.len().cast(pl.Int64).alias("later"),
        later.median().cast(pl.Int64).alias("later_ns"),
        (first >= 0.5 * pl.col("dur_ns").sum()).alias("is_most"),
    )
    is_slow = pl.col("end_ns") - pl.col("start_ns") >= pl.max_horizontal(LOADS_NS, TIMES_MEDIAN * pl.col("later_ns"))
    found = found.filter((pl.col("later") > 0) & pl.col("is_most") & is_slow).drop("is_most")
    found = found.sort("start_ns", "end_ns", "name")
    starts, ends = bounds(found)
    counts = np.zeros(found.height, dtype=bool)
    slow_calls = parts_by(first_calls(trace), "thread_id") if found.height else {}
    for thread, own in parts_by(launches, "thread_id").items():
        moments = np.sort(own["start_ns"].to_numpy())
        is_launching = np.searchsorted(moments, ends) > np.searchsorted(moments, starts)
        # If one call of the device's API explains the time, it is the cause.
        in_calls = intervals(slow_calls[thread]).overlap(starts, ends) if thread in slow_calls else 0
        counts |= is_launching & (2 * in_calls < ends - starts) & (found["thread_id"] == thread).to_numpy()
    return found.filter(pl.Series(counts, dtype=pl.Boolean))


@once_per_trace
def first_calls(trace: TraceView) -> pl.DataFrame:
    """Return device API calls that take long because they are the first of a process in the capture.

    Returns:
        ``start_ns, end_ns, process_id, thread_id, correlation_id, name, row`` of :meth:`TraceView.api_calls`, by start.
        ``what`` is ``context`` for calls that create one, and ``code`` for calls that load code.
    """
    if "cuda_api" not in trace.tables:
        return _mark_as(trace.api_calls(), "context")
    columns = ("start_ns", end_ns(), "process_id", "thread_id", "correlation_id", "name", "row")
    parts, before = [], 0
    for calls in trace.pieces("cuda_api", *CALL_COLUMNS):
        rows = np.flatnonzero((calls["dur_ns"] >= LOADS_NS).fill_null(value=False).to_numpy())
        parts.append(calls[rows].with_columns(pl.Series("row", rows + before, dtype=pl.UInt32)).select(columns))
        before += calls.height
    long = in_one_piece(parts)
    contexts = _find_context_creations(trace, long)
    libraries = _find_library_loads(trace, long).join(contexts, on=("thread_id", "start_ns"), how="anti")
    found = pl.concat([contexts, libraries, _find_code_loads(trace, long)])
    return found.sort("start_ns", "end_ns", maintain_order=True)


def _find_context_creations(trace: TraceView, long: pl.DataFrame) -> pl.DataFrame:
    """Return the ``long`` calls that create contexts: by name, or as a first call that is far slower than later ones.

    Allocating and freeing memory may be slow anyway. Such a call counts only if there was no launch before it and no
    other call created the context.
    """
    text = pl.col("name").cast(pl.String)
    calls = _of_kinds(trace, long, *_MAY_CREATE).filter(matches(text, _OF_DRIVER), ~matches(text, _OF_PROFILER))
    if not calls.height:
        return _mark_as(calls, "context")
    firsts = _find_first_calls(trace, calls)
    launched = trace.api_calls("launch").group_by("process_id").agg(pl.col("start_ns").min().alias("launched_ns"))
    known = calls.join(firsts, on=_BY_NAME, how="left").join(launched, on="process_id", how="left")
    time = pl.col("end_ns") - pl.col("start_ns")
    is_slow = (time >= CREATES_NS) & (time >= TIMES_MEDIAN * pl.col("later_ns").fill_null(0))
    creates = known.filter(((pl.col("start_ns") == pl.col("first_ns")) & is_slow) | matches(text, _CREATES))
    contexts = pl.col("start_ns").filter(~matches(text, _STARTS_DRIVER))
    is_first = pl.col("start_ns") == contexts.min().over("process_id")
    is_early = is_first & (pl.col("start_ns") <= pl.col("launched_ns").fill_null(trace.span_ns))
    allocates = text.is_in([name for kind in _ALLOCATES for name in trace.api_names.get(kind, [])])
    return _mark_as(creates.filter(~allocates | is_early).select(calls.columns), "context")


def _find_library_loads(trace: TraceView, long: pl.DataFrame) -> pl.DataFrame:
    """Return the ``long`` calls that free memory and take far longer than others while no device works."""
    frees = long.filter(
        matches(pl.col("name").cast(pl.String), _FREES), pl.col("end_ns") - pl.col("start_ns") >= FREES_NS
    )
    if not frees.height:
        return _mark_as(frees, "code")
    known = frees.join(_find_first_calls(trace, frees), on=_BY_NAME, how="left")
    slow = known.filter(pl.col("end_ns") - pl.col("start_ns") >= TIMES_MEDIAN * pl.col("later_ns").fill_null(0))
    busy = union_all(trace.rank_busy.values())
    return _mark_as(
        slow.select(frees.columns).filter(pl.Series(busy.overlap(*bounds(slow)) == 0, dtype=pl.Boolean)), "code"
    )


def _find_code_loads(trace: TraceView, long: pl.DataFrame) -> pl.DataFrame:
    """Return the ``long`` launches of kernels that run for the first time and are launched quickly later.

    If the kernel is not known, use the first launch with this call name in the process.
    """
    launches = _of_kinds(trace, long, "launch")
    if not launches.height:
        return _mark_as(launches, "code")
    every = trace.api_calls("launch")
    median = (pl.col("end_ns") - pl.col("start_ns")).median().clip(upper_bound=LAUNCH_AT_MOST_NS).alias("median_ns")
    calls = launches.join(every.group_by("process_id").agg(median), on="process_id")
    calls = calls.filter(pl.col("end_ns") - pl.col("start_ns") >= TIMES_MEDIAN * pl.col("median_ns"))
    kernels = trace.frame("kernels", *LAUNCH_KEY, pl.col("start_ns").alias("begin_ns"), pl.col("name").alias("kernel"))
    of_process = ("process_id", "kernel")
    begun = kernels.group_by(of_process).agg(pl.col("begin_ns").min().alias("begun_ns"))
    slow = pl.col("start_ns").n_unique().over(of_process)
    known = calls.join(kernels, on=LAUNCH_KEY, how="left").join(begun, on=of_process, how="left")
    known = known.with_columns(slow.alias("slow")).join(_find_first_calls(trace, launches), on=_BY_NAME, how="left")
    of_kernel = (pl.col("begin_ns") == pl.col("begun_ns")) & (pl.col("slow") == 1)
    of_name = pl.col("kernel").is_null() & (pl.col("start_ns") == pl.col("first_ns"))
    found = known.filter(of_kernel.fill_null(value=False) | of_name)
    return _mark_as(found.select(launches.columns).unique(), "code")


def _mark_as(calls: pl.DataFrame, what: str) -> pl.DataFrame:
    return calls.with_columns(pl.lit(what).alias("what"))


def _of_kinds(trace: TraceView, calls: pl.DataFrame, *kinds: ApiKind) -> pl.DataFrame:
    names = [name for kind in kinds for name in trace.api_names.get(kind, [])]
    return calls.filter(pl.col("name").is_in(names)) if names else calls.head(0)


def _find_first_calls(trace: TraceView, calls: pl.DataFrame) -> pl.DataFrame:
    """Return, by process and name, ``first_ns``, the first call's start, and ``later_ns``, the others' median time."""
    names = calls["name"].unique().cast(pl.String).to_list()
    first = pl.col("start_ns").min()
    later = pl.col("dur_ns").filter(pl.col("start_ns") > first).median()
    alike = trace.tables.scan("cuda_api").filter(pl.col("name").is_in(names))
    return (
        alike.group_by(_BY_NAME)
        .agg(first.alias("first_ns"), later.alias("later_ns"))
        .collect(engine=trace.tables.engine)
    )
