"""Kernels by time, with family and precision, and whether launching them is the limit."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import polars as pl

from traceviz.analyses.base import Analysis, finding
from traceviz.analyses.derived.capture.kind import why_no_device_work
from traceviz.analyses.derived.causes.parts import limit_to_parts
from traceviz.analyses.derived.device.occupancy import kernel_shapes, kernels_by_name
from traceviz.analyses.derived.device.work import Layouts, find_layouts, judged_device_ns
from traceviz.analyses.derived.frames import bounds, parts_by
from traceviz.analyses.derived.judged_time import judged_time, judged_words, steady_grid, sums_in_steps
from traceviz.analyses.derived.launch.join import LAUNCH_KEY, graph_name, without_graphs
from traceviz.analyses.derived.statistics import (
    CALLS,
    DURATION_COLUMNS,
    TOTAL,
    durations_of,
    frame_grid,
    ratio,
    share,
)
from traceviz.analyses.derived.view import TraceView
from traceviz.core.arrays.intervals import Array, IntervalSet
from traceviz.core.units import format_ns, format_ratio
from traceviz.report import (
    BY_SHAPE,
    Bar,
    Bars,
    Block,
    Column,
    Fact,
    Facts,
    Finding,
    Prose,
    Section,
    Skipped,
    hide_columns,
)
from traceviz.report.findings.record import WARNING_SHARE
from traceviz.report.findings.registry import record_of
from traceviz.trace.names.kernel_names import UNKNOWN, catalogue, family_label

_BLOCK = 1 << 16
"""Kernels per block of work. Intermediate results then stay in the cache."""


@dataclass(frozen=True, slots=True)
class LaunchBound:
    """Short kernels after which the device waits for the next one, over the devices with mostly such kernels.

    Args:
        calls: Kernels in judged time, those of CUDA graphs not counted.
        kernel_ns: Their total duration.
        median_ns: Median duration of the device with the largest one.
        starved: Number of them after which the device was idle until the next work arrived.
        idle_ns: That idle time after short kernels.
        judged_ns: Judged time of all devices.
        judged_words: Text that names the judged time.
        uncompiled: True if most kernels belong to ops of a framework that runs them one by one, outside compiled
            programs.
    """

    calls: int
    kernel_ns: int
    median_ns: float
    starved: int
    idle_ns: int
    judged_ns: int
    judged_words: str
    uncompiled: bool


@dataclass(frozen=True, slots=True)
class KernelTimes:
    """Kernels by name, by launch shape and by family, and those of steady steps, each with the largest total first.

    ``whole_graphs`` are graphs whose kernels were not recorded one by one: ``name, calls, total_ns``. ``layouts`` are
    conversions of layouts, if any.
    """

    by_name: pl.DataFrame
    by_shape: pl.DataFrame
    by_family: pl.DataFrame
    in_steps: pl.DataFrame
    launch_bound: LaunchBound
    tpu: bool = False
    whole_graphs: pl.DataFrame = field(default_factory=pl.DataFrame)
    layouts: Layouts | None = None

    @property
    def total_ns(self) -> int:
        """Sum of all kernel durations, over streams and devices."""
        return int(self.by_name["total_ns"].sum())

    def share_where(self, condition: pl.Expr) -> float | None:
        """Return the share of kernel time in kernels that meet ``condition``; ``None`` if no kernel ran."""
        return ratio(int(self.by_name.filter(condition)["total_ns"].sum()), self.total_ns)


@dataclass(frozen=True, slots=True)
class KernelsAnalysis(Analysis[KernelTimes]):
    """Time per kernel, with family, precision and tensor cores from the names.

    Args:
        short_ns: Kernels shorter than this, on average or in the median, are short: about what a launch costs the host.
            A few long kernels among many short ones make the mean long, and the device still waits after the others.
        starved_share: If the device idles after more than this share of its kernels, launching is the limit.
        shortest_gap_ns: Shorter gaps are the device's own time between two kernels.
        longest_gap_ns: Longer gaps have another cause than launching (input, synchronisation) and are not counted.
        min_share: From this share of the judged time on, idle time after short kernels is a finding.
        layout_share: From this share of the time of kernels on, conversions of layouts are a finding.
        fold_below: Rows below this share of kernel time fold into "other" in pictures, never in data.
    """

    slug = "kernels"
    title = "Kernels"
    rules = ("TV202", "TV310")

    short_ns: int = 10_000
    starved_share: float = 0.5
    shortest_gap_ns: int = 2_000
    longest_gap_ns: int = 100_000
    min_share: float = WARNING_SHARE
    layout_share: float = WARNING_SHARE
    fold_below: float = 0.01

    def run(self, trace: TraceView) -> KernelTimes | Skipped:
        """Aggregate kernels, classify their names, and measure the gaps after short ones."""
        if why := why_no_device_work(trace):
            return self.skipped(why)
        kernels = trace.frame("kernels", "name", "start_ns", "dur_ns", "process_id")
        shapes = kernel_shapes(trace).groups
        by_name = durations_of(kernels_by_name(trace), kernels["dur_ns"])
        classes = [trace.kernel_classes[name] for name in by_name["name"]]  # distinct names, not events
        by_name = by_name.with_columns(
            pl.Series("family", [kernel.family for kernel in classes], pl.String),
            pl.Series("precision", [kernel.precision for kernel in classes], pl.String),
            pl.Series("tensor_core", [kernel.tensor_core for kernel in classes], pl.Boolean),
        )
        total = int(by_name["total_ns"].sum())
        graphs = trace.frame("graphs", graph_name(), "dur_ns").group_by("name")
        whole_graphs = graphs.agg(pl.len().alias("calls"), pl.col("dur_ns").sum().alias("total_ns"))
        by_shape = durations_of(shapes.coarser("name", *_DIMENSIONS), kernels["dur_ns"])
        texts = (  # such as ``128x1x1``; null if unknown
            pl.concat_str(_DIMENSIONS[:3], separator="x").alias("grid"),
            pl.concat_str(_DIMENSIONS[3:], separator="x").alias("block"),
        )
        by_family = by_name.group_by("family").agg(pl.col("calls", "total_ns").sum())
        return KernelTimes(
            by_name=_ordered(by_name.with_columns(share("total_ns", total, "share_of_kernel_time")), "name"),
            by_shape=_ordered(by_shape.with_columns(*texts), "name", "grid", "block"),
            by_family=_ordered(by_family, "family"),
            in_steps=sums_in_steps(trace, kernels, "name").join(
                by_name[["name", "family"]], on="name", maintain_order="left"
            ),
            launch_bound=self._launch_bound(trace),
            tpu=trace.has_tpu,
            whole_graphs=whole_graphs.sort("total_ns", "name", descending=[True, False]),
            layouts=find_layouts(trace),
        )

    def _launch_bound(self, trace: TraceView) -> LaunchBound:
        calls = kernel_ns = starved = idle = 0
        median = 0.0
        kernels = trace.frame("kernels", "start_ns", "device_id", "graph_node_id", "op", "module", *LAUNCH_KEY)
        kernels = kernels.hstack([trace.kernel_times["end_ns"]])
        launched = without_graphs(trace, kernels)  # graphs launch many kernels at once
        parts = {
            (process, device): part
            for process, own in parts_by(launched, "process_id").items()
            for device, part in parts_by(own, "device_id").items()
        }
        for process, device in trace.owners:
            if (process, device) not in parts:
                continue
            starts, ends = bounds(parts[process, device])
            window = judged_time(trace, process)
            inside = window.contains(starts)
            starts, ends = (starts, ends) if inside.all() else (starts[inside], ends[inside])
            gaps = self._gaps_after(ends, trace.device_busy[device])
            count, time, hungry = starts.size, int((ends - starts).sum()), int((gaps > 0).sum())
            middle = float(np.median(ends - starts)) if count else 0.0
            if min(time, middle * count) < self.short_ns * count and hungry > self.starved_share * count:
                median = max(median, middle)
                short = (ends - starts < self.short_ns) & (gaps > 0)
                last, first = np.unique(ends[short], return_index=True)  # of kernels that end together, keep one
                idle += int(window.overlap(last, last + gaps[short][first]).sum())
                calls, kernel_ns, starved = calls + count, kernel_ns + time, starved + hungry
        is_single = pl.col("op").is_not_null() & pl.col("module").is_null()
        single = launched.filter(is_single).height if launched["op"].count() else 0
        uncompiled = 2 * single > launched.height
        judged_ns = judged_device_ns(trace)
        idle = limit_to_parts(trace, "TV202", idle, judged_ns) if idle else 0
        return LaunchBound(calls, kernel_ns, median, starved, idle, judged_ns, judged_words(trace), uncompiled)

    def _gaps_after(self, ends: Array, busy: IntervalSet) -> Array:
        """Return the idle time of the device after each of ``ends`` if launching may explain it, else 0."""
        if len(busy) < 2:
            return np.zeros_like(ends)
        idle = busy.starts[1:] - busy.ends[:-1]
        explained = np.append(np.where((idle >= self.shortest_gap_ns) & (idle <= self.longest_gap_ns), idle, 0), 0)
        gaps = np.empty_like(ends)
        for begin in range(0, ends.size, _BLOCK):
            part = slice(begin, begin + _BLOCK)
            index = busy.ended_by(ends[part]) - 1  # the busy interval that ends there; no gap follows the last
            gaps[part] = np.where((index >= 0) & (busy.ends[index] == ends[part]), explained[index], 0)
        return gaps

    def judge(self, result: KernelTimes) -> tuple[Finding, ...]:
        """Return findings on launch-bound devices, and on conversions of layouts."""
        return (*self._launches(result.launch_bound), *self._conversions(result.layouts))

    def _conversions(self, found: Layouts | None) -> tuple[Finding, ...]:
        if found is None or found.layout_ns < self.layout_share * found.kernel_ns:
            return ()
        names = " and ".join(filter(None, (", ".join(found.names[:-1]), found.names[-1])))
        message = (
            f"{format_ratio(found.layout_ns / found.kernel_ns)} of the time in which kernels run goes into converting "
            f"the layout of tensors ({names}): {format_ratio(found.layout_ns / found.judged_ns)} of the "
            f"{found.judged_words}."
        )
        evidence = (
            Fact("calls", "conversions", found.calls, "count"),
            Fact("layout_ns", "time in them", found.layout_ns, "ns"),
            Fact("kernel_ns", "time in kernels", found.kernel_ns, "ns"),
        )
        return (finding("TV310", message, evidence, found.layout_ns, found.judged_ns, found.judged_words),)

    def _launches(self, bound: LaunchBound) -> tuple[Finding, ...]:
        if not bound.calls or bound.idle_ns < self.min_share * bound.judged_ns:
            return ()
        mean = bound.kernel_ns / bound.calls
        starved = bound.starved / bound.calls
        is_mean_short = mean < self.short_ns
        typical = f"{format_ns(mean)} on average" if is_mean_short else f"{format_ns(bound.median_ns)} in the median"
        message = (
            f"Kernels take {typical}, and after {format_ratio(starved)} of them the device waits "
            f"for the next launch: {format_ratio(bound.idle_ns / bound.judged_ns)} of the {bound.judged_words}."
        )
        evidence = (
            Fact("calls", "kernels", bound.calls, "count"),
            Fact("mean_ns", "mean duration", mean, "ns"),
            *(() if is_mean_short else (Fact("median_ns", "median duration", bound.median_ns, "ns"),)),
            Fact("starved_share", "followed by an idle device", starved, "ratio"),
            Fact("idle_ns", "idle after short kernels", bound.idle_ns, "ns"),
        )
        advice = (COMPILE, *record_of("TV202").advice) if bound.uncompiled else None
        return (finding("TV202", message, evidence, bound.idle_ns, bound.judged_ns, bound.judged_words, advice=advice),)

    def describe(self, result: KernelTimes) -> Section:
        """Describe facts, families as parts of kernel time, and the kernels."""
        facts = (
            Fact("total_ns", "kernel time, summed", result.total_ns, "ns"),
            Fact("calls", "kernels", int(result.by_name["calls"].sum()), "count"),
            Fact("names", "distinct kernels", result.by_name.height, "count"),
            Fact("classified_share", "of a known family", result.share_where(pl.col("family") != UNKNOWN), "ratio"),
        )
        tensor, precision, unknown = pl.col("tensor_core"), pl.col("precision"), pl.lit(UNKNOWN)
        of_gpus = (  # each with the part that has no known name
            Fact("tensor_core_share", "on tensor cores", result.share_where(tensor), "ratio"),
            Fact("tensor_core_unknown_share", "the name does not say", result.share_where(tensor.is_null()), "ratio"),
            Fact("precision_known_share", "of a known precision", result.share_where(precision != unknown), "ratio"),
            Fact("precision_unknown_share", "the name does not say", result.share_where(precision == unknown), "ratio"),
        )
        version = Facts((Fact("catalogue", "name patterns, version", catalogue().version, "id"),), audience="machine")
        # Names of XLA operations on a TPU do not show precision and tensor cores.
        columns = hide_columns(_COLUMNS, {"precision", "tensor_core"} if result.tpu else ())
        families = tuple(
            Bar(family, family_label(family), time, time / max(result.total_ns, 1))
            for family, time in result.by_family[["family", "total_ns"]].iter_rows()
        )
        of_steps = (Column("name", "Kernel", "text", 0), Column("family", "Family", "text", 1))
        blocks: tuple[Block, ...] = (
            *((Facts(facts), Facts(of_gpus, audience="machine")) if result.tpu else (Facts((*facts, *of_gpus)),)),
            version,
            Bars("Kernel families", "kernel time", "ns", families),
            frame_grid(columns, result.by_name, fold_below=self.fold_below),
            frame_grid(_SHAPE_COLUMNS, result.by_shape, BY_SHAPE, audience="machine"),
            steady_grid(result.in_steps, *of_steps),
            *_in_words(result.whole_graphs),
        )
        return Section(self.slug, self.title, blocks)


def _in_words(graphs: pl.DataFrame) -> tuple[Prose, ...]:
    """Return the note on missing kernels and the graphs they ran in; empty if no graph was recorded as a whole."""
    if not graphs.height:
        return ()
    name, calls, total_ns = graphs.row(0)
    most = f", most of it in {name} ({calls:,} × in {format_ns(total_ns)})" if graphs.height > 1 else f", all of {name}"
    times, time = int(graphs["calls"].sum()), format_ns(int(graphs["total_ns"].sum()))
    text = (
        f"CUDA graphs were recorded as a whole {times:,} × ({time}{most}): the kernels that ran in them are not in "
        "this section."
    )
    return (Prose(text),)


COMPILE = (
    "Compile the step: its ops run one by one, and a compiler fuses them. TensorFlow: XLA by "
    "tf.function(jit_compile=True); "
    "JAX: XLA by jax.jit; PyTorch: torch.compile(model, mode='reduce-overhead'), which replays CUDA graphs as well."
)
"""First advice if kernels are launched for single ops of a framework."""

_DIMENSIONS = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")

_COLUMNS = (
    Column("name", "Kernel", "text", 0),
    Column("family", "Family", "text", 3),
    Column("precision", "Precision", "text", 4),
    Column("tensor_core", "Tensor cores", "bool", 5),
    CALLS,
    TOTAL,
    Column("share_of_kernel_time", "Of kernel time", "ratio", 0, bar=True),
    *DURATION_COLUMNS,
)


_SHAPE_COLUMNS = (
    Column("name", "Kernel", "text", 0),
    Column("grid", "Grid", "text", 1),
    Column("block", "Block", "text", 1),
    CALLS,
    TOTAL,
    *DURATION_COLUMNS,
)


def _ordered(frame: pl.DataFrame, *names: str) -> pl.DataFrame:
    return frame.sort("total_ns", *names, descending=[True, *[False] * len(names)])
