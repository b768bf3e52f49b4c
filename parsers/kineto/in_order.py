"""Kernels of a stream run one after the other: a stated duration cannot reach beyond the next kernel.

Profilers of ROCm state such durations now and then. Each would hide the idle time of all kernels that it runs over::

    stated    |--------------a--------------|
                    |--b--|     |--c--|
    read      |--a--|--b--|     |--c--|

A kernel that only overlaps the start of the next one is as it was stated: CUDA can start a kernel early. Queues in
which many kernels hold others run them at the same time, and are left as they are.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from traceviz.parsers.kineto.categories import Role
from traceviz.parsers.kineto.columns import numbers
from traceviz.parsers.kineto.events import Events
from traceviz.parsers.kineto.identity import ordinals, stream_numbers

MOST_CUT = 0.1
"""A stream runs in order if at most this part of its kernels outlasts the next one."""
ROUNDED_NS = 2_000
"""Times in whole microseconds let neighbours seem to overlap by this much."""


def with_streams_in_order(events: Events) -> Events:
    """Return ``events`` with kernels that outlast the next one of their stream cut at its start."""
    rows = events.rows(Role.KERNEL)
    in_graph = numbers(events.frame, "graph_node", rows)
    rows = rows[~(in_graph.known & (in_graph.value > 0))]  # kernels of a graph are shown on one stream, and overlap
    if rows.size < 2:
        return events
    device, stream, context = (
        ordinals(events, rows),
        stream_numbers(events, rows),
        numbers(events.frame, "context", rows),
    )
    queue = ("pid", "device", "context", "stream")
    kernels = pl.DataFrame(
        {
            "row": rows,
            "pid": events.pid.codes[rows],
            "device": device.value,
            "context": np.where(context.known, context.value, -1),
            "stream": stream.value,
            "start": events.start[rows],
            "end": events.start[rows] + np.maximum(events.dur[rows], 0),
        }
    ).filter(pl.Series(stream.known))
    kernels = kernels.sort(*queue, "start", "end")
    next_start, next_end = (pl.col(column).shift(-1).over(queue) for column in ("start", "end"))
    outlasts = (next_start > pl.col("start")) & (pl.col("end") > next_end + ROUNDED_NS)
    long = kernels.with_columns(next_start.alias("next"), outlasts.fill_null(value=False).alias("outlasts")).filter(
        pl.col("outlasts") & (pl.col("outlasts").mean().over(queue) <= MOST_CUT)
    )
    if not long.height:
        return events
    dur = events.dur.copy()
    dur[long["row"].to_numpy()] = (long["next"] - long["start"]).to_numpy()
    counts = events.role != Role.IGNORED
    span = int((events.start[counts] + np.maximum(dur[counts], 0)).max())
    return replace(
        events, dur=dur, span_ns=span, cut_ns=int((long["end"] - long["next"]).sum()), kernels_cut=long.height
    )
