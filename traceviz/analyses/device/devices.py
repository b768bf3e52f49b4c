"""Devices: those available to the program, those used, and how far kernels fill them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import polars as pl

from traceviz.analyses.base import Analysis, by_knowledge, finding
from traceviz.analyses.derived.capture.kind import why_no_device_work
from traceviz.analyses.derived.device.names import device_names
from traceviz.analyses.derived.device.occupancy import kernel_shapes
from traceviz.analyses.derived.device.work import computing, kernel_busy
from traceviz.analyses.derived.frames import end_ns, having, unions_by
from traceviz.analyses.derived.grouped import Groups
from traceviz.analyses.derived.judged_time import judged_time, judged_words
from traceviz.analyses.derived.patterns import matching
from traceviz.analyses.derived.statistics import ratio
from traceviz.analyses.derived.steps.serving import engine_calls
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.device.pools import highest_use
from traceviz.core.arrays.intervals import IntervalSet, union_all
from traceviz.core.units import format_ns, format_ratio
from traceviz.report import Column, Fact, Finding, Grid, Row, Section, Skipped
from traceviz.report.findings.record import WARNING_SHARE
from traceviz.trace.names.kernel_names import COMMUNICATION


@dataclass(frozen=True, slots=True)
class Device:
    """One device that the trace names; times in nanoseconds.

    Args:
        name: Its name for readers.
        kernels: Kernels that ran on it.
        kernel_ns: Time in which kernels (or graphs recorded as a whole) run: the union over its streams.
        small_ns: Sum of the durations of kernels with fewer blocks than the device has multiprocessors.
        sized_ns: Sum of the durations of kernels whose grid is known, on a device whose number of multiprocessors is
            known.
        sm_count: Streaming multiprocessors.
        memory_bytes: Its memory.
    """

    name: str
    kernels: int
    kernel_ns: int
    small_ns: int
    sized_ns: int
    sm_count: int | None
    memory_bytes: int | None

    @property
    def computes(self) -> bool:
        """True if anything but copies and fills ran on it."""
        return self.kernels > 0 or self.kernel_ns > 0


@dataclass(frozen=True, slots=True)
class Devices:
    """All devices that the trace names.

    Args:
        devices: In their order.
        framework: True if a framework recorded them. The program could then use each of them, and the machine may have
            more.
        one_of_many: True if the program is one rank of several, or an engine that serves. Others then use the other
            devices.
        means_several: True if the program does something that only makes sense on several devices, and is no rank of a
            job with a stated number of ranks.
        whole: True if the trace is the whole capture. Outside a time window, other devices may compute.
        busy_ns: Kernel time within the judged time, over the devices.
        small_busy_ns: The part of it in which only small grids run.
        judged_ns: Judged time, once for each device that computes.
        judged_words: Text that names the judged time.
        used_share: Highest use of device memory as a share of its capacity, over the pools; ``None`` if not recorded.
        seen: True if their work was captured.
    """

    devices: tuple[Device, ...]
    framework: bool
    one_of_many: bool
    means_several: bool
    whole: bool
    busy_ns: int
    small_busy_ns: int
    judged_ns: int
    judged_words: str
    used_share: float | None
    seen: bool = True

    @property
    def computing(self) -> int:
        """Devices on which kernels or graphs ran."""
        return sum(device.computes for device in self.devices)


@dataclass(frozen=True, slots=True)
class DevicesAnalysis(Analysis[Devices]):
    """Devices visible and used, and kernels too small for them.

    Args:
        computing: If at most this many devices compute, the others count as unused.
        limiting_share: Unused devices are a finding if kernels run in at least this share of the judged time. If the
            device in use waits for input or launches, more devices would wait as well.
        small_share: Grids too small for the device are a finding from this share of the judged time on,
        free_share: if at least this share of the device's memory was never in use.
    """

    slug = "devices"
    title = "Devices"
    rules = ("TV408", "TV409")

    computing: int = 1
    limiting_share: float = 0.75
    small_share: float = WARNING_SHARE
    free_share: float = 0.5

    def run(self, trace: TraceView) -> Devices | Skipped:
        """Inspect every device that the trace names."""
        table = trace.frame("devices", "device_id", "kind", "sm_count", "memory_bytes").filter(pl.col("kind") != "cpu")
        if not table.height:
            return self.skipped("the trace names no accelerator")
        shapes, busy = _by_size(trace, table), kernel_busy(trace)
        full = _in_full_grids(trace, shapes["small"].fill_null(value=False))
        owners = Groups.of(computing(trace, "device_id", "process_id"), "device_id", "process_id").keys
        processes = owners.group_by("device_id").agg("process_id")
        judged = {
            device: union_all(judged_time(trace, int(process)) for process in own)
            for device, own in processes.iter_rows()
        }
        inside = {device: busy[device].intersect(window) for device, window in judged.items()}
        small = sum(own.subtract(full[device]).total if device in full else own.total for device, own in inside.items())
        # The trace states that the job has several ranks, or its kernels exchange data with them.
        sizes = having(trace.frame("settings", "key", "value"), "key", WORLD_SIZE)["value"]
        has_other_ranks = bool((sizes.cast(pl.Int64, strict=False) > 1).any())
        is_rank = bool(sizes.len())  # it takes one device by design; more ranks would use the others
        has_other_ranks |= any(kernel.family == COMMUNICATION for kernel in trace.kernel_classes.values())
        return Devices(
            devices=_per_device(trace, table, shapes),
            framework="host_ops" in trace.tables,
            one_of_many=has_other_ranks or bool(engine_calls(trace).height),
            means_several=not is_rank and bool(matching(trace.host_names["name"], FOR_SEVERAL).any()),
            whole=not trace.is_window,
            busy_ns=sum(own.total for own in inside.values()),
            small_busy_ns=small,
            judged_ns=sum(window.total for window in judged.values()),
            judged_words=judged_words(trace),
            used_share=highest_use(trace),
            seen=not why_no_device_work(trace),
        )

    def judge(self, result: Devices) -> tuple[Finding, ...]:
        """Return findings on devices that do not compute, and on kernels too small for a device with free memory."""
        return (*self._unused(result), *self._small(result))

    def _unused(self, result: Devices) -> tuple[Finding, ...]:
        visible, used = len(result.devices), result.computing
        if not (result.framework and result.whole) or result.one_of_many:
            return ()
        if not 0 < used <= self.computing or used == visible:
            return ()
        if result.busy_ns < self.limiting_share * result.judged_ns:
            return ()
        saved = round(result.busy_ns * (1 - used / visible))
        message = (
            f"The program can use {visible} devices and computes on {used}: {format_ns(result.busy_ns)} of kernels "
            f"would at best take {format_ns(result.busy_ns * used / visible)} on all of them."
        )
        evidence = (
            Fact("visible", "devices visible", visible, "count"),
            Fact("computing", "devices that compute", used, "count"),
            Fact("busy_ns", "kernel time", result.busy_ns, "ns"),
        )
        is_hint = not result.means_several  # serving or trying something out on one of eight devices is no mistake
        return (finding("TV408", message, evidence, saved, result.judged_ns, result.judged_words, is_hint=is_hint),)

    def _small(self, result: Devices) -> tuple[Finding, ...]:
        if result.used_share is None or 1 - result.used_share < self.free_share or not result.judged_ns:
            return ()
        if result.small_busy_ns < self.small_share * result.judged_ns:
            return ()
        message = (
            f"In {format_ratio(result.small_busy_ns / result.judged_ns)} of the {result.judged_words} only kernels run "
            f"that have fewer blocks than the device has multiprocessors, and {format_ratio(1 - result.used_share)} of "
            "its memory was never in use: there is room for a larger batch."
        )
        evidence = (
            Fact("small_busy_ns", "only small grids running", result.small_busy_ns, "ns"),
            Fact("busy_ns", "kernel time", result.busy_ns, "ns"),
            Fact("free_share", "memory never in use", 1 - result.used_share, "ratio"),
        )
        return (finding("TV409", message, evidence, result.small_busy_ns, result.judged_ns, result.judged_words),)

    def describe(self, result: Devices) -> Section:
        """Describe the number of devices that compute, with one row per device."""
        sized = sum(device.sized_ns for device in result.devices)
        small = sum(device.small_ns for device in result.devices)
        counts = (
            Fact("visible", "devices named", len(result.devices), "count"),
            Fact("computing", "devices that compute", result.computing if result.seen else None, "count"),
        )
        shares = (
            Fact("small_grid_share", "kernel time in grids smaller than the device", ratio(small, sized), "ratio"),
            Fact("memory_used_share", "highest use of device memory", result.used_share, "ratio"),
        )
        shown = _folded(result.devices)
        rows = _rows(result.devices, seen=result.seen)
        complete = Grid(_COLUMNS, rows, audience="all" if shown is None else "machine")
        shorter = () if shown is None else (Grid(_COLUMNS, _rows(shown, seen=result.seen)),)
        return Section(self.slug, self.title, (*by_knowledge((*counts, *shares)), complete, *shorter))


_COLUMNS = (
    Column("device", "Device", "text", 0),
    Column("kernels", "Kernels", "count", 0),
    Column("kernel_ns", "Kernel time", "ns", 0),
    Column("small_grid_share", "In small grids", "ratio", 1),
    Column("sm_count", "SMs", "count", 2),
    Column("memory_bytes", "Memory", "bytes", 2),
)


def _rows(devices: tuple[Device, ...], *, seen: bool) -> tuple[Row, ...]:
    return tuple(
        (
            *(device.name, device.kernels if seen else None, device.kernel_ns if seen else None),
            *(ratio(device.small_ns, device.sized_ns), device.sm_count, device.memory_bytes),
        )
        for device in devices
    )


def _folded(devices: tuple[Device, ...]) -> tuple[Device, ...] | None:
    """Return the devices with unused ones in one row; ``None`` unless several are unused and all are of one make."""
    used = [device for device in devices if device.computes]
    unused = [device for device in devices if not device.computes]
    makes = {(device.sm_count, device.memory_bytes) for device in unused}
    if not used or len(unused) < 2 or len(makes) > 1:
        return None
    return (*used, replace(unused[0], name=f"{len(unused)} others"))


FOR_SEVERAL = (
    r"DataParallel|parallel_apply|ReplicateBackward|BroadcastBackward|comm::broadcast_coalesced"
    r"|MirroredStrategy|CollectiveReduce|CollectiveGather|NcclAllReduce|CrossReplica|xla_pmap|PmapFunction|shard_map"
)
"""Names of operations, annotations and Python frames of programs that use several devices on purpose."""

WORLD_SIZE = "distributedInfo.world_size"
"""Setting by which a PyTorch trace states the number of ranks of its job."""


def _by_size(trace: TraceView, devices: pl.DataFrame) -> pl.DataFrame:
    """Group kernels by launch shape: ``device_id, calls, dur_ns``, and ``small`` grids (null if not known).

    The size of kernels in graphs that were recorded as a whole is not known. These graphs do not count as kernels.
    """
    shapes = kernel_shapes(trace).groups
    joined = shapes.keys.join(devices.select("device_id", "sm_count"), "device_id", how="left", maintain_order="left")
    blocks = pl.col("grid_x").cast(pl.Int64) * pl.col("grid_y") * pl.col("grid_z")
    durations = trace.kernel_times["dur_ns"].fill_null(0).to_numpy()
    times = pl.Series("calls", shapes.counts), pl.Series("dur_ns", shapes.sums(durations))
    return joined.select("device_id", *times, (blocks < pl.col("sm_count")).alias("small"))


def _in_full_grids(trace: TraceView, is_small: pl.Series) -> dict[int, IntervalSet]:
    """Return the time with kernels of launch shapes that are not ``is_small``, or with graphs, by ``device_id``."""
    if not is_small.any():
        return kernel_busy(trace)
    of_kernels = is_small.to_numpy()[kernel_shapes(trace).groups.codes]
    columns = ("start_ns", "end_ns", "device_id")
    graphs = trace.frame("graphs", "start_ns", end_ns(), "device_id")
    full = trace.kernel_times.select(columns).filter(pl.Series(~of_kernels, dtype=pl.Boolean))
    return unions_by(pl.concat([full, graphs]), "device_id")


def _per_device(trace: TraceView, table: pl.DataFrame, shapes: pl.DataFrame) -> tuple[Device, ...]:
    names = device_names(trace)
    busy = kernel_busy(trace)
    sums = shapes.group_by("device_id").agg(
        pl.col("calls").sum().alias("kernels"),
        pl.col("dur_ns").filter(pl.col("small")).sum().alias("small_ns"),
        pl.col("dur_ns").filter(pl.col("small").is_not_null()).sum().alias("sized_ns"),
    )
    counts = pl.col("kernels", "small_ns", "sized_ns").fill_null(0)
    rows = table.join(sums, on="device_id", how="left").sort("device_id").with_columns(counts)
    return tuple(
        Device(
            name=names[row["device_id"]],
            kernels=row["kernels"],
            kernel_ns=busy[row["device_id"]].total if row["device_id"] in busy else 0,
            small_ns=row["small_ns"],
            sized_ns=row["sized_ns"],
            sm_count=row["sm_count"],
            memory_bytes=row["memory_bytes"],
        )
        for row in rows.iter_rows(named=True)
    )
