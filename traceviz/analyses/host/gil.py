"""Contention for the interpreter: threads that want to run Python at once, of which it lets one.

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
from traceviz.analyses.host.samples import Floats, Times
from traceviz.analyses.host.step_samples import StepSamples
from traceviz.core.arrays.intervals import IntervalSet

_BLOCKED = ("lock", "sleep", "io", "device_wait", "collective", "gil")
"""Activities of the main thread in which it does not run Python."""


@dataclass(frozen=True, slots=True)
class Contention:
    """Threads that want the interpreter in the steps.

    Args:
        lost_ns: Time of the main thread in which it waits for the interpreter, or for threads that do.
        threads: How many threads want it at once, on average.
        others: ``thread_id, location, time_ns`` of the other threads that want it, the largest first.
    """

    lost_ns: int
    threads: float
    others: pl.DataFrame


def contention(steps: StepSamples) -> Contention:
    """How much of the steps the main thread waits while several threads want to run Python.

    With ``k`` others, a thread has the interpreter for one part in ``k + 1`` of the time at worst. So of the time in
    which the main thread used no processor, no more than ``k / (k + 1)`` counts: the rest is for other programs. Where
    the main thread waits for several of them, they take turns: on cores of their own, the wait would be ``1 / k``.
    """
    wanting = steps.rows.filter(pl.col("is_python"))
    others = wanting.filter(pl.col("thread_id") != steps.main)
    main = steps.of_main
    by_others = _wanted(others, main, steps.within)
    length = main["time_ns"].to_numpy()
    idle = np.maximum(length * (1 - _use(main)), 0)
    blocked = main["activity"].is_in(_BLOCKED[:-1]).to_numpy()
    waits_for_them = main["activity"].is_in(["lock", "wait"]).to_numpy()
    at_worst = length * by_others / (by_others + 1)
    lost = np.where(blocked, 0.0, np.minimum(idle, at_worst))
    several = waits_for_them & (by_others >= 2)
    lost = np.where(several, length * (1 - 1 / np.maximum(by_others, 1)), lost)
    wants = main["is_python"].to_numpy() | (lost > 0)
    at_once = _mean(by_others + wants, length)
    places = others.group_by("thread_id", "location").agg(pl.col("time_ns").sum())
    places = places.sort("time_ns", "thread_id", "location", descending=[True, False, False])
    return Contention(round(float(lost.sum())), at_once, places)


def _wanted(others: pl.DataFrame, main: pl.DataFrame, within: IntervalSet) -> Floats:
    """For each row of the main thread, how many other threads want the interpreter meanwhile, on average."""
    starts, ends = bounds(main)
    length = np.maximum(within.overlap(starts, ends), 1)
    wanted = np.zeros(main.height)
    for _, rows in others.group_by("thread_id"):  # once per thread
        ready = IntervalSet.of(*bounds(rows)).intersect(within)
        wanted += ready.overlap(starts, ends) / length
    return wanted


def _use(rows: pl.DataFrame) -> Floats:
    """Share of each row in which its thread used a processor; 0 where that is not known."""
    length = np.maximum((rows["end_ns"] - rows["start_ns"]).to_numpy(), 1)
    return np.asarray(np.minimum(rows["cpu_ns"].fill_null(0).to_numpy() / length, 1.0))


def _mean(values: Floats, weights: Times) -> float:
    return float(np.average(values, weights=weights)) if weights.sum() else 0.0
