"""The time that findings are judged on: steady steps, else the time from the first to the last device work."""

from __future__ import annotations

import numpy as np
import polars as pl

from traceviz.analyses.derived.frames import rows_where, unions_by, without_nulls
from traceviz.analyses.derived.grouped import Groups
from traceviz.analyses.derived.launch.join import unrecorded_time
from traceviz.analyses.derived.statistics import CALLS, TOTAL, frame_grid, largest_first
from traceviz.analyses.derived.steps.search import training_steps
from traceviz.analyses.derived.view import TraceView, once_per_trace
from traceviz.core.arrays.intervals import IntervalSet
from traceviz.report import IN_STEPS, STEADY_STEP_TIME, Column, Grid


@once_per_trace
def steady_time(trace: TraceView) -> dict[int, IntervalSet]:
    """Return the union of the steady steps of each process that has steps, by ``process_id``."""
    return unions_by(training_steps(trace).steady, "process_id")


@once_per_trace
def host_time(trace: TraceView) -> dict[int, IntervalSet]:
    """Return host time in steady steps, by ``process_id``: :func:`steady_time`, unless steps are device work.

    If the host queues work early, its activity during the device work of a step belongs to a later step::

        host    |--0--|--1--|--2--|
        device      |--- 0 ---|--- 1 ---|--- 2 ---|      steps
    """
    steps = training_steps(trace)
    if steps.host is None:
        return steady_time(trace)
    return unions_by(steps.host.join(steps.steady, on=("process_id", "step"), how="semi"), "process_id")


def judged_time(trace: TraceView, process_id: int) -> IntervalSet:
    """Return the time that findings are judged on: steady steps, else from the first to the last device work.

    The latter is limited to the time in which devices can be seen to idle (:attr:`TraceView.device_windows`), without
    the time in which device work was lost (:func:`unrecorded_time`). If the
    trace has steady steps, a process without any is not judged, so that :func:`judged_words` applies to all processes.
    """
    if steady := steady_time(trace):
        return steady.get(process_id, IntervalSet.empty())
    seen = IntervalSet.span(*trace.rank_extents.get(process_id, (0, 0))).clip(*trace.window_of(process_id))
    return seen.subtract(unrecorded_time(trace).get(process_id, IntervalSet.empty()))


def judged_words(trace: TraceView) -> str:
    """Return what :func:`judged_time` covers, as text."""
    if steady_time(trace):
        return "steps of the run" if training_steps(trace).source == "counted" else STEADY_STEP_TIME
    if trace.rank_busy:
        return "time from first to last device work"
    return "captured time" if len(trace.ranks) <= 1 else f"captured time of {len(trace.ranks)} processes"


def within_sentence(words: str) -> str:
    """Return the judged time with its article: ``the captured time``; steady step time has none."""
    return words if words == STEADY_STEP_TIME else f"the {words}"


def sums_in_steps(
    trace: TraceView, events: pl.DataFrame, *keys: str, also: tuple[str, ...] = (), of_host: bool = False
) -> pl.DataFrame:
    """Return sums of the ``events`` that start in a steady step of their process, by ``keys``.

    Args:
        trace: The trace.
        events: ``start_ns``, ``dur_ns``, ``process_id``, and the columns of ``keys`` and ``also``.
        keys: Columns to group by.
        also: Further columns to sum.
        of_host: True for host events (:func:`traceviz.analyses.derived.judged_time.host_time`).

    Returns:
        The keys, ``calls``, ``total_ns`` (overlapping events count individually) and the sums of ``also``, sorted by
        total, the largest first. Empty if there are no steps.
    """
    windows = host_time(trace) if of_host else steady_time(trace)
    events = events if windows else events.head(0)
    starts, processes = events["start_ns"].to_numpy(), events["process_id"].to_numpy()
    inside = np.zeros(events.height, dtype=bool)
    for process, window in windows.items():
        inside |= (processes == process) & window.contains(starts)
    steady = rows_where(events[[*keys, "dur_ns", *also]], pl.Series(inside, dtype=pl.Boolean))
    groups = Groups.of(steady, *keys)
    sums = {"total_ns": "dur_ns", **dict.fromkeys(also)}
    columns = [
        pl.Series(name, groups.sums(without_nulls(steady[column or name], 0).to_numpy()))
        for name, column in sums.items()
    ]
    return largest_first(groups.keys.hstack([pl.Series("calls", groups.counts), *columns]), *keys)


def steady_grid(frame: pl.DataFrame, *columns: Column) -> Grid:
    """Return the grid of :func:`sums_in_steps` for machines: key ``columns``, calls, total, and any further columns."""
    names = {column.name for column in columns}
    rest = tuple(Column(name, name, "bytes", 1) for name in frame.columns if name not in {*names, "calls", "total_ns"})
    return frame_grid((*columns, CALLS, TOTAL, *rest), frame, IN_STEPS, audience="machine")
