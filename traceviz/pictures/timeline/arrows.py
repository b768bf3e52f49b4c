"""Arrows from calls to the device work that they launched."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from traceviz.analyses.derived.frames import correlations, taken
from traceviz.analyses.derived.view import TraceView
from traceviz.core.arrays.matching import first_rows
from traceviz.report.pictures.timeline import Array, Arrows
from traceviz.trace import schema

CALLERS = ("cuda_api", "host_ops")
"""Tables of calls that launch work; the first one with a matching call is used."""
_KEYS = ("process_id", "correlation_id")


def launches(trace: TraceView, number_of: Array, firsts: Mapping[str, int]) -> tuple[Arrows, ...]:
    """Return arrows from calls to the work that they launched, if both are shown.

    Args:
        trace: The trace.
        number_of: Number of each event of the trace in the timeline; -1 if it is not shown.
        firsts: First event number of each source; device events are the rows of their tables, one after another.
    """
    if "device" not in firsts:
        return ()
    sources, targets = [], []
    begin = firsts["device"]
    for table in filter(trace.tables.rows, schema.DEVICE_WORK):
        numbers = number_of[begin : begin + trace.tables.rows(table)]
        begin += numbers.size
        shown = np.flatnonzero(numbers >= 0)
        callers = _callers(trace, table, shown, number_of, firsts)
        known = callers >= 0
        sources.append(callers[known])
        targets.append(numbers[shown][known].astype(np.int64))
    source, target = np.concatenate(sources), np.concatenate(targets)
    order = np.lexsort((target, source))
    return (Arrows("launch", source[order], target[order]),) if order.size else ()


def _callers(trace: TraceView, table: str, shown: Array, number_of: Array, firsts: Mapping[str, int]) -> Array:
    """Return the number of the event that launched each of the ``shown`` rows; -1 if unknown or not shown."""
    found = np.full(shown.size, -1, np.int64)
    work = correlations(taken(trace.frame(table, *_KEYS), shown))
    for caller in CALLERS:
        if caller not in firsts or not shown.size:
            continue
        rows = first_rows(work, correlations(trace.frame(caller, *_KEYS)))
        numbers = np.where(rows >= 0, number_of[firsts[caller] + np.maximum(rows, 0)], -1)
        found = np.where(found >= 0, found, numbers)
    return found
