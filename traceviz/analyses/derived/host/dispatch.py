"""Host time in which the framework prepares device work: it is certainly not a wait for input.

::

    thread   |--aten::linear-----|  |--own code, or a loader--|  |--aten::relu--|
                  |launch|                                          |launch|
             |-----dispatch------|                               |---dispatch---|

An operation that launches something works for the device from its start to its end. So does a module of the model, or
an annotation named like a part of training. An operation that launches nothing computes on the host, and may belong to
a loader. Without a device nothing is launched, so only operations named like a part of training are excluded as input.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from traceviz.analyses.derived.frames import bounds, intervals, of_process, parts_by
from traceviz.analyses.derived.host.input_fetches import ANNOTATION
from traceviz.analyses.derived.patterns import matches
from traceviz.analyses.derived.view import TraceView
from traceviz.core.arrays.intervals import IntervalSet

TRAINING_NAME = (
    r"(?i)^nn\.Module: |forward|backward|optimizer|zero_grad|(^|[^a-z])(loss|nccl|gloo|all_?reduce)([^a-z]|$)"
)
"""Names of operations, Python frames and annotations that are parts of training."""

_CATEGORIES = ("op", "annotation", "python")


def dispatching(trace: TraceView, process_id: int) -> IntervalSet:
    """Return the time in which recorded operations of a process, on any thread, prepare the work that they launch.

    Without a device, this is the time in operations that are named like parts of training.
    """
    if not trace.has_device_tables:
        own = trace.host_ops(*_CATEGORIES).filter((pl.col("process_id") == process_id) & _is_named(trace, *_CATEGORIES))
        return intervals(own)
    calls = of_process(trace.api_calls("launch", "async_copy", "blocking_copy"), process_id)
    launches = {thread: part["start_ns"].sort().to_numpy() for thread, part in parts_by(calls, "thread_id").items()}
    is_training = (pl.col("category") == "op") | _is_named(trace, "annotation", "python")
    own = trace.host_ops(*_CATEGORIES).filter((pl.col("process_id") == process_id) & is_training)
    times = []
    for thread, part in parts_by(own, "thread_id").items():
        starts, ends = bounds(part)
        moments = launches.get(thread, np.array([], dtype=np.int64))
        busy = np.searchsorted(moments, ends) > np.searchsorted(moments, starts)
        times.append(IntervalSet.of(starts[busy], ends[busy]))
    return IntervalSet.empty().union(*times)


def _is_named(trace: TraceView, *categories: str) -> pl.Expr:
    """Return whether a host operation in one of these categories is named like a part of training."""
    named = matches(pl.col("name"), TRAINING_NAME) & ~matches(pl.col("name"), ANNOTATION)
    known = trace.host_names.filter(named & pl.col("category").is_in(categories))
    return pl.col("name").cast(pl.String).is_in(known["name"].to_list())
