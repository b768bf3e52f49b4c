"""Compiled programs on devices (XLA modules): executions, steps, and device time by class.

A TPU core runs one op at a time, so every moment of a device belongs to one class. The device waits for infeed, sends
outfeed, communicates, waits for an asynchronous operation, computes, or idles::

    modules   |---- jit_train ----|   |---- jit_train ----|
    ops       |infeed|fusion|a-red|   |infeed|fusion|a-red|
    class     | wait |compute|comm|idle| ...
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from traceviz.analyses.base import Analysis, finding
from traceviz.analyses.derived.device.names import device_names
from traceviz.analyses.derived.frames import having, intervals, knowing, parts_by
from traceviz.analyses.derived.recorded.xla_ops import XlaRole
from traceviz.analyses.derived.statistics import CALLS, DURATION_COLUMNS, TOTAL, frame_grid, ratio, share, totals_by
from traceviz.analyses.derived.view import TraceView
from traceviz.core.arrays.intervals import IntervalSet, exclusive
from traceviz.core.units import counted, format_ns, format_ratio
from traceviz.report import Column, Fact, Facts, Finding, Grid, Section, Skipped, hide_columns

CLASSES: dict[str, XlaRole] = {
    "infeed_ns": "infeed",
    "outfeed_ns": "outfeed",
    "collective_ns": "communication",
    "async_wait_ns": "transfer",
    "compute_ns": "compute",
}
"""Classes of a device's time by priority, and the role of the operations that make them."""

IDLE = "idle_ns"
WAIT = "async_wait_ns"


@dataclass(frozen=True, slots=True)
class DeviceProgram:
    """One device. Times in nanoseconds; the classes are disjoint and add up to the window.

    Args:
        device: Its name for readers.
        executions: Modules executed.
        steps: Steps of the device: declared, else executions of the module that repeats most.
        step_ns: Median step, start to start if modules repeat; ``None`` with fewer than two steps.
        window_ns: The device's steps if it declares any, else from its first to its last module.
        times: Time of each class of :data:`CLASSES` and of idling, within the window.
        async_ns: Time in which asynchronous operations (copies) are under way; it overlaps the classes.
    """

    device: str
    executions: int
    steps: int
    step_ns: float | None
    window_ns: int
    times: Mapping[str, int]
    async_ns: int


@dataclass(frozen=True, slots=True)
class ProgramTimes:
    """Devices in order; modules, and operations that end asynchronous ones, by name. The largest total comes first."""

    devices: tuple[DeviceProgram, ...]
    modules: pl.DataFrame
    waits: pl.DataFrame

    def total(self, key: str) -> int:
        """Return the sum of class ``key`` over the devices."""
        return sum(device.times[key] for device in self.devices)

    @property
    def window_ns(self) -> int:
        """Sum of the devices' windows."""
        return sum(device.window_ns for device in self.devices)


@dataclass(frozen=True, slots=True)
class DeviceProgramsAnalysis(Analysis[ProgramTimes]):
    """Activity of each TPU (or other device that records its programs).

    Args:
        infeed_share: Waiting for infeed is a finding from this share of the devices' time on.
        copy_share: Waiting for asynchronous copies is a finding from this share of the devices' time on.
    """

    slug = "device_programs"
    title = "Device programs"
    rules = ("TV404", "TV410")

    infeed_share: float = 0.05
    copy_share: float = 0.05

    def run(self, trace: TraceView) -> ProgramTimes | Skipped:
        """Classify the ops of each device within its window."""
        columns = ("start_ns", "dur_ns", "device_id", "name", "kind")
        spans = trace.frame("device_ops", *columns).with_columns(pl.col("name", "kind").cast(pl.String))
        modules = having(spans, "kind", "module")
        if not modules.height:
            return self.skipped("the devices record no programs (XLA modules)")
        ops = trace.xla_kernels
        steps = knowing(trace.frame("steps", "start_ns", "dur_ns", "device_id"), "device_id")
        names = device_names(trace)
        devices = tuple(
            _device(names[device], own, *(having(frame, "device_id", device) for frame in (ops, steps, spans)))
            for device, own in parts_by(modules, "device_id").items()
        )
        waits = having(ops, "role", CLASSES[WAIT])
        return ProgramTimes(devices, totals_by(modules, "name"), totals_by(waits, "name"))

    def judge(self, result: ProgramTimes) -> tuple[Finding, ...]:
        """Return findings on devices that wait for infeed, or for copies that they started themselves."""
        return (*self._infeed(result), *self._copies(result))

    def _infeed(self, result: ProgramTimes) -> tuple[Finding, ...]:
        infeed, window = result.total("infeed_ns"), result.window_ns
        if not window or infeed < self.infeed_share * window:
            return ()
        worst = max(result.devices, key=lambda device: ratio(device.times["infeed_ns"], device.window_ns) or 0)
        message = (
            f"The devices wait for infeed in {format_ratio(infeed / window)} of their time, "
            f"{worst.device} in {format_ratio(ratio(worst.times['infeed_ns'], worst.window_ns) or 0)}."
        )
        if len(result.devices) == 1:
            message = f"{worst.device} waits for infeed in {format_ratio(infeed / window)} of its time."
        evidence = (
            Fact("infeed_ns", "waiting for infeed", infeed, "ns"),
            Fact("window_ns", "time of the devices", window, "ns"),
            Fact("idle_ns", "idle besides", result.total(IDLE), "ns"),
        )
        return (finding("TV404", message, evidence, infeed, window, "time of the devices"),)

    def _copies(self, result: ProgramTimes) -> tuple[Finding, ...]:
        waited, window = result.total(WAIT), result.window_ns
        if not window or waited < self.copy_share * window:
            return ()
        largest = result.waits[["name", "calls", "total_ns"]].head(3).rows()
        alone = len(result.devices) == 1
        who, whose = (f"{result.devices[0].device} waits", "its") if alone else ("The devices wait", "their")
        message = (
            f"{who} for asynchronous copies in {format_ratio(waited / window)} of {whose} time, most of all "
            f"in {largest[0][0]} ({counted(largest[0][1], 'call')}, {format_ns(largest[0][2])}): nothing is left to "
            "compute meanwhile."
        )
        evidence = (
            Fact("async_wait_ns", "waiting for copies", waited, "ns"),
            Fact("compute_ns", "computing", result.total("compute_ns"), "ns"),
            Fact("window_ns", "time of the devices", window, "ns"),
            *(Fact(f"wait_{place}_ns", name, total, "ns") for place, (name, _, total) in enumerate(largest, 1)),
        )
        return (finding("TV410", message, evidence, waited, window, "time of the devices"),)

    def describe(self, result: ProgramTimes) -> Section:
        """Describe totals over the devices, and rows per device, module, and operation that waits for another."""
        whole = result.window_ns
        facts = (
            Fact("devices", "devices", len(result.devices), "count"),
            Fact("executions", "programs executed", sum(device.executions for device in result.devices), "count"),
            Fact("window_ns", "time of the devices", whole, "ns"),
            *(Fact(f"{key[:-3]}_share", label, ratio(result.total(key), whole), "ratio") for key, label in _LABELS),
        )
        rows = tuple(
            (
                *(device.device, device.executions, device.steps, device.step_ns, device.window_ns),
                *(device.times[key] for key, _ in _LABELS),
                device.async_ns,
            )
            for device in result.devices
        )
        columns = (Column("name", "Program", "text", 0), CALLS, TOTAL, *DURATION_COLUMNS)
        steps = {"steps", "step_ns"} if all(device.step_ns is None for device in result.devices) else set[str]()
        grids = (
            Grid(hide_columns(_COLUMNS, steps), rows),
            frame_grid(columns, result.modules, "By program"),
            *_waits(result),
        )
        return Section(self.slug, self.title, (Facts(facts), *grids))


_LABELS = (
    ("compute_ns", "computing"),
    ("infeed_ns", "waiting for infeed"),
    ("outfeed_ns", "outfeed"),
    ("collective_ns", "collectives"),
    ("async_wait_ns", "waiting for asynchronous work"),
    (IDLE, "idle"),
)


def _waits(result: ProgramTimes) -> tuple[Grid, ...]:
    """Return the operations that the devices waited for, if any."""
    whole = int(result.waits["total_ns"].sum())
    if not whole:
        return ()
    frame = result.waits.with_columns(share("total_ns", whole, "share_of_wait"))
    columns = (
        Column("name", "Operation", "text", 0),
        *(CALLS, TOTAL, Column("share_of_wait", "Of the wait", "ratio", 0, bar=True)),
        *DURATION_COLUMNS,
    )
    return (frame_grid(columns, frame, "Asynchronous work waited for", fold_below=0.01),)


_COLUMNS = (
    Column("device", "Device", "text", 0),
    Column("executions", "Programs", "count", 2),
    Column("steps", "Steps", "count", 3),
    Column("step_ns", "Step, median", "ns", 0),
    Column("window_ns", "Time", "ns", 4),
    Column("compute_ns", "Compute", "ns", 0),
    Column("infeed_ns", "Infeed wait", "ns", 0),
    Column("outfeed_ns", "Outfeed", "ns", 3),
    Column("collective_ns", "Collectives", "ns", 1),
    Column("async_wait_ns", "Async wait", "ns", 1),
    Column("idle_ns", "Idle", "ns", 0),
    Column("async_ns", "Async under way", "ns", 5),
)


def _device(
    name: str, modules: pl.DataFrame, ops: pl.DataFrame, steps: pl.DataFrame, spans: pl.DataFrame
) -> DeviceProgram:
    marks = steps.filter(pl.col("dur_ns") > 0)
    window = intervals(marks)
    if not len(window):
        ends = (modules["start_ns"] + modules["dur_ns"].fill_null(0)).max()
        window = IntervalSet.span(int(modules["start_ns"].min()), int(ends))  # type: ignore[arg-type]
    layers = [(key, intervals(having(ops, "role", role))) for key, role in CLASSES.items()]
    start, end = (int(window.starts[0]), int(window.ends[-1])) if len(window) else (0, 0)
    owned = exclusive(layers, start, end, IDLE)
    count, step_ns = _steps(marks, modules)
    return DeviceProgram(
        device=name,
        executions=modules.height,
        steps=count,
        step_ns=step_ns,
        window_ns=window.total,
        times={key: owner.intersect(window).total for key, owner in owned.items()},
        async_ns=intervals(having(spans, "kind", "async_op")).total,
    )


def _steps(marks: pl.DataFrame, modules: pl.DataFrame) -> tuple[int, float | None]:
    """Return number and median duration of declared steps, else of the most repeated module, start to start."""
    if marks.height:
        return marks.height, float(marks["dur_ns"].median())  # type: ignore[arg-type]
    counts = modules.group_by("name").agg(pl.len(), pl.col("dur_ns").sum()).sort("len", "dur_ns", "name")
    repeating = having(modules, "name", counts["name"][-1]).sort("start_ns")
    if repeating.height < 2:
        return repeating.height, None
    return repeating.height, float(repeating["start_ns"].diff().median())  # type: ignore[arg-type]
