"""The wait of device work after its launch call, on each device. It shows whether the two clocks agree.

::

    host    |--launch call--|
    device                       |---work---|
            |<----- delay ----->|                from start to start

On an idle device, a launch takes microseconds. On a busy device, delays are as long as its queue.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from traceviz.analyses.derived.device.names import device_names
from traceviz.analyses.derived.frames import of_process, partners, parts_by, rows_where
from traceviz.analyses.derived.grouped import Groups
from traceviz.analyses.derived.host.classes import host_classes
from traceviz.analyses.derived.view import TraceView
from traceviz.core.arrays.matching import Pairs, is_repeated
from traceviz.trace import schema


@dataclass(frozen=True, slots=True)
class LaunchDelays:
    """Delays of one device in nanoseconds, from the start of a call to the start of the first work that it launched.

    Args:
        device: Its display name.
        launches: Calls with known work on the device: launches, copies and fills.
        joined_share: Share (0 to 1) of the device's pieces of work whose call is known.
        smallest_ns: The shortest delay.
        median_ns: The median delay.
        p95_ns: The 95th percentile of the delays.
        moved_ns: Shift applied to the device's times to correct its clock; ``None`` if its clock was right.
    """

    device: str
    launches: int
    joined_share: float
    smallest_ns: int
    median_ns: float
    p95_ns: float
    moved_ns: int | None


def launch_delays(trace: TraceView) -> tuple[LaunchDelays, ...]:
    """Return the delays of every device with work whose call is known, by device number."""
    if "cuda_api" not in trace.tables:
        return ()
    moved = {error.device_id: error.shift_ns for error in trace.clock_errors}
    names = device_names(trace)
    works = Groups.of(trace.device_work, "device_id")
    counts = dict(zip(works.keys["device_id"], works.counts.tolist(), strict=True))
    del works
    trace.free_memory(host_classes)
    rows = pl.concat([_join_launches(trace, process) for process in trace.rank_busy] or [_NOTHING])
    found = []
    for device, own in parts_by(rows, "device_id").items() if rows.height else ():
        delays = own.filter("is_first")["delay_ns"]
        figures = delays.min(), delays.median(), delays.quantile(0.95, "nearest")
        share = own.height / counts[device]
        found.append(LaunchDelays(names[device], delays.len(), share, *figures, moved.get(device)))  # type: ignore[arg-type]
    return tuple(found)


_NOTHING = pl.DataFrame(schema={"device_id": pl.Int16, "delay_ns": pl.Int64, "is_first": pl.Boolean})


def _join_launches(trace: TraceView, process: int) -> pl.DataFrame:
    """Return ``device_id, delay_ns, is_first`` of a process's work whose call is known.

    ``is_first`` marks the first work of its call on its device. Calls and work are sorted by start, so the first row
    with a number is the earliest.
    """
    columns = ("process_id", "device_id", "correlation_id", "start_ns")
    known = [of_process(trace.frame(name, *columns), process) for name in schema.DEVICE_WORK if trace.tables.rows(name)]
    work = pl.concat(known)
    work = work.sort("start_ns", maintain_order=True) if len(known) > 1 else work
    calls = trace.frame("cuda_api", "process_id", "correlation_id", "start_ns")
    call = partners(work, calls)
    joined = call >= 0
    rows = rows_where(work, pl.Series(joined, dtype=pl.Boolean))
    delay = calls["start_ns"].to_numpy()[call if joined.all() else call[joined]]
    del known, work, calls, call, joined
    np.subtract(rows["start_ns"].to_numpy(), delay, out=delay)
    of_device = Pairs(
        rows["device_id"].cast(pl.Int32).to_numpy(), rows["correlation_id"].to_numpy()
    )  # the same integer width as in other pairs
    return rows.select("device_id", pl.Series("delay_ns", delay), pl.Series("is_first", ~is_repeated(of_device)))
