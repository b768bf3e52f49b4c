"""Copy calls, and whether they block their caller until the copy is done: judged by behaviour, not by name.

::

    host    |launch|..............wait..............|       cudaMemcpyAsync to pageable memory
    device  #########kernel########          |copy|

The driver stages pageable memory in its own memory, so an *asynchronous* copy returns only when its data has moved:
``tensor.item()`` and ``.cpu()`` wait in such a copy. Conversely, a *synchronous* call that fills memory, or copies it
within and between devices, returns before the device has started.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from traceviz.analyses.derived.frames import correlations, end_ns, gathered, knowing, partners
from traceviz.analyses.derived.launch.join import LAUNCH_KEY
from traceviz.analyses.derived.patterns import matches
from traceviz.analyses.derived.view import TraceView, once_per_trace
from traceviz.core.arrays.matching import is_repeated

LAUNCH_AT_MOST_NS = 20_000
"""Maximum assumed launch time of a copy, since the median launch of a short trace may include loading its code."""
BLOCKS_NS = 1_000_000
"""A copy call of at least this length waits, even if its copy was not recorded: no launch takes so long."""
OUTLASTS = 4
"""A call that takes as long as this many launches takes longer than its own launch."""
MOSTLY = 0.5
"""Share of the calls of one kind that must return after their copy: a single call may be late by chance."""
_CALL = ("process_id", "thread_id", "start_ns", "end_ns")

_ALIKE = ("name", "kind", "host_memory")
_MEDIAN_LAUNCH = (pl.col("end_ns") - pl.col("start_ns")).median().alias("launch_ns")


@once_per_trace
def copy_calls(trace: TraceView) -> pl.DataFrame:
    """Return calls that copy or fill and were not captured in a graph, with their copy and their wait.

    Returns:
        The columns of :meth:`TraceView.api_calls`, names as they are stored. ``kind`` of the copy (``memset`` for a
        fill), ``host_memory`` (kind of memory on the host side), ``bytes`` and ``copy_end_ns`` are null if the copy is
        not known. From ``wait_ns`` on, the call waits until its end; null if it does not wait.
    """
    blocking = trace.api_calls("blocking_copy").with_columns(pl.lit(value=True).alias("blocks"))
    calls = trace.api_calls("async_copy").with_columns(pl.lit(value=False).alias("blocks"))
    calls = pl.concat([calls, blocking]) if blocking.height else calls  # avoids copying millions of calls
    copies = _read_copies(trace)
    row = partners(calls, copies)
    did = ("copy_end_ns", "bytes", "kind", "host_memory")
    if not copies.height:
        known = calls.with_columns(pl.lit(None, copies.schema[name]).alias(name) for name in did)
    else:
        known = calls.with_columns(gathered(copies[name], row) for name in did)
    outlasts = (calls["end_ns"] - calls["start_ns"] >= BLOCKS_NS).to_numpy()
    looked_at = np.flatnonzero((row >= 0) | calls["blocks"].to_numpy() | outlasts)  # only these can have a known wait
    if not looked_at.size:
        return known.with_columns(pl.lit(None, pl.Int64).alias("wait_ns")).drop("blocks")
    places = np.full(calls.height, -1, np.int32)
    places[looked_at] = np.arange(looked_at.size, dtype=np.int32)
    waits = _find_waits(trace, known[looked_at])
    return known.with_columns(gathered(waits, places).alias("wait_ns")).drop("blocks")


@once_per_trace
def waiting_copies(trace: TraceView) -> pl.DataFrame:
    """Return the :func:`copy_calls` that wait for their copy."""
    return knowing(copy_calls(trace), "wait_ns")


@once_per_trace
def unasked_waits(trace: TraceView) -> pl.DataFrame:
    """Return the :func:`waiting_copies` whose wait the program did not request.

    These copies are asynchronous by name, or ``...WithStream`` copies from a device, which PyTorch on ROCm
    uses to read results.
    """
    name = pl.col("name").cast(pl.String)
    reads = matches(name, "WithStream") & (pl.col("kind") == "d2h").fill_null(value=False)
    return waiting_copies(trace).filter(matches(name, "Async") | reads)


def asked_waits(trace: TraceView) -> pl.DataFrame:
    """Return the other :func:`waiting_copies`, in calls that block by name (``cudaMemcpy``)."""
    return waiting_copies(trace).join(unasked_waits(trace), on=_CALL, how="anti", nulls_equal=True)


def _find_waits(trace: TraceView, calls: pl.DataFrame) -> pl.Series:
    """Return :func:`_wait` of each of ``calls``."""
    launches = trace.api_calls("launch").group_by("process_id").agg(_MEDIAN_LAUNCH)
    launches = trace.frame("processes", "process_id").join(launches, on="process_id", how="left")
    launch_ns = pl.col("launch_ns").fill_null(LAUNCH_AT_MOST_NS).clip(upper_bound=LAUNCH_AT_MOST_NS).cast(pl.Int64)
    timed = calls.join(launches.with_columns(launch_ns), on="process_id", how="left", maintain_order="left")
    return timed.select(_wait().alias("wait_ns")).to_series()


def _wait() -> pl.Expr:
    """Return the time from which a call waits.

    A call that blocks by name waits from its start, unless it returned before a copy that does not involve the host was
    done. Other calls wait once launched if their data goes to pageable memory. So do calls that take longer than a
    launch, if they copy from pageable memory or, like most calls of their kind, return only after their copy. If the
    copy was not recorded, the length of the call shows that it waits.
    """
    kind, ends_ns, launch_ns = pl.col("kind"), pl.col("end_ns"), pl.col("launch_ns")
    returns_late = (pl.col("copy_end_ns") <= ends_ns).fill_null(value=False)
    is_pageable = (pl.col("host_memory") == "pageable").fill_null(value=False)
    outlasts = ends_ns - pl.col("start_ns") >= OUTLASTS * launch_ns
    without_host = kind.is_in(["d2d", "p2p", "memset"]).fill_null(value=False)
    by_name = pl.col("blocks") & ~(without_host & ~returns_late)
    by_memory = ~pl.col("blocks") & is_pageable & ((kind == "d2h") | outlasts)
    by_time = ~pl.col("blocks") & returns_late & outlasts & (returns_late.mean().over(_ALIKE) >= MOSTLY)
    by_length = ~pl.col("blocks") & pl.col("copy_end_ns").is_null() & (ends_ns - pl.col("start_ns") >= BLOCKS_NS)
    launched_ns = pl.min_horizontal(pl.col("start_ns") + launch_ns, ends_ns)
    return pl.when(by_name).then("start_ns").when(by_memory | by_time | by_length).then(launched_ns)


@once_per_trace
def _read_copies(trace: TraceView) -> pl.DataFrame:
    """Return calls with known copies or fills: :data:`LAUNCH_KEY`, ``kind, host_memory, bytes, copy_end_ns``."""
    times = (*LAUNCH_KEY, "start_ns", "dur_ns", "bytes")
    copies = knowing(trace.frame("memcpy", *times, "kind", "src_memory", "dst_memory"), "correlation_id")
    kind = pl.col("kind").cast(pl.String)
    host = pl.when(kind == "d2h").then("dst_memory").when(kind.is_in(["h2d", "h2h"])).then("src_memory")
    fills = knowing(trace.frame("memset", *times), "correlation_id")
    columns = (*LAUNCH_KEY, end_ns("copy_end_ns"), "bytes")
    rows = pl.concat(
        [
            copies.select(*columns, kind.alias("kind"), host.cast(pl.String).alias("host_memory")),
            fills.select(*columns, pl.lit("memset").alias("kind"), pl.lit(None, pl.String).alias("host_memory")),
        ]
    )
    if not is_repeated(correlations(rows)).any():
        return rows
    sums = (pl.col("copy_end_ns").max(), pl.col("bytes").sum(), pl.col("kind", "host_memory").first())
    return rows.group_by(LAUNCH_KEY, maintain_order=True).agg(*sums)  # a call that moved its data in pieces
