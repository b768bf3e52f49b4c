"""Time series of the host and its GPUs, the machine, and the judged time.

Amounts of CPU time are sampled in percent of one core. Readers store metrics under the names listed here. Others (for
example counters of a GPU) belong to other analyses.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from traceviz.analyses.derived.capture.unused_devices import UTILISATION
from traceviz.analyses.derived.judged_time import steady_time
from traceviz.analyses.derived.view import TraceView
from traceviz.core.arrays.intervals import union_all

Floats = npt.NDArray[np.float64]
Times = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Scale = Literal["cores", "percent", "device_memory", "highest"]
"""Kind of amount for full height in the picture of a metric."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric that the report shows.

    Args:
        name: Name in table ``samples``.
        label: Name for readers.
        scale: Kind of amount for full height in its picture; ``None`` for a metric without picture.
        whole: Text that names 100 % (a core, a thread), for readers; empty if it is the whole of something.
    """

    name: str
    label: str
    scale: Scale | None = None
    whole: str = ""


PROGRAM_CPU = "program CPU"
PROFILER_CPU = "profiler CPU"
PROGRAM_MEMORY = "program memory"
PROGRAM_THREADS = "program threads"
PROGRAM_PROCESSES = "program processes"
PROGRAM_READ = "program read"
RUNNABLE = "program runnable threads"
QUEUED = "program waits for a core"
BUSIEST_THREAD = "program busiest thread"
MACHINE_CPU = "machine CPU"
MACHINE_RUNNABLE = "machine runnable threads"
THROTTLED = "CPU limit throttles"
PROCESS_CPU = "process CPU"
PROCESS_MEMORY = "process memory"
GPU_UTILISATION = UTILISATION
CORE = r"^core (\d+)$"

METRICS: tuple[Metric, ...] = (
    Metric(PROGRAM_CPU, "CPU, program", "cores", "core"),
    Metric(PROFILER_CPU, "CPU, profiler", None, "core"),
    Metric(MACHINE_CPU, "CPU, machine", None, "core"),
    Metric("machine busiest core", "busiest core", "percent"),
    Metric(BUSIEST_THREAD, "busiest thread", "percent"),
    Metric(PROGRAM_MEMORY, "memory", "highest"),
    Metric("machine memory available", "memory left, machine"),
    Metric(PROGRAM_THREADS, "threads", "highest"),
    Metric(RUNNABLE, "threads that want a core"),
    Metric(QUEUED, "threads that wait for a core", None, "thread"),
    Metric(MACHINE_RUNNABLE, "threads that want one, machine"),
    Metric(PROGRAM_PROCESSES, "processes"),
    Metric(PROGRAM_READ, "read", "highest"),
    Metric("program write", "write"),
    Metric("program voluntary switches", "switches, voluntary"),
    Metric("program involuntary switches", "switches, involuntary"),
    Metric(THROTTLED, "held back by CPU limit", None, "core"),
    Metric(GPU_UTILISATION, "utilisation", "percent"),
    Metric("GPU memory used", "memory", "device_memory"),
    Metric("GPU power", "power", "highest"),
    Metric("SM clock", "SM clock"),
    Metric("memory clock", "memory clock"),
    Metric("GPU temperature", "temperature"),
    Metric("PCIe receive", "PCIe receive"),
    Metric("PCIe transmit", "PCIe transmit"),
)
"""Metrics of the report, in its order."""

HOST_METRICS = frozenset(
    {metric.name for metric in METRICS if metric.name.startswith(("program", "machine"))} | {THROTTLED}
)
"""Metrics of the host. A trace without any of them has no data on its resources."""


@dataclass(frozen=True, slots=True)
class Series:
    """One metric over time, of a device or (``None``) the host; times in nanoseconds."""

    metric: Metric
    unit: str
    device_id: int | None
    times: Times
    values: Floats

    def within(self, window: tuple[int, int]) -> Floats:
        """Return values in a window of time, or near it: see :meth:`mask`."""
        return self.values[self.mask(window)]

    def mask(self, window: tuple[int, int]) -> Mask:
        """Return a mask of samples for a window of time. A short one has the nearest, as training continues around it.

        No sample is in the mask if fewer than :data:`FEW` lie within :data:`NEAR_NS` of the window.
        """
        distances = np.maximum(window[0] - self.times, self.times - window[1])
        near = np.argsort(distances, kind="stable")[:FEW]
        if near.size < FEW or distances[near[-1]] > NEAR_NS:
            return np.zeros(distances.size, np.bool_)
        return distances <= max(0, int(distances[near[-1]]))

    def inside(self, window: tuple[int, int]) -> int:
        """Count samples that end within a window of time. Each covers the time since the one before it."""
        return int(np.count_nonzero((self.times > window[0]) & (self.times <= window[1])))

    def mean(self, window: tuple[int, int]) -> float | None:
        """Return the mean of the samples that end within a window of time; ``None`` if none does."""
        values = self.values[(self.times > window[0]) & (self.times <= window[1])]
        return float(values.mean()) if values.size else None


FEW = 5
"""Least number of samples that represent a window of time."""
NEAR_NS = 3_000_000_000
"""Samples further away do not represent the window."""


def all_series(trace: TraceView) -> tuple[Series, ...]:
    """Return every sampled metric of :data:`METRICS` in their order, those of the host first.

    If several programs were sampled (the nodes of a job), a series holds the values of all.
    """
    columns = ("start_ns", "device_id", "metric", "unit", "value")
    metrics = {metric.name: metric for metric in METRICS}
    frame = trace.frame("samples", *columns).with_columns(pl.col("metric", "unit").cast(pl.String))
    frame = frame.filter(pl.col("metric").is_in(list(metrics))).sort("start_ns", "metric", "device_id", "value")
    parts = frame.partition_by("metric", "device_id", as_dict=True, maintain_order=True)
    series = [
        Series(
            metrics[str(metric)],
            str(part["unit"][0]),
            None if device is None else int(device),
            part["start_ns"].to_numpy(),
            part["value"].to_numpy(),
        )
        for (metric, device), part in parts.items()
    ]
    order = {metric.name: number for number, metric in enumerate(METRICS)}
    return tuple(sorted(series, key=lambda s: (-1 if s.device_id is None else s.device_id, order[s.metric.name])))


def count_instants(trace: TraceView) -> int:
    """Count moments at which something of the host was measured."""
    names = HOST_METRICS | {PROCESS_CPU, PROCESS_MEMORY, PROFILER_CPU}
    rows = trace.frame("samples", "start_ns", "device_id", "metric").filter(pl.col("device_id").is_null())
    metric = pl.col("metric").cast(pl.String)
    return rows.filter(metric.is_in(list(names)) | metric.str.contains(CORE))["start_ns"].n_unique()


def mean_of_slices(series: Series, span_ns: int, slices: int) -> tuple[float | None, ...]:
    """Return the mean in each of ``slices`` equal slices of the capture; ``None`` if nothing was sampled.

    A sample covers the time since the sample before it. Slices between the two have its value, unless the sampler
    paused there.
    """
    if span_ns <= 0:
        return (None,) * slices
    slot = np.clip(series.times * slices // span_ns, 0, slices - 1)
    counts = np.bincount(slot, minlength=slices)
    means = np.bincount(slot, series.values, minlength=slices) / np.maximum(counts, 1)
    middles = (np.arange(slices) * 2 + 1) * span_ns // (2 * slices)
    later = np.searchsorted(series.times, middles)
    between = (later > 0) & (later < series.times.size)
    later = np.where(between, later, 0)
    gaps = series.times[later] - series.times[np.maximum(later - 1, 0)]
    usual = np.median(np.diff(series.times)) if series.times.size > 1 else 0
    filled = (counts == 0) & between & (gaps <= PAUSE * usual)
    values = np.where(filled, series.values[later], means)
    known = (counts > 0) | filled
    return tuple(float(value) if is_known else None for value, is_known in zip(values, known, strict=True))


PAUSE = 4
"""Samples that are this many times as far apart as usual have a pause between them."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine of the program, as far as the trace states it.

    Args:
        cores: Logical cores of the machine.
        usable: Cores that affinity and the limit of its container leave to the program.
        physical: Physical cores.
        sockets: Processor packages.
        memory_bytes: Memory that the program may use.
        cost: Share of one core that sampling took.
        start_ns: CPU time that the sampler took to start; not part of ``cost``.
        settings: All settings by key.
    """

    cores: int | None = None
    usable: float | None = None
    physical: int | None = None
    sockets: int | None = None
    memory_bytes: int | None = None
    cost: float | None = None
    start_ns: int | None = None
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def full_speed(self) -> float | None:
        """Busy cores at which arithmetic runs at full speed: one thread on each physical core."""
        known = [float(cores) for cores in (self.physical, self.usable) if cores]
        return min(known, default=None)


def machine(trace: TraceView) -> Machine:
    """Return the machine as table ``settings`` describes it."""
    rows = trace.frame("settings", "key", "value").sort("key", "value").unique("key", keep="first", maintain_order=True)
    settings = dict(rows.iter_rows())
    cores = _number(settings, "machine.cores")
    limits = [_number(settings, f"machine.{key}") for key in ("usable_cores", "cpu_limit", "cores")]
    memory = [_number(settings, f"machine.{key}") for key in ("memory_limit_bytes", "memory_bytes")]
    return Machine(
        cores=_whole(cores),
        usable=min((limit for limit in limits if limit), default=None),
        physical=_whole(_number(settings, "machine.physical_cores")),
        sockets=_whole(_number(settings, "machine.sockets")),
        memory_bytes=_whole(min((amount for amount in memory if amount), default=None)),
        cost=_number(settings, "resources.cost"),
        start_ns=_whole(_number(settings, "resources.start_ns")),
        settings=settings,
    )


def _number(settings: Mapping[str, str], key: str) -> float | None:
    try:
        value = float(settings[key])
    except (KeyError, ValueError):
        return None
    return value if math.isfinite(value) and value >= 0 else None


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def judged_window(trace: TraceView) -> tuple[int, int]:
    """Return the time from the first to the last steady step; the whole capture if there is none."""
    steady = union_all(steady_time(trace).values())
    return (int(steady.starts[0]), int(steady.ends[-1])) if len(steady) else (0, trace.span_ns)
