"""Detection of device clocks that deviate from the host clock, and tables with corrected times.

Profilers convert device times to the host clock. If that fails, work seems to run before the call that launched it, or
long after every such call::

    host     |launch|        |launch|        |launch|
    device   ..........................|work|............|work|            by its own clock
    device        |work|          |work|          |work|                   moved: the quickest launch takes 5 µs

All launches of a trace together show it: in a healthy trace, some find the device idle and take microseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute

from traceviz.analyses.derived.frames import correlations, intervals, partners, parts_by
from traceviz.core.arrays.intervals import Array
from traceviz.core.arrays.matching import is_repeated
from traceviz.core.units import format_ns
from traceviz.trace import schema
from traceviz.trace.rows_to_table import rows_to_table
from traceviz.trace.tables import TraceTables, conform

pc: Any = pyarrow.compute
"""The stubs of pyarrow reject Python numbers as arguments of compute functions."""

QUICK_NS = 5_000
"""Approximate launch time on an idle device; the quickest launch takes this long after a correction."""
EARLIEST_NS = -1_000
"""Work may seem to start this much before its call, due to the precision of clocks."""
LATEST_NS = 100_000_000
"""From this delay on, an idle device's clock is wrong: no device work delays every single launch that long."""
MIN_LAUNCHES = 20
"""Fewer launches than this may all wait behind one long piece of work."""
MIN_EARLY, MIN_SHARE = 5, 0.01
"""If fewer launches, or a smaller share, seem to be later than their work, they were joined with wrong calls."""
IDLE_NS = 10_000
"""If no recorded work ran for this long before a piece of work, it found the device idle."""
NOTE = "device-clock-moved"
"""Code of the note on a device whose times were moved."""

_SHIFTED = (*schema.DEVICE_WORK, "sync", "device_ops", "steps", "collectives")
"""Tables with device times; rows without a device have host times."""
_KEY = ("process_id", "correlation_id")
_SAMPLE = 4_096
"""Launches per device that are checked first: a single quick one shows that the clock is right."""


@dataclass(frozen=True, slots=True)
class ClockError:
    """A device whose clock deviates.

    Args:
        device_id: The device.
        launches: Number of calls whose work on the device is known.
        smallest_ns: The shortest time from the start of a call to the start of its first work.
    """

    device_id: int
    launches: int
    smallest_ns: int

    @property
    def shift_ns(self) -> int:
        """The shift applied to the device's times, in nanoseconds."""
        return QUICK_NS - self.smallest_ns


def clock_errors(tables: TraceTables) -> tuple[ClockError, ...]:
    """Return the devices whose clock deviates, if there are enough launches to show it."""
    if tables.rows("kernels") < MIN_LAUNCHES or "cuda_api" not in tables:
        return ()
    work = tables.select("kernels", *_KEY, "device_id", "start_ns")
    calls = tables.select("cuda_api", *_KEY, "start_ns")
    errors = []
    for device, own in parts_by(work, "device_id").items():
        sample = _measure_delays(own.gather_every(max(1, own.height // _SAMPLE)), calls)
        if not sample.size or not ((sample < EARLIEST_NS).any() or sample.min() >= LATEST_NS):
            continue  # no launch seems to be later than its work, and not all are far before it
        delays = _measure_delays(own, calls)
        if delays.size < MIN_LAUNCHES:
            continue
        smallest = int(delays.min())
        is_early = (delays < EARLIEST_NS).sum() >= max(MIN_EARLY, MIN_SHARE * delays.size)
        is_late = smallest >= LATEST_NS and _count_launches_on_idle(tables, own, calls) >= MIN_LAUNCHES
        if is_early or is_late:
            errors.append(ClockError(device, delays.size, smallest))
    return tuple(errors)


def _measure_delays(work: pl.DataFrame, calls: pl.DataFrame) -> Array:
    """Return the time from each call to the start of its first work, given the ``work`` of one device.

    Both frames are sorted by start, so the first row with an id is the earliest.
    """
    call = partners(work, calls)
    known = (call >= 0) & ~is_repeated(correlations(work))
    return np.asarray(work["start_ns"].to_numpy()[known] - calls["start_ns"].to_numpy()[call[known]])


def _count_launches_on_idle(tables: TraceTables, work: pl.DataFrame, calls: pl.DataFrame) -> int:
    """Count launches whose work started on a device that had been idle for a while, so that no queue explains them."""
    own = pl.col("device_id") == work["device_id"][0]
    every = [
        tables.scan(name).filter(own).select("start_ns", "dur_ns") for name in schema.DEVICE_WORK if name in tables
    ]
    busy = intervals(pl.concat(every).collect())
    begins = busy.starts[np.append(True, busy.starts[1:] - busy.ends[:-1] >= IDLE_NS)]
    return _measure_delays(work.filter(pl.col("start_ns").is_in(begins)), calls).size


def align_clocks(tables: TraceTables, errors: tuple[ClockError, ...]) -> TraceTables:
    """Return ``tables`` with the times of the devices of ``errors`` shifted, and a note on each."""
    if not errors:
        return tables
    shift = {error.device_id: error.shift_ns for error in errors}
    moved = {name: _shift_times(tables, name, shift) for name in _SHIFTED if name in tables}
    ends = [pc.max(pc.add(part["start_ns"], pc.fill_null(part["dur_ns"], 0))).as_py() for part in moved.values()]
    span = max(int(tables.run_facts().get("span_ns") or 0), *(int(end or 0) for end in ends))
    run = tables.scan("run").with_columns(pl.lit(span, pl.Int64).alias("span_ns")).collect().to_arrow()
    notes = rows_to_table(
        "notes", [_make_note(error, name) for error, name in zip(errors, _name_devices(tables, errors), strict=True)]
    )
    both = pa.concat_tables([tables.arrow("notes"), notes]).unify_dictionaries()
    return tables.replace({**moved, "run": run, "notes": both})


def _shift_times(tables: TraceTables, name: str, shift: dict[int, int]) -> pa.Table:
    by = pl.col("device_id").replace_strict(shift, default=0, return_dtype=pl.Int64).fill_null(0)
    frame = tables.scan(name).with_columns(pl.col("start_ns") + by)
    return conform(name, frame.sort("start_ns", maintain_order=True).collect().to_arrow())


def _name_devices(tables: TraceTables, errors: tuple[ClockError, ...]) -> list[str]:
    """Return display names of the devices."""
    known = {row["device_id"]: row for row in tables.arrow("devices").to_pylist()}
    rows = [known.get(error.device_id, {}) for error in errors]
    return [f"{str(row.get('kind') or 'device').upper()} {row.get('ordinal') or 0}" for row in rows]


def describe_clock_errors(tables: TraceTables, errors: tuple[ClockError, ...]) -> str:
    """Return a sentence on the effect of shifted clocks on idle time; empty if none was shifted."""
    if not errors:
        return ""
    largest = format_ns(max(abs(error.shift_ns) for error in errors))
    names = " and ".join(_name_devices(tables, errors)) if len(errors) <= _NAMED else f"{len(errors):,} devices"
    by = f"clock of {names} was moved by" if len(errors) == 1 else f"clocks of {names} were moved by up to"
    return f"The {by} {largest}: idle times are as uncertain."


_NAMED = 2
"""Maximum number of devices listed by name; more are only counted."""


def _make_note(error: ClockError, name: str) -> dict[str, object]:
    how = "before its launches" if error.smallest_ns < 0 else "after each of its launches, at the least"
    message = (
        f"The clock of {name} is off: its work seems to begin {format_ns(abs(error.smallest_ns))} {how}. Its times "
        f"were moved so that the quickest of {error.launches:,} launches takes {format_ns(QUICK_NS)}: how long it was "
        "idle is as uncertain."
    )
    return {"code": NOTE, "severity": "warning", "message": message, "count": None}
