"""Time in which the devices worked."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import polars as pl

from traceviz.analyses.base import Analysis, finding
from traceviz.analyses.derived.capture.kind import why_idle_is_unknown, why_no_device_work
from traceviz.analyses.derived.causes.attribution import host_causes
from traceviz.analyses.derived.causes.kinds import KIND_LABELS
from traceviz.analyses.derived.device.names import device_names
from traceviz.analyses.derived.device.work import communication_names, kernel_busy
from traceviz.analyses.derived.frames import bounds, having, intervals
from traceviz.analyses.derived.host.classes import IDLE_CLASSES, host_classes, sees_host
from traceviz.analyses.derived.judged_time import judged_time, judged_words
from traceviz.analyses.derived.statistics import ratio
from traceviz.analyses.derived.view import TraceView
from traceviz.core.arrays.intervals import IntervalSet, concurrency
from traceviz.core.units import format_ratio
from traceviz.report import (
    STEADY_STEP_TIME,
    Column,
    Fact,
    Facts,
    Finding,
    Grid,
    Lane,
    Prose,
    Section,
    Skipped,
    Timeline,
)

RECORD_HOST = (
    "Record the host as well, which says what the device waits for: nvprof --print-gpu-trace --print-api-trace, or "
    "nsys profile --trace=cuda,nvtx,osrt."
)
"""Advice for a capture that holds device work only."""

_DURING = {"unexplained": "unexplained: no event of the host covers it"}

KINDS = (
    ("device_compute", "computing"),
    ("communication", "communication alone"),
    ("copy", "copies and fills alone"),
)
"""Kinds of device work, each with its label. Time in which several run counts as the first of them."""

_LAST_NS = np.nextafter(2.0**63, 0.0)
"""The last time of 64 bits that a float can hold. The next float is already 2**63."""


@dataclass(frozen=True, slots=True)
class DeviceTime:
    """One device. Times in nanoseconds; busy is the union over its streams, and busy + idle = span.

    Args:
        device: Its name for readers.
        extent_ns: From its first to its last work.
        span_ns: Time in which its idle time can be seen.
        judged_ns: Steady step time of the processes that use it, else from its first to its last work.
        judged_busy_ns: Busy part of that.
        concurrent_ns: Time with two or more kernels running.
        timeline: Utilisation per equal slice of the capture.
        kinds: Its parts by :data:`KINDS`, which add up to it.
    """

    device: str
    span_ns: int
    extent_ns: int
    busy_ns: int
    judged_ns: int
    judged_busy_ns: int
    concurrent_ns: int
    timeline: tuple[float, ...]
    kinds: tuple[tuple[float, ...], ...] = ()

    @property
    def idle_ns(self) -> int:
        """Recorded time without work."""
        return self.span_ns - self.busy_ns


@dataclass(frozen=True, slots=True)
class DeviceUse:
    """All devices that did work, and the host's activity while they were idle in the judged time.

    ``idle_causes`` is by class, ``kinds`` by kind of cause. These and ``judged_ns`` count a process once for any number
    of devices. While one of them works, the host keeps none waiting. ``window`` is the time in which idle devices can
    be seen. ``host_seen`` is true if the capture holds any events of the host. ``doubt`` states what clock corrections
    mean for idle time. ``is_cut`` is true if device work is not known in a part of the capture.
    """

    devices: tuple[DeviceTime, ...]
    window: tuple[int, int]
    judged_ns: int
    idle_causes: dict[str, int]
    judged_words: str
    kinds: dict[str, int] = field(default_factory=dict)
    host_seen: bool = True
    doubt: str = ""
    is_cut: bool = False

    @property
    def cause(self) -> tuple[str, float]:
        """The kind of cause that explains most of the idle time, and its share of it."""
        kind, time = max(self.kinds.items(), key=lambda item: item[1], default=("unexplained", 0))
        return kind, time / (sum(self.kinds.values()) or 1)


@dataclass(frozen=True, slots=True)
class DeviceUseAnalysis(Analysis[DeviceUse]):
    """Utilisation per device over the capture and over the steady steps.

    Args:
        idle_share: Idle time is a finding from this share of the judged time on,
        unexplained_share: if at least this share has no more specific cause with a rule of its own.
        slices: Slices of the timeline.
    """

    slug = "device_use"
    title = "Device use"
    rules = ("TV201",)

    idle_share: float = 0.5
    unexplained_share: float = 0.05
    slices: int = 60

    def run(self, trace: TraceView) -> DeviceUse | Skipped:
        """Measure busy time."""
        if why := why_no_device_work(trace) or why_idle_is_unknown(trace):
            return self.skipped(why)
        names = device_names(trace)
        devices = tuple(self._device(trace, device, names[device]) for device in trace.device_busy)
        causes = {c.key: 0 for c in IDLE_CLASSES}
        for rank in trace.ranks:
            judged = judged_time(trace, rank)
            for key in causes:
                causes[key] += host_classes(trace)[rank].idle[key].intersect(judged).total
        judged_ns = sum(judged_time(trace, rank).total for rank in trace.ranks)
        words, seen = judged_words(trace), sees_host(trace)
        is_cut = trace.device_window != trace.recorded_window
        by_kind = host_causes(trace).group_by("kind").agg(pl.col("time_ns").sum()).sort("kind") if seen else None
        kinds = dict(by_kind.iter_rows()) if by_kind is not None else {}
        window = trace.device_window
        return DeviceUse(devices, window, judged_ns, causes, words, kinds, seen, trace.clock_doubt, is_cut)

    def _device(self, trace: TraceView, device: int, name: str) -> DeviceTime:
        busy = trace.device_busy[device]
        processes = [process for process, used in trace.owners if used == device]
        judged = IntervalSet.empty().union(*(judged_time(trace, process) for process in processes))
        begin, end = trace.device_window
        own_begin, own_end = trace.window_of_device(device)
        seen = busy.clip(own_begin, own_end)
        edges = np.minimum(np.linspace(begin, end, self.slices + 1), _LAST_NS).astype(np.int64)
        shares, *kinds = (
            tuple(map(float, times.overlap(edges[:-1], edges[1:]) / np.maximum(np.diff(edges), 1)))
            for times in (busy, *_by_kind(trace, device))
        )
        kernels = having(trace.kernel_times, "device_id", device)
        return DeviceTime(
            device=name,
            span_ns=own_end - own_begin,
            extent_ns=int(seen.ends[-1] - seen.starts[0]) if len(seen) else 0,
            busy_ns=seen.total,
            judged_ns=judged.total,
            judged_busy_ns=busy.intersect(judged).total,
            concurrent_ns=concurrency(*bounds(kernels), at_least=2).total,
            timeline=shares,
            kinds=tuple(kinds),
        )

    def judge(self, result: DeviceUse) -> tuple[Finding, ...]:
        """Return TV201 if devices idle for most of the judged time."""
        judged = sum(d.judged_ns for d in result.devices)
        idle = judged - sum(d.judged_busy_ns for d in result.devices)
        unexplained = min(result.idle_causes["host_blocked"] + result.idle_causes["host_compute"], idle)
        whole_ns = result.judged_ns
        if not judged or idle < self.idle_share * judged or unexplained < self.unexplained_share * whole_ns:
            return ()
        kind, share = result.cause
        during = (
            f"most of it {_DURING.get(kind, f'during: {KIND_LABELS[kind]}')} ({format_ratio(share)} of the idle time)"
        )
        count = len(result.devices)
        devices = "The device is" if count == 1 else f"The {count} devices are, on average,"
        message = (
            f"{devices} idle in {format_ratio(idle / judged)} of the {result.judged_words}, "
            f"{during if result.host_seen else 'and what the host did meanwhile was not recorded'}."
        )
        evidence = (
            Fact("idle_ns", "idle time, all devices", idle, "ns"),
            Fact("judged_ns", f"{result.judged_words}, all devices", judged, "ns"),
            Fact("unexplained_ns", "idle without a more specific cause", unexplained, "ns"),
        )
        # Rules of specific causes report their own idle time; this rule reports the rest.
        advice = None if result.host_seen else (RECORD_HOST,)
        return (finding("TV201", message, evidence, unexplained, whole_ns, result.judged_words, advice=advice),)

    def describe(self, result: DeviceUse) -> Section:
        """Describe totals, one row per device, and utilisation over time."""
        busy, idle = sum(d.busy_ns for d in result.devices), sum(d.idle_ns for d in result.devices)
        whole = "time seen" if result.is_cut else "captured time"
        facts = (
            Fact("busy_ns", "busy, all devices", busy, "ns"),
            Fact("idle_ns", "idle, all devices", idle, "ns"),
            Fact("span_ns", whole, result.window[1] - result.window[0], "ns"),
            Fact("utilisation", "utilisation", ratio(busy, busy + idle), "ratio"),
        )
        judged = "steady steps" if result.judged_words == STEADY_STEP_TIME else "active time"
        columns = (
            Column("device", "Device", "text", 0),
            Column("busy_ns", "Busy", "ns", 0),
            Column("idle_ns", "Idle", "ns", 2),
            Column("utilisation", f"Of {whole}", "ratio", 1, bar=True, additive=False),
            Column("judged_utilisation", f"Of {judged}", "ratio", 0, bar=True, additive=False),
            Column("concurrent_ns", "≥ 2 kernels", "ns", 3),
            Column("extent_ns", "Extent", "ns", 4),
            Column("inner_idle_ns", "Idle therein", "ns", 4),
        )
        rows = tuple(
            (
                *(d.device, d.busy_ns, d.idle_ns, ratio(d.busy_ns, d.span_ns), ratio(d.judged_busy_ns, d.judged_ns)),
                *(d.concurrent_ns, d.extent_ns, d.extent_ns - d.busy_ns),
            )
            for d in result.devices
        )
        lanes = tuple(
            Lane(
                d.device,
                d.timeline,
                parts=tuple(
                    (key, label, tuple(round(share, 2) for share in shares))
                    for (key, label), shares in zip(KINDS, d.kinds, strict=True)
                    if any(shares)
                ),
            )
            for d in result.devices
        )
        timeline = Timeline("Utilisation over the capture", *result.window, lanes)
        doubt = (Prose(result.doubt),) if result.doubt else ()
        return Section(self.slug, self.title, (Facts(facts), *doubt, Grid(columns, rows), timeline))


def _by_kind(trace: TraceView, device: int) -> tuple[IntervalSet, ...]:
    """Return the disjoint busy times of a device, one per kind."""
    busy, nothing = trace.device_busy[device], IntervalSet.empty()
    kernels = kernel_busy(trace).get(device, nothing)
    computes, communicates = kernels, nothing
    if names := communication_names(trace):
        is_named = pl.col("name").cast(pl.String).is_in(names)
        columns = ("start_ns", "dur_ns", "device_id", is_named.alias("communicates"))
        own = having(trace.frame("kernels", *columns), "device_id", device)
        communicates = intervals(own.filter(pl.col("communicates")))
        graphs = having(trace.frame("graphs", "start_ns", "dur_ns", "device_id"), "device_id", device)
        computes = intervals(own.filter(~pl.col("communicates"))).union(intervals(graphs))
    return computes, communicates.subtract(computes), busy.subtract(kernels)
