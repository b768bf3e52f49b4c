"""The time in which devices can be seen to idle: their work was recorded, and nothing unseen kept them busy.

A capture may start or end during device work. The join of launches with their work shows it::

    launched before      call              |launch|       |launch|
    the capture          device    ??|#####|######| |work|   |work|       until the first work without a call: unknown

    held up              call      |launch|                               no recorded work ran at this time
                         device    ????????????????????????|work|work|

    not recorded         call      |launch|launch|launch|...|launch|      launches at an end of the capture without work
                         device    |work|????????????????????????????

Work whose calls were never recorded (of another library, of a graph) lies among other work, and does not limit the
window.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import polars as pl

from traceviz.analyses.derived.frames import having, knowing, parts_by
from traceviz.core.arrays.intervals import IntervalSet

MIN_LAUNCHES = 20
"""Minimum number of launches without work at an end of the capture; fewer may have failed, or launched nothing."""
MIN_SHARE = 0.01
"""Minimum share of these launches among the launches of their process."""
MIN_HOLD_NS = 1_000_000
"""Minimum launch delay that shows unseen work: on an idle device, a launch takes microseconds."""
HELD_SHARE = 0.5
"""Minimum share of this delay in the time since the capture started: later waits have other reasons."""
STRAY_SHARE = 0.01
"""If more than this share of work without a call follows work with a call in its stream, calls are missing."""

_KEY = ["process_id", "correlation_id"]
_OWNER = ["process_id", "device_id"]


@dataclass(frozen=True, slots=True)
class DeviceWindow:
    """The time in which the devices of a process can be seen to idle, and why it is not the whole capture.

    Args:
        begin_ns: Device activity before this time is not known.
        end_ns: Device activity after this time is not known.
        launched_before: Pieces of device work that were launched before the capture started.
        held_up_ns: How long the first work waited for unrecorded work from before the capture.
        lacks_first: Number of launches at the start of the capture whose work was not recorded.
        lacks_last: Number of such launches at its end.
    """

    begin_ns: int
    end_ns: int
    launched_before: int = 0
    held_up_ns: int = 0
    lacks_first: int = 0
    lacks_last: int = 0


@dataclass(frozen=True, slots=True)
class Join:
    """Tables that are joined on process and correlation id.

    Args:
        work: Device work: ``process_id, device_id, stream, correlation_id, start_ns``.
        calls: Calls of the devices' API: ``process_id, correlation_id, start_ns, end_ns``.
        edges: At least the first and last :data:`MIN_LAUNCHES` kernel launches of each process, among those with a
            correlation id: ``process_id, correlation_id, start_ns, name``, in order of start.
        launches: Function that returns all kernel launches, if ``edges`` are not enough.
        engine: Engine for queries of work and calls.
    """

    work: pl.LazyFrame
    calls: pl.LazyFrame
    edges: pl.DataFrame
    launches: Callable[[], pl.DataFrame]
    engine: Literal["in-memory", "streaming"] = "in-memory"


def device_windows(
    recorded: tuple[int, int], busy: dict[int, IntervalSet], owners: pl.DataFrame, join: Join
) -> dict[int, DeviceWindow]:
    """Return the window of every process that owns device work, by ``process_id``.

    Args:
        recorded: Start and end of the time in which device work was recorded.
        busy: Busy time of each device.
        owners: ``process_id, device_id, start_ns, end_ns`` of the first and last work of each process on each device.
        join: The calls and the work.
    """
    begun = _begins(recorded, busy, owners, join)
    edges = parts_by(join.edges, "process_id") if join.edges.height else {}
    windows = {}
    for process, own in parts_by(owners, "process_id").items():
        window = min((begun[process, device] for device in own["device_id"]), key=lambda known: known.begin_ns)
        if process in edges:
            extent = int(own["start_ns"].to_numpy().min()), int(own["end_ns"].to_numpy().max())
            window = _without_missing(window, extent, edges[process], join)
        windows[process] = window
    return windows


def _begins(
    recorded: tuple[int, int], busy: dict[int, IntervalSet], owners: pl.DataFrame, join: Join
) -> dict[tuple[int, int], DeviceWindow]:
    """Return the window for each process and device, without the time in which earlier work may have run."""
    late = {device: _after_long_gaps(own, recorded[0]) for device, own in busy.items()}
    moments = sorted({*owners["start_ns"].to_list(), *(start for starts in late.values() for start in starts)})
    shown = join.work.filter(pl.col("start_ns").is_in(moments)).collect(engine=join.engine)
    ids = shown["correlation_id"]
    near = join.calls.filter(pl.col("correlation_id").is_between(ids.min(), ids.max()))  # usually far fewer
    spans = near.join(shown.lazy().select(_KEY).unique(), on=_KEY, how="semi").group_by(_KEY)
    called = shown.join(
        spans.agg(pl.col("end_ns").max().alias("called_ns")).collect(engine=join.engine), on=_KEY, how="left"
    )
    windows = {}
    for process, device, first in owners.select(*_OWNER, "start_ns").iter_rows():
        window = DeviceWindow(*recorded)
        own = called.filter((pl.col("process_id") == process) & (pl.col("device_id") == device))
        if own.filter((pl.col("start_ns") == first) & pl.col("called_ns").is_null()).height:
            before = _launched_before(process, device, join)
            window = replace(window, begin_ns=max(first, recorded[0]), launched_before=before) if before else window
        for start in late.get(device, ()):
            wait = start - int(having(own, "start_ns", start)["called_ns"].fill_null(start).min() or start)  # type: ignore[arg-type]
            if wait >= max(MIN_HOLD_NS, HELD_SHARE * (start - recorded[0])):
                window = replace(window, begin_ns=start, held_up_ns=wait)
        windows[int(process), int(device)] = window
    return windows


def _after_long_gaps(busy: IntervalSet, origin: int) -> tuple[int, ...]:
    """Return starts of work after a long pause of the device, compared with the time since ``origin``."""
    starts = busy.starts[:_GAPS]
    ends = np.concatenate([[origin], busy.ends[:_GAPS]])[: starts.size]
    is_long = starts - ends >= np.maximum(MIN_HOLD_NS, HELD_SHARE * (starts - origin))
    return tuple(int(start) for start in starts[is_long])


_GAPS = 1_000
"""Number of busy intervals that are checked from the start of the capture."""


def _launched_before(process: int, device: int, join: Join) -> int:
    """Return the number of pieces of work launched before the capture; 0 if calls are missing for other reasons.

    Streams run in order, so work launched before the capture precedes work of the capture. In a stream without any
    call, work launched before is over when it is over in other streams.
    """
    own = join.work.filter((pl.col("process_id") == process) & (pl.col("device_id") == device))
    known = join.calls.select(_KEY).unique().with_columns(pl.lit(value=True).alias("called"))
    rows = own.join(known, on=_KEY, how="left").select("stream", "start_ns", pl.col("called").fill_null(value=False))
    frame = rows.collect(engine=join.engine)
    first = frame.filter("called").group_by("stream").agg(pl.col("start_ns").min().alias("first_ns"))
    without = frame.filter(~pl.col("called")).join(first, on="stream", how="left", nulls_equal=True)
    if not first.height:
        return 0
    latest = without.filter(pl.col("start_ns") <= pl.col("first_ns"))["start_ns"].max() or first["first_ns"].min()
    stray = without.filter(pl.col("start_ns") > pl.col("first_ns").fill_null(latest)).height
    return without.height - stray if stray <= STRAY_SHARE * without.height else 0


def _without_missing(window: DeviceWindow, extent: tuple[int, int], edges: pl.DataFrame, join: Join) -> DeviceWindow:
    """Return ``window`` without the ends of the capture at which launches of one process have no recorded work.

    Args:
        window: The window.
        extent: First and last moment of the process's work.
        edges: The process's rows of :attr:`Join.edges`.
        join: The calls and the work.
    """
    edges = knowing(edges, "correlation_id")
    if edges.height < MIN_LAUNCHES:
        return window
    process = edges["process_id"].first()
    ends = pl.concat([edges.head(MIN_LAUNCHES), edges.tail(MIN_LAUNCHES)])["correlation_id"]
    own = join.work.filter(pl.col("process_id") == process)
    met = own.filter(pl.col("correlation_id").is_in(ends.implode())).select("correlation_id").collect()
    if _begins_and_ends_with_work(edges, met["correlation_id"]):
        return window
    launches = join.launches().filter(pl.col("process_id") == process).drop_nulls("correlation_id")
    keys = own.select("correlation_id").unique().with_columns(pl.lit(value=True).alias("works"))
    known = launches.lazy().join(keys, on="correlation_id", how="left", maintain_order="left").collect()
    works = pl.col("works").fill_null(value=False)
    recorded = known.select("start_ns", works, works.any().over("name").alias("ever")).filter("ever")
    at = np.flatnonzero(recorded["works"].to_numpy())
    if not at.size:
        return window
    starts, enough = recorded["start_ns"].to_numpy(), max(MIN_LAUNCHES, MIN_SHARE * recorded.height)
    lacks_first, lacks_last = int(at[0]), int(recorded.height - 1 - at[-1])
    if lacks_first >= enough and starts[lacks_first - 1] < extent[0]:
        window = replace(window, begin_ns=max(window.begin_ns, extent[0]), lacks_first=lacks_first)
    if lacks_last >= enough:
        window = replace(window, end_ns=min(window.end_ns, extent[1]), lacks_last=lacks_last)
    return window


def _begins_and_ends_with_work(launches: pl.DataFrame, met: pl.Series) -> bool:
    """Return whether some of the first and of the last launches have work; then neither end lacks enough of them."""
    parts = (launches.head(MIN_LAUNCHES), launches.tail(MIN_LAUNCHES))
    return all(part["correlation_id"].is_in(met.implode()).any() for part in parts)
