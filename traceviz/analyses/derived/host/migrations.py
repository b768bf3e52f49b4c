"""Migrations of managed memory: the driver moves pages between host and device when one of them touches the other's.

::

    host     |--reads an array page by page--------------------|
    device   kernel |m|  |m| |m|  |m|  |m| |m|  |m|  |m|      a run of migrations, with the host's faults between

Each fault stops the thread that touches a page. A prefetch moves the same pages in a few large copies.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from traceviz.analyses.derived.frames import bounds, end_ns, having
from traceviz.analyses.derived.view import TraceView, once_per_trace
from traceviz.core.arrays.intervals import IntervalSet
from traceviz.core.units import format_ratio, format_value

LEAST = 100
"""Fewer migrations in a row are no run."""
APART = 4
"""Migrations belong to one run if the time between them is at most this many times its 90th percentile, or"""
NEAR_NS = 1_000_000
"""this long."""

NAME = "migrations of managed memory"
"""Name of the cause."""


FAULTS = {"nsys.page_faults.host": "host", "nsys.page_faults.device": "device"}
"""Settings with the number of page faults in managed memory that the profiler recorded."""


def describe_migrations(trace: TraceView) -> str:
    """Return a sentence about migrations in the capture: their number, bytes, directions and page faults."""
    copies = trace.frame("memcpy", pl.col("kind", "src_memory").cast(pl.String), "bytes")
    copies = copies.filter((pl.col("src_memory") == "managed") & pl.col("kind").is_in(["h2d", "d2h"]))
    if not copies.height:
        return ""
    to_host = having(copies, "kind", "d2h").height / copies.height
    settings = dict(trace.frame("settings", "key", "value").iter_rows())
    faults = [f"{int(settings[key]):,} of the {who}" for key, who in FAULTS.items() if settings.get(key)]
    seen = f" Page faults: {' and '.join(faults)}." if faults else ""
    size = format_value(int(copies["bytes"].sum()), "bytes")
    return f"There are {copies.height:,} migrations of {size}, {format_ratio(to_host)} of them to the host.{seen}"


@once_per_trace
def migration_runs(trace: TraceView) -> dict[int, IntervalSet]:
    """Return the time of runs of migrations between host and device, by process."""
    managed = pl.col("src_memory").cast(pl.String) == "managed"
    columns = ("process_id", "start_ns", "dur_ns", end_ns(), pl.col("kind").cast(pl.String))
    copies = trace.frame("memcpy", *columns, "src_memory").filter(managed & pl.col("kind").is_in(["h2d", "d2h"]))
    found = {}
    for process in copies["process_id"].unique().sort().to_list():
        starts, ends = bounds(having(copies, "process_id", process).sort("start_ns"))
        ends = np.maximum.accumulate(ends)
        pauses = np.maximum(starts[1:] - ends[:-1], 0)
        if not pauses.size:
            continue
        breaks = pauses > max(NEAR_NS, APART * int(np.percentile(pauses, 90)))
        first = np.flatnonzero(np.append(True, breaks))
        last = np.append(first[1:], starts.size) - 1
        is_run = last - first + 1 >= LEAST
        if is_run.any():
            found[int(process)] = IntervalSet.of(starts[first[is_run]], ends[last[is_run]])
    return found
