"""How long work waits after the call that launched it, on each device: what tells whether the two clocks agree.

::

    host    |--launch call--|
    device                       |---work---|
            |<----- delay ----->|                from start to start

On a device that is idle a launch takes microseconds; the delays of one that is busy are as long as its queue.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from traceviz import schema
from traceviz.analyses.derived.device.names import device_names
from traceviz.analyses.derived.frames import parts_by
from traceviz.analyses.derived.view import TraceView


@dataclass(frozen=True, slots=True)
class LaunchDelays:
    """Delays of one device in nanoseconds, from the start of a call to the start of the first work that it launched.

    Args:
        device: Its name for people.
        launches: Calls of which work on it is known: of launches, copies and fills.
        joined_share: Share (0 to 1) of its pieces of work whose call is known.
        smallest_ns: The shortest delay.
        median_ns: The median delay.
        p95_ns: Its 95th percentile.
        moved_ns: What the times of the device were moved by, since its clock was off; ``None`` where it was not.
    """

    device: str
    launches: int
    joined_share: float
    smallest_ns: int
    median_ns: float
    p95_ns: float
    moved_ns: int | None


def launch_delays(trace: TraceView) -> tuple[LaunchDelays, ...]:
    """Delays of every device with work whose call is known, by device number."""
    if "cuda_api" not in trace.tables:
        return ()
    moved = {error.device_id: error.shift_ns for error in trace.clock_errors}
    names = device_names(trace)
    works = trace.device_work.group_by("device_id").agg(pl.len())
    counts = dict(works.iter_rows())
    rows = pl.concat([_joined(trace, process) for process in trace.rank_busy] or [_NOTHING])
    found = []
    for device, own in parts_by(rows, "device_id").items() if rows.height else ():
        delays = own.filter("is_first")["delay_ns"]
        figures = delays.min(), delays.median(), delays.quantile(0.95, "nearest")
        share = own.height / counts[device]
        found.append(LaunchDelays(names[device], delays.len(), share, *figures, moved.get(device)))  # type: ignore[arg-type]
    return tuple(found)


_NOTHING = pl.DataFrame(schema={"device_id": pl.Int16, "delay_ns": pl.Int64, "is_first": pl.Boolean})


def _joined(trace: TraceView, process: int) -> pl.DataFrame:
    """Work of a process whose call is known: ``device_id, delay_ns, is_first``: of its call, on its device.

    By sorted numbers, which they nearly are: a join by hashes takes ten times as long.
    """
    own = pl.col("process_id") == process
    columns = ("device_id", "correlation_id", "start_ns")
    known = [trace.tables.scan(name).filter(own).select(columns) for name in schema.DEVICE_WORK if name in trace.tables]
    work = pl.concat(known).drop_nulls().sort("device_id", "correlation_id", "start_ns").collect()
    calls = trace.tables.scan("cuda_api").filter(own).select("correlation_id", "start_ns").drop_nulls()
    numbers, starts = (column.to_numpy() for column in calls.sort("correlation_id", "start_ns").collect())
    sought = work["correlation_id"].to_numpy()
    at = np.searchsorted(numbers, sought)  # the first of equal numbers is the earliest call
    is_known = np.append(numbers, 0)[at] == sought
    is_known &= at < numbers.size
    delay = work["start_ns"].to_numpy() - np.append(starts, 0)[at]
    device, number = pl.col("device_id"), pl.col("correlation_id")
    is_first = ((device != device.shift(1)) | (number != number.shift(1))).fill_null(value=True).alias("is_first")
    rows = work.select("device_id", pl.Series("delay_ns", delay), is_first)
    return rows.filter(pl.Series(is_known))
