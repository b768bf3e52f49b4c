"""Sums of events in steady steps, so that two runs can be compared by their steps alone."""

from __future__ import annotations

import numpy as np
import polars as pl

from traceviz.analyses.derived.frames import rows_where, without_nulls
from traceviz.analyses.derived.grouped import Groups
from traceviz.analyses.derived.judged_time import host_time, steady_time
from traceviz.analyses.derived.statistics import CALLS, TOTAL, frame_grid, largest_first
from traceviz.analyses.derived.view import TraceView
from traceviz.report import IN_STEPS, Column, Grid


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
