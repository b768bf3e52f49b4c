"""Contention for the interpreter: several threads want to run Python, but only one can.

::

    main       ## ..... ## ..... ##      # runs, . ready, and does not run
    thread 1     ###      ###
    thread 2        ##       ###
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from traceviz.analyses.derived.frames import bounds
from traceviz.analyses.host.step_samples import StepSamples
from traceviz.core.arrays.intervals import IntervalSet

_BLOCKED = ("lock", "sleep", "io", "device_wait", "collective", "gil")
"""Activities of the main thread in which it does not run Python."""


@dataclass(frozen=True, slots=True)
class Contention:
    """Threads that want the interpreter in the steps.

    Args:
        lost_ns: Time of the main thread in which it waits for the interpreter, or for threads that do.
        threads: Mean number of threads that want it at once.
        others: ``thread_id, location, time_ns`` of the other threads that want it, the largest first.
    """

    lost_ns: int
    threads: float
    others: pl.DataFrame


def contention(steps: StepSamples) -> Contention:
    """Measure how long the main thread waits in the steps while several threads want to run Python.

    With ``k`` others, a thread has the interpreter for one part in ``k + 1`` of the time at worst. So at most ``k / (k
    + 1)`` of the time counts in which the main thread used no processor. The rest is due to other programs. If the main
    thread waits for several of the threads, they take turns. On cores of their own, the wait would be ``1 / k``.
    """
    wanting = steps.rows.filter(pl.col("is_python"))
    others = wanting.filter(pl.col("thread_id") != steps.main)
    main = steps.of_main
    starts, ends = bounds(main)
    within = np.maximum(steps.within.overlap(starts, ends), 1)
    # The mean number of other threads that want the interpreter, for each row of the main thread
    by_others = np.zeros(main.height)
    for _, rows in others.group_by("thread_id"):  # once per thread
        by_others += IntervalSet.of(*bounds(rows)).intersect(steps.within).overlap(starts, ends) / within
    length = main["time_ns"].to_numpy()
    used = np.minimum(main["cpu_ns"].fill_null(0).to_numpy() / np.maximum(ends - starts, 1), 1.0)
    idle = np.maximum(length * (1 - used), 0)
    blocked = main["activity"].is_in(_BLOCKED[:-1]).to_numpy()
    waits_for_them = main["activity"].is_in(["lock", "wait"]).to_numpy()
    at_worst = length * by_others / (by_others + 1)
    lost = np.where(blocked, 0.0, np.minimum(idle, at_worst))
    several = waits_for_them & (by_others >= 2)
    lost = np.where(several, length * (1 - 1 / np.maximum(by_others, 1)), lost)
    wants = main["is_python"].to_numpy() | (lost > 0)
    at_once = float(np.average(by_others + wants, weights=length)) if length.sum() else 0.0
    places = others.group_by("thread_id", "location").agg(pl.col("time_ns").sum())
    places = places.sort("time_ns", "thread_id", "location", descending=[True, False, False])
    return Contention(round(float(lost.sum())), at_once, places)
