"""Time in which the program works, from samples of its processor time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from traceviz.analyses.derived.frames import having
from traceviz.analyses.derived.view import TraceView, once_per_trace
from traceviz.core.arrays.intervals import Array, IntervalSet

PROGRAM_CPU = "program CPU"
"""Metric: processor time of all threads and processes of the program, in percent of a core."""
QUEUED = "program waits for a core"
"""Metric: number of the program's threads that are ready and wait for a core, in percent of one thread."""

WORKS = 50.0
"""Percentage of a core, used or waited for, from which the program counts as working."""


@once_per_trace
def working(trace: TraceView) -> IntervalSet | None:
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
        values += _until(queued["start_ns"].to_numpy(), queued["value"].to_numpy(), times)
    works = values[1:] >= WORKS
    return IntervalSet.of(times[:-1][works], times[1:][works])


def _until(times: Array, values: npt.NDArray[np.float64], moments: Array) -> npt.NDArray[np.float64]:
    """Return the value of the sample whose time contains each moment, else of the last sample."""
    return values[np.minimum(np.searchsorted(times, moments), times.size - 1)]
