"""Resources of the host while the program ran: CPU, memory, threads, storage and GPUs over time, and problems."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from traceviz.analyses.base import Analysis, by_knowledge
from traceviz.analyses.derived.device.names import device_names
from traceviz.analyses.derived.frames import knowing
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.host import samples as host_samples
from traceviz.analyses.host.findings import CODES, Limits, busy_machine, host_findings
from traceviz.analyses.host.kept_memory import KeptMemory, kept_memory, memory_finding
from traceviz.analyses.host.load import HostLoad, host_load
from traceviz.analyses.host.memory_nodes import NodeUse, node_use, nodes_finding
from traceviz.analyses.host.samples import HOST_METRICS, Machine, Series, all_series, machine, mean_of_slices
from traceviz.analyses.host.threads_started import StartedThreads, started_threads, threads_finding
from traceviz.core.units import format_number, format_ratio, format_value
from traceviz.report import Bar, Bars, Block, Column, Fact, Finding, Grid, Lane, Note, Section, Skipped, Timeline


@dataclass(frozen=True, slots=True)
class MetricUse:
    """One metric of the host or of a device over the capture, in the unit in which it was sampled.

    Args:
        metric: Its name in table ``samples``.
        label: Its name for readers.
        device: Device measured; empty for the host.
        unit: Unit of the values.
        whole: Text that names 100 %, for readers; empty for percent of a whole.
        mean, p95, highest: Over all samples of the capture.
        lane: Its picture: shares of an amount; ``None`` without one.
    """

    metric: str
    label: str
    device: str
    unit: str
    whole: str
    mean: float
    p95: float
    highest: float
    lane: Lane | None


@dataclass(frozen=True, slots=True)
class ProcessUse:
    """One process of the program: busy cores on average, and the most memory that it had."""

    name: str
    pid: int | None
    busy_cores: float | None
    memory_bytes: int | None


@dataclass(frozen=True, slots=True)
class HostResources:
    """All metrics, the processes with the busiest first, the mean of each core, and the judged time in figures.

    ``samples`` is the number of moments at which something was measured. ``pauses`` are the mean and the longest time
    from one measurement of the program to the next; ``None`` for fewer than two. ``window`` is the time of the capture
    and of all samples, ``span_ns`` that of the capture alone, from 0 on. ``started`` are the threads that the program
    started, ``kept`` the memory at the start of each training, ``nodes`` the busy cores of each memory node.
    """

    metrics: tuple[MetricUse, ...]
    processes: tuple[ProcessUse, ...]
    cores: tuple[tuple[int, float], ...]
    load: HostLoad
    samples: int
    pauses: tuple[int, int] | None
    window: tuple[int, int]
    span_ns: int
    started: StartedThreads | None = None
    kept: KeptMemory | None = None
    nodes: NodeUse | None = None

    def of(self, metric: str) -> MetricUse | None:
        """Return the metric of the host with this name, or of the first device that has it."""
        return next((use for use in self.metrics if use.metric == metric), None)


@dataclass(frozen=True, slots=True)
class HostResourcesAnalysis(Limits, Analysis[HostResources]):
    """Samples of the host: mean, 95th percentile, maximum, and pictures over time.

    Args:
        rising_share: Memory grows if it rises in this share of the parts of the time. See :class:`Limits` for further
            limits.
        slices: Slices of the pictures.
        processes: Processes listed.
    """

    slug = "host"
    title = "Host resources"
    rules = CODES

    rising_share: float = 0.9
    slices: int = 60
    processes: int = 20

    def run(self, trace: TraceView) -> HostResources | Skipped:
        """Summarise every metric, and compute figures of the judged time."""
        series = all_series(trace)
        if not any(item.metric.name in HOST_METRICS for item in series):
            return self.skipped("no resources of the host were sampled")
        host = machine(trace)
        names = device_names(trace)
        products, memory = (
            dict(trace.frame("devices", "device_id", column).drop_nulls().iter_rows())
            for column in ("name", "memory_bytes")
        )
        # Samples cover the whole run, but profilers may have recorded only a part.
        begin = min(0, *(int(item.times[0]) for item in series))
        end = max(trace.span_ns, *(int(item.times[-1]) for item in series))
        moved = (replace(item, times=item.times - begin) for item in series)
        uses = tuple(_use(item, end - begin, self.slices, host, names, products, memory) for item in moved)
        load = host_load(trace, series, host, self.rising_share)
        sampled = trace.frame("samples", pl.col("metric").cast(pl.String), "value")
        number = pl.col("metric").str.extract(host_samples.CORE).cast(pl.Int64).alias("core")
        of_cores = knowing(sampled.select(number, "value"), "core").group_by("core").agg(pl.col("value").mean() / 100)
        # The sampler thins its measurements to keep its limits.
        of_cpu = (item.times for item in series if item.metric.name == host_samples.PROGRAM_CPU)
        pauses = np.diff(next(of_cpu, np.empty(0, np.int64)))
        return HostResources(
            metrics=uses,
            processes=_processes(trace, self.processes),
            cores=tuple((core, min(share, 1.0)) for core, share in of_cores.sort("core").iter_rows()),
            load=load,
            samples=host_samples.count_instants(trace),
            pauses=(round(pauses.mean()), int(pauses.max())) if pauses.size else None,
            window=(begin, end),
            span_ns=trace.span_ns,
            started=started_threads(trace, load.threads_max, host.usable),
            kept=kept_memory(trace, series),
            nodes=node_use(trace, host),
        )

    def judge(self, result: HostResources) -> tuple[Finding, ...]:
        """Return the findings of the judged time."""
        more = (
            threads_finding(result.started, self.threads_started, self.pools_started, self.threads_seen),
            nodes_finding(result.nodes, result.load, least_share=self.node_share, others_share=self.node_others),
            memory_finding(result.kept),
        )
        return (*host_findings(result.load, self), *(finding for finding in more if finding is not None))

    def notes(self, result: HostResources) -> tuple[Note, ...]:
        """Return a note if other programs used the machine."""
        busy = busy_machine(result.load, self)
        return () if busy is None else (busy,)

    def describe(self, result: HostResources) -> Section:
        """Describe figures, pictures over time, every metric, and the processes."""
        lanes = tuple(use.lane for use in result.metrics if use.lane is not None)
        timeline = Timeline(_over(result), *result.window, lanes)
        rows = tuple((use.metric, use.device, use.unit, use.mean, use.p95, use.highest) for use in result.metrics)
        in_units = Grid(_MACHINE_COLUMNS, rows, "Metrics in the units in which they were sampled", audience="machine")
        as_text = tuple(
            (use.label, *(format_amount(value, use.unit, use.whole) for value in (use.mean, use.p95, use.highest)))
            for use in result.metrics
            if use.highest > 0
        )
        blocks: list[Block] = [timeline, *_busy_cores(result), in_units]
        blocks.append(Grid(_PEOPLE_COLUMNS, as_text, "Metrics over the whole run"))
        if len(result.processes) > 1:
            processes = tuple((use.name, use.pid, use.busy_cores, use.memory_bytes) for use in result.processes)
            blocks.append(Grid(_PROCESS_COLUMNS, processes, "Processes"))
        if result.cores:
            blocks.append(Grid(_CORE_COLUMNS, result.cores, _OF_CORES, audience="machine"))
        return Section(self.slug, self.title, (*by_knowledge(_facts(result)), *blocks))


def _over(result: HostResources) -> str:
    """Return what the pictures show, and the part of it that profilers recorded."""
    profiled = format_value(result.span_ns, "ns")
    part = "" if result.window == (0, result.span_ns) else f", of which profilers recorded 0 s to {profiled}"
    empty = any(value is None for use in result.metrics if use.lane for value in use.lane.values)
    unknown = ", · is where nothing was sampled" if empty else ""
    return f"Over the run{part}; full height is the amount on the right{unknown}"


def _busy_cores(result: HostResources) -> Iterator[Bars]:
    """Yield the busiest cores if cores differ: one works while the others rest."""
    ordered = sorted(result.cores, key=lambda core: (-core[1], core[0]))
    if len(ordered) < 2 or ordered[0][1] - ordered[-1][1] < UNEVEN:
        return
    shown = ordered[:MOST_CORES]
    title = _OF_CORES + (f": the busiest {MOST_CORES}" if shown != ordered else "")
    bars = tuple(Bar(f"core_{core}", f"core {core}", share, share) for core, share in shown)
    yield Bars(title, "time", "ratio", bars)


_OF_CORES = "Cores of the machine, whoever used them"
UNEVEN = 0.3
"""Cores are shown one by one if their busy shares differ by this much."""
MOST_CORES = 8
"""Most cores shown one by one."""


def _facts(result: HostResources) -> Iterator[Fact]:
    load, host = result.load, result.load.machine
    cpu, memory = result.of(host_samples.PROGRAM_CPU), result.of(host_samples.PROGRAM_MEMORY)
    threads, gpu = result.of(host_samples.PROGRAM_THREADS), result.of(host_samples.GPU_UTILISATION)
    processes = result.of(host_samples.PROGRAM_PROCESSES)
    share = min(cpu.mean / 100 / host.usable, 1.0) if cpu and host.usable else None
    yield Fact("cpu_mean", "CPU, of the usable cores", share, "ratio")
    yield Fact("busy_cores", "busy cores, whole run", cpu.mean / 100 if cpu else None, "number")
    steady = load.busy_cores if load.steps.step_ns else None
    yield Fact("steady_busy_cores", "busy cores, steady steps", steady, "number")
    yield Fact("cores", "usable cores", host.usable, "number")
    yield Fact("physical_cores", "physical cores", host.physical, "count")
    yield Fact("rss_max", "memory, highest", round(memory.highest) if memory else None, "bytes")
    yield Fact("memory_bytes", "memory of the machine", host.memory_bytes, "bytes")
    yield Fact("threads_max", "threads, most", round(threads.highest) if threads else None, "count")
    yield Fact("processes_max", "processes, most", round(processes.highest) if processes else None, "count")
    gpu_label = f"utilisation, {gpu.device}" if gpu else "GPU utilisation"
    yield Fact("gpu_mean", gpu_label, min(gpu.mean / 100, 1.0) if gpu else None, "ratio")
    yield Fact("samples", "samples", result.samples, "count")
    mean_ns, longest_ns = result.pauses or (None, None)
    yield Fact("sample_interval_ns", "program measured every, mean", mean_ns, "ns")
    yield Fact("longest_interval_ns", "program measured every, most", longest_ns, "ns")
    yield Fact("sampler_cost", "sampling took, of one core", host.cost if (host.cost or 0) <= 1 else 1.0, "ratio")
    yield Fact("sampler_start_ns", "its start took, CPU time", host.start_ns, "ns")


def _use(  # noqa: PLR0917 (the series, and what its picture is a share of)
    series: Series,
    span_ns: int,
    slices: int,
    host: Machine,
    names: dict[int, str],
    products: dict[int, str],
    memory: dict[int, int],
) -> MetricUse:
    device = "" if series.device_id is None else names.get(series.device_id, f"device {series.device_id}")
    label = f"{device} {series.metric.label}".strip()
    whole, words = _whole(series, host, memory)
    lane = None
    if whole:
        shares = (
            None if value is None else min(value / whole, 1.0) for value in mean_of_slices(series, span_ns, slices)
        )
        product = products.get(-1 if series.device_id is None else series.device_id)
        short = label.replace(f" {product}", "", 1) if product else label  # pictures leave no room for products
        lane = Lane(short, tuple(shares), words)
    return MetricUse(
        metric=series.metric.name,
        label=label,
        device=device,
        unit=series.unit,
        whole=series.metric.whole,
        mean=float(series.values.mean()),
        p95=float(np.quantile(series.values, 0.95)),
        highest=float(series.values.max()),
        lane=lane,
    )


def _whole(series: Series, host: Machine, memory: dict[int, int]) -> tuple[float, str]:
    """Return the amount for full height in a metric's picture, and its text; 0 for a metric without picture."""
    highest = float(series.values.max())
    match series.metric.scale:
        case "cores" if host.usable:
            return host.usable * 100, f"{format_number(host.usable)} cores"
        case "percent":
            return 100.0, "100 %"
        case "device_memory" if series.device_id in memory:
            return float(memory[series.device_id]), format_amount(memory[series.device_id], "bytes")
        case None:
            return 0.0, ""
        case _:
            return highest, format_amount(highest, series.unit)


def format_amount(value: float, unit: str, whole: str = "") -> str:
    """Format a sampled value with its unit, for readers. Percent of a core (a thread) become cores (threads)."""
    if unit == "%" and whole:
        wholes = round(value / 100, 2)
        return f"{format_number(wholes)} {whole if wholes == 1 else f'{whole}s'}"
    if unit == "bytes":
        return format_value(value, "bytes")
    if unit == "bytes/s":
        return format_value(value, "bytes/s")
    if unit == "%":
        return format_ratio(value / 100)
    number = format_number(round(value, 1) if abs(value) < 100 else round(value))
    if unit in {"count", ""}:
        return number
    return f"{number}/{unit.removeprefix('1/')}" if unit.startswith("1/") else f"{number} {unit}"


_MACHINE_COLUMNS = (
    Column("metric", "Metric"),
    Column("device", "Device"),
    Column("unit", "Unit"),
    Column("mean", "Mean", "number"),
    Column("p95", "95 %", "number"),
    Column("max", "Most", "number"),
)

_PEOPLE_COLUMNS = (
    Column("label", "Metric", "text", 0),
    Column("mean", "Mean", "text", 0),
    Column("p95", "95 % below", "text", 1),
    Column("max", "Most", "text", 0),
)

_PROCESS_COLUMNS = (
    Column("process", "Process", "text", 0),
    Column("pid", "Pid", "id", 2),
    Column("busy_cores", "Busy cores", "number", 0),
    Column("memory_bytes", "Memory, highest", "bytes", 0),
)

_CORE_COLUMNS = (Column("core", "Core", "id"), Column("busy_share", "Busy", "ratio"))


def _processes(trace: TraceView, most: int) -> tuple[ProcessUse, ...]:
    """Return processes that were sampled one by one, the one with the most CPU time first."""
    columns = ("process_id", "metric", "value")
    metrics = [host_samples.PROCESS_CPU, host_samples.PROCESS_MEMORY]
    frame = trace.frame("samples", *columns).with_columns(pl.col("metric").cast(pl.String))
    frame = frame.filter(pl.col("metric").is_in(metrics) & pl.col("process_id").is_not_null())
    cpu = pl.col("metric") == host_samples.PROCESS_CPU
    uses = frame.group_by("process_id").agg(
        (pl.col("value").filter(cpu).sum() / 100).alias("total"),
        (pl.col("value").filter(cpu).mean() / 100).alias("busy"),
        pl.col("value").filter(~cpu).max().alias("memory"),
    )
    named = uses.join(trace.frame("processes", "process_id", "pid", "name"), on="process_id")
    rows = named.sort("total", "process_id", descending=[True, False]).head(most)
    return tuple(
        ProcessUse(
            row["name"] or "process", row["pid"], row["busy"], None if row["memory"] is None else int(row["memory"])
        )
        for row in rows.iter_rows(named=True)
    )
