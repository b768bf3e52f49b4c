"""Facts that the names of the driver's functions do not show: copies that wait without need, and first calls."""

from __future__ import annotations

import polars as pl

from traceviz.analyses.derived.host.copy_calls import copy_calls, unasked_waits
from traceviz.analyses.derived.launch.first import first_calls
from traceviz.analyses.derived.view import TraceView
from traceviz.core.units import counted, format_ns

_NAME = pl.col("name").cast(pl.String)
_DO = {"context": "to create the context of a device", "code": "to load device code"}


def remarks(trace: TraceView, least_ns: float) -> tuple[str, ...]:
    """Return a sentence for each function with ``least_ns`` of copies that wait, or of first calls."""
    time = (pl.col("end_ns") - pl.col("start_ns")).sum().alias("time")
    sums = first_calls(trace).group_by(_NAME, "what").agg(pl.len().alias("calls"), time)
    rows = sums.filter(pl.col("time") >= max(least_ns, 1)).sort("time", "name", descending=True)
    of_first_calls = [
        f"{counted(calls, 'call')} of {name} took {format_ns(ns)} {_DO[what]}, which comes once."
        for name, what, calls, ns in rows[["name", "what", "calls", "time"]].iter_rows()
    ]
    return (*_of_copies(trace, least_ns), *of_first_calls)


def _of_copies(trace: TraceView, least_ns: float) -> list[str]:
    if not unasked_waits(trace).height:
        return []
    every = copy_calls(trace).group_by(_NAME).agg(pl.len().alias("every"))
    time = (pl.col("end_ns") - pl.col("wait_ns")).sum().alias("time")
    waits = unasked_waits(trace).group_by(_NAME).agg(pl.len().alias("calls"), time)
    rows = waits.filter(pl.col("time") >= max(least_ns, 1)).join(every, on="name").sort("time", "name", descending=True)
    return [
        f"{calls:,} of {of:,} calls of {name} wait until their copy is done, {format_ns(ns)} in all."
        for name, calls, ns, of in rows[["name", "calls", "time", "every"]].iter_rows()
    ]
