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

The capture itself starts and ends with the program, without the profiler's own start and stop::

    capture    |---------------------------------------------|
    profiler   |===start_trace===|            |==stop_trace==|
    program                      |------------|

Only overhead at an edge of the capture is excluded. Overhead in its middle interrupts the program.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import polars as pl

from traceviz.analyses.derived.frames import bounds, end_ns, having, intervals, knowing, parts_by, unions_by
from traceviz.core.arrays.intervals import Array, IntervalSet
from traceviz.core.units import counted, format_ns
from traceviz.trace import schema
from traceviz.trace.tables import TraceTables

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
    begun = _find_begins(recorded, busy, owners, join)
    edges = parts_by(join.edges, "process_id") if join.edges.height else {}
    windows = {}
    for process, own in parts_by(owners, "process_id").items():
        window = min((begun[process, device] for device in own["device_id"]), key=lambda known: known.begin_ns)
        if process in edges:
            extent = int(own["start_ns"].to_numpy().min()), int(own["end_ns"].to_numpy().max())
            window = _without_missing(window, extent, edges[process], join)
        windows[process] = window
    return windows


def _find_begins(
    recorded: tuple[int, int], busy: dict[int, IntervalSet], owners: pl.DataFrame, join: Join
) -> dict[tuple[int, int], DeviceWindow]:
    """Return the window for each process and device, without the time in which earlier work may have run."""
    late = {device: _starts_after_long_gaps(own, recorded[0]) for device, own in busy.items()}
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
            before = _count_launched_before(process, device, join)
            window = replace(window, begin_ns=max(first, recorded[0]), launched_before=before) if before else window
        for start in late.get(device, ()):
            wait = start - int(having(own, "start_ns", start)["called_ns"].fill_null(start).min() or start)  # type: ignore[arg-type]
            if wait >= max(MIN_HOLD_NS, HELD_SHARE * (start - recorded[0])):
                window = replace(window, begin_ns=start, held_up_ns=wait)
        windows[int(process), int(device)] = window
    return windows


def _starts_after_long_gaps(busy: IntervalSet, origin: int) -> tuple[int, ...]:
    """Return starts of work after a long pause of the device, compared with the time since ``origin``."""
    starts = busy.starts[:_GAPS]
    ends = np.concatenate([[origin], busy.ends[:_GAPS]])[: starts.size]
    is_long = starts - ends >= np.maximum(MIN_HOLD_NS, HELD_SHARE * (starts - origin))
    return tuple(int(start) for start in starts[is_long])


_GAPS = 1_000
"""Number of busy intervals that are checked from the start of the capture."""


def _count_launched_before(process: int, device: int, join: Join) -> int:
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
    both = (
        part["correlation_id"].is_in(met["correlation_id"].implode())
        for part in (edges[:MIN_LAUNCHES], edges[-MIN_LAUNCHES:])
    )
    if all(works.any() for works in both):  # then neither end lacks enough of them
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


_ON_THREADS = ("cuda_api", "nvtx", "host_ops", "steps")
_EVENTS = (*schema.DEVICE_WORK, *_ON_THREADS)
"""Tables whose rows show that the program runs. Operating-system calls do not: idle threads wait in them."""
_NO_WORK = ("python", "runtime")
"""Host operations that do not show it: frames around the profiler's own call, and idle thread pools."""


def without_edges(tables: TraceTables, begin: int, end: int) -> tuple[int, int]:
    """Return ``begin`` and ``end`` of a capture in ns, moved past the profiler's overhead at these edges.

    Overhead is at an edge if it is at least as long as the time between them. It is excluded up to the first event of
    the program, and from the last one on. Events within a profiler call, on its thread, belong to the profiler.
    """
    if "overhead" not in tables:
        return begin, end
    overhead = tables.select("overhead", "start_ns", end_ns(), "thread_id")
    taken = intervals(overhead).clip(begin, end)
    first, last = begin, end
    if len(taken) and taken.starts[0] - begin <= taken.durations[0]:
        first = int(taken.ends[0])
    if len(taken) and end - taken.ends[-1] <= taken.durations[-1]:
        last = int(taken.starts[-1])
    if (first, last) == (begin, end):
        return begin, end
    calls = knowing(overhead, "thread_id")
    profiler = unions_by(calls, "thread_id") if calls.height else {}
    for name in (name for name in _EVENTS if name in tables):
        starts, ends = _find_program_events(tables, name, profiler, first, last)
        first = min([first, *np.maximum(starts[ends > begin], begin).tolist()])
        last = max([last, *np.minimum(ends[starts < end], end).tolist()])
    return (first, last) if first < last else (begin, end)


def without_unsampled(tables: TraceTables, begin: int, end: int) -> tuple[int, int]:
    """Return ``begin`` and ``end`` in ns of a capture that has only stack samples, limited to the sampled time.

    ::

        process   |-----------------------------|
        samples   |. . . . . . .|                      the captured time, if nothing else was recorded
    """
    if "phases" not in tables or any(tables.rows(name) for name in _EVENTS if name in tables):
        return begin, end
    kind, name = (pl.col(column).cast(pl.String) for column in ("kind", "name"))
    phases = tables.select("phases", "process_id", "start_ns", kind.alias("kind"), name.alias("name"))
    programs = phases.filter((pl.col("kind") == "program") & (pl.col("name") == "program"))["process_id"]
    until = phases.filter(pl.col("kind") == "unsampled").group_by("process_id").agg(pl.col("start_ns").min())
    until = until.filter(pl.col("process_id").is_in(programs.implode()))
    if not until.height or until.height < programs.n_unique():
        return begin, end
    return begin, min(end, max(begin, int(until["start_ns"].max())))  # type: ignore[arg-type]


def _find_program_events(
    tables: TraceTables, name: str, profiler: dict[int, IntervalSet], first: int, last: int
) -> tuple[Array, Array]:
    """Return starts and ends of the program's events that start before ``first`` or end after ``last``."""
    events = tables.scan(name)
    if name == "host_ops":
        events = events.filter(~pl.col("category").cast(pl.String).is_in(_NO_WORK))
    thread = ("thread_id",) if name in _ON_THREADS else ()
    outside = (pl.col("start_ns") < first) | (pl.col("end_ns") > last)
    frame = events.select("start_ns", end_ns(), *thread).filter(outside).collect(engine=tables.engine)
    starts, ends = bounds(frame)
    own = np.zeros(starts.size, dtype=bool)
    for number, calls in profiler.items() if thread else ():
        within = calls.contains(starts) & (calls.overlap(starts, ends) == ends - starts)
        own |= within & (frame["thread_id"] == number).fill_null(value=False).to_numpy()
    return starts[~own], ends[~own]


AT_THE_END = 0.01
"""If devices work until less than this share of the capture is left, the work of the last launches ran after it."""


@dataclass(frozen=True, slots=True)
class Unseen:
    """Device activity that was not recorded: over all processes, the latest start, the earliest end, and sums.

    Args:
        begin_ns: Device activity before this time is not known.
        end_ns: Device activity after this time is not known.
        launched_before: Pieces of device work that were launched before the capture.
        without_work: Launches at the ends of the capture without device work.
        reasons: One sentence for each reason.
        sentence: The part that matters for the judged time; empty if little is unknown.
    """

    begin_ns: int
    end_ns: int
    launched_before: int
    without_work: int
    reasons: tuple[str, ...]
    sentence: str


def find_unseen(
    recorded: tuple[int, int],
    windows: dict[int, DeviceWindow],
    lost: dict[int, IntervalSet],
    least_share: float,
    *,
    is_cut: bool = False,
) -> Unseen | None:
    """Return the device activity that was not recorded; None if all was.

    Args:
        recorded: Start and end of the time in which device work was recorded.
        windows: The window of each process.
        lost: Time within the window of each process whose device work was lost.
        least_share: The sentence covers unknown times of at least this share of the recorded time.
        is_cut: True if the user cut a part out of the capture; work under way at its edges is then expected.
    """
    every = list(windows.values())
    begin = max((window.begin_ns for window in every), default=recorded[0])
    end = min((window.end_ns for window in every), default=recorded[1])
    launches = sum(window.lacks_first + window.lacks_last for window in every)
    whole = recorded[1] - recorded[0]
    at_edges = max(begin - recorded[0], recorded[1] - end) < AT_THE_END * whole
    longest = max(lost.values(), key=lambda time: time.total, default=IntervalSet.empty())
    if not len(longest) and (((begin, end) == recorded and not launches) or (is_cut and at_edges)):
        return None
    before = sum(window.launched_before for window in every)
    parts = []
    if begin - recorded[0] >= least_share * whole:
        parts.append(f"in the first {format_ns(begin - recorded[0])}")
    if recorded[1] - end >= least_share * whole:
        parts.append(f"in the last {format_ns(recorded[1] - end)}")
    if longest.total >= least_share * whole:
        parts.append(f"in {counted(len(longest), 'part')} ({format_ns(longest.total)})")
    subject = "device" if len(every) == 1 else "devices"
    sentence = f"What the {subject} did {' and '.join(parts)} of the capture is not known." if parts else ""
    reasons = _list_reasons(recorded, every)
    if len(longest):
        times = f"{format_ns(longest.total)} in {counted(len(longest), 'part')}"
        reason = f"Launches in the middle of the capture have no device work: the profiler lost it ({times})."
        reasons = (reason, *reasons)
    return Unseen(begin, end, before, launches, reasons, sentence)


def _list_reasons(recorded: tuple[int, int], windows: list[DeviceWindow]) -> tuple[str, ...]:
    def of(kind: Callable[[DeviceWindow], int]) -> tuple[list[DeviceWindow], str]:
        found = [window for window in windows if kind(window)]
        return found, "" if len(found) == len(windows) else f" of {len(found)} of {len(windows)} processes"

    reasons = []
    found, whose = of(lambda window: window.launched_before if window.begin_ns > recorded[0] else 0)
    if found:
        work = counted(sum(window.launched_before for window in found), "piece")
        until = format_ns(max(window.begin_ns for window in found))
        reasons.append(
            f"The capture begins with {work} of device work{whose} launched before it: what ran until the first of "
            f"them, at {until}, is not known."
        )
    found, whose = of(lambda window: window.held_up_ns)
    if found:
        wait = format_ns(max(window.held_up_ns for window in found))
        until = format_ns(max(window.begin_ns for window in found))
        reasons.append(
            f"The first device work{whose} waited {wait} after its launch while nothing that was recorded ran: work "
            f"from before the capture held it up, and what the devices did until {until} is not known."
        )
    found, whose = of(lambda window: window.lacks_first)
    if found:
        count, until = sum(window.lacks_first for window in found), format_ns(max(window.begin_ns for window in found))
        reasons.append(
            f"The first {count:,} launches{whose} have no device work: what the devices did until "
            f"{until} was not recorded."
        )
    found, whose = of(lambda window: window.lacks_last)
    if found:
        count, after = sum(window.lacks_last for window in found), format_ns(min(window.end_ns for window in found))
        is_late = recorded[1] - min(window.end_ns for window in found) < AT_THE_END * (recorded[1] - recorded[0])
        why = "it ran after the capture" if is_late else f"what the devices did after {after} was not recorded"
        reasons.append(f"The last {count:,} launches{whose} have no device work: {why}.")
    return (*reasons, "None of this time counts as idle.")
