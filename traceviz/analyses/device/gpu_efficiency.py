"""Use of the GPUs by kernels: multiprocessors (SMs) with work, and occupied thread slots.

A GPU counts as busy even if one block runs on one of its hundred SMs. Two estimates from the launch shapes are more
precise. Their definitions are those of PyTorch's TensorBoard plugin:

* **SM efficiency**: the average share of SMs that have a block to run: ``min(blocks / SMs, 1)`` at each moment. Blocks
  are summed over the kernels that run at once; idle time counts as 0.
* **Achieved occupancy**: the share of thread slots taken, on average over kernels weighted by their durations
  (:mod:`traceviz.analyses.derived.device.occupancy`); idle time does not count.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from traceviz.analyses.base import Analysis, finding
from traceviz.analyses.derived.capture.kind import why_no_device_work
from traceviz.analyses.derived.device.names import device_names
from traceviz.analyses.derived.device.occupancy import Shapes, kernel_shapes
from traceviz.analyses.derived.device.sm_efficiency import Efficiency, efficiency, to_millionths
from traceviz.analyses.derived.device.work import communication_names
from traceviz.analyses.derived.frames import parts_by
from traceviz.analyses.derived.grouped import Groups
from traceviz.analyses.derived.judged_time import judged_time, judged_words
from traceviz.analyses.derived.statistics import CALLS, TOTAL, frame_grid, largest_first, ratio
from traceviz.analyses.derived.view import TraceView
from traceviz.core.arrays.intervals import Array, union_all
from traceviz.core.units import format_ns, format_ratio
from traceviz.report import STEADY_STEP_TIME, Block, Column, Fact, Facts, Finding, Grid, Prose, Section, Skipped


@dataclass(frozen=True, slots=True)
class GpuTime:
    """One GPU: ``judged`` in the judged time; ``span_ns`` and ``kernel_ns`` (with kernels) in all recorded time."""

    device: str
    span_ns: int
    kernel_ns: int
    judged: Efficiency


@dataclass(frozen=True, slots=True, eq=False)
class GpuEfficiency:
    """All GPUs on which kernels ran, and the kernels by name.

    Args:
        gpus: The GPUs.
        kernels: One row per name: ``name, calls, total_ns, sm_efficiency, occupancy, blocks_per_sm``.
        stated: True if the trace states any occupancies.
        computed: True if any are computed here, because the trace does not state them.
        judged_words: Text that names the judged time.
    """

    gpus: tuple[GpuTime, ...]
    kernels: pl.DataFrame
    stated: bool
    computed: bool
    judged_words: str

    def total(self, name: str) -> int:
        """Return the sum of a figure of the judged time over the GPUs."""
        return sum(getattr(gpu.judged, name) for gpu in self.gpus)

    def mean(self, name: str, weight: str) -> float | None:
        """Return the mean of a figure over the GPUs for which it is known, by ``weight``."""
        known = [g.judged for g in self.gpus if getattr(g.judged, name) is not None and getattr(g.judged, weight)]
        whole = sum(getattr(gpu, weight) for gpu in known)
        return to_millionths(sum(getattr(gpu, name) * getattr(gpu, weight) for gpu in known) / whole) if whole else None


@dataclass(frozen=True, slots=True)
class GpuEfficiencyAnalysis(Analysis[GpuEfficiency]):
    """Utilisation, SM efficiency and achieved occupancy, per GPU and per kernel.

    Args:
        empty_share: SMs that are empty while kernels run are a finding from this share of the judged time on.
    """

    slug = "gpu_efficiency"
    title = "GPU efficiency"
    rules = ("TV204",)

    empty_share: float = 0.2

    def run(self, trace: TraceView) -> GpuEfficiency | Skipped:
        """Weight launch shapes by the time of their kernels."""
        if trace.has_tpu:
            return self.skipped("a TPU's operations have no launch shapes")
        shapes = kernel_shapes(trace)
        if not len(shapes.groups):
            return self.skipped(why_no_device_work(trace) or "no kernel was captured")
        if not shapes.filled["load"].count() and not shapes.filled["achieved"].count():
            return self.skipped("the trace has no launch shapes, or does not say how many multiprocessors the GPU has")
        durations = trace.kernel_times["dur_ns"].fill_null(0)
        if (trace.frame("graphs", "dur_ns")["dur_ns"].sum() or 0) > durations.sum():
            return self.skipped(
                "most kernels ran in CUDA graphs that were recorded as a whole: their shape is not known"
            )
        names = device_names(trace)
        gpus = tuple(_gpu(trace, device, names[device], shapes) for device in trace.kernel_unions)
        stated = pl.col("achieved_occupancy").fill_null(0) > 0
        computed = shapes.filled.filter(~stated & pl.col("achieved").is_not_null()).height > 0
        return GpuEfficiency(
            gpus,
            _by_name(shapes, durations.to_numpy()),
            not shapes.filled.filter(stated).is_empty(),
            computed,
            judged_words(trace),
        )

    def judge(self, result: GpuEfficiency) -> tuple[Finding, ...]:
        """Return a finding on kernels too small for the GPU."""
        empty, judged = result.total("empty_ns"), result.total("window_ns")
        if not empty or empty < self.empty_share * judged:
            return ()
        kernel_ns, small, loaded = (result.total(name) for name in ("kernel_ns", "small_ns", "loaded_ns"))
        message = (
            f"{format_ratio(small / loaded)} of kernel time is in grids with fewer blocks than the GPU has "
            f"multiprocessors: while kernels run ({format_ns(kernel_ns)}), multiprocessors without a block are worth "
            f"{format_ns(empty)}, {format_ratio(empty / judged)} of the {result.judged_words}."
        )
        evidence = (
            Fact("small_ns", "time in small grids", small, "ns"),
            Fact("kernel_ns", "kernels run", kernel_ns, "ns"),
            Fact("empty_ns", "worth of empty multiprocessors", empty, "ns"),
        )
        return (finding("TV204", message, evidence, empty, judged, result.judged_words),)

    def describe(self, result: GpuEfficiency) -> Section:
        """Describe averages over the GPUs, one row per GPU, estimated and unknown parts, and the kernels."""
        facts = (
            Fact("utilisation", "kernels run", ratio(result.total("kernel_ns"), result.total("window_ns")), "ratio"),
            Fact("sm_efficiency", "est. SM efficiency", result.mean("sm_efficiency", "window_ns"), "ratio"),
            Fact("occupancy", "est. achieved occupancy", result.mean("occupancy", "occupied_ns"), "ratio"),
        )
        machine = (
            Fact("small_grid_share", "kernel time in small grids", _share(result, "small_ns", "loaded_ns"), "ratio"),
            Fact("known_share", "kernel time of known shape", _share(result, "loaded_ns", "summed_ns"), "ratio"),
            Fact("judged_ns", result.judged_words, result.total("window_ns"), "ns"),
        )
        window = "steady steps" if result.judged_words == STEADY_STEP_TIME else "active time"
        gpu_columns = (
            Column("device", "GPU", "text", 0),
            Column("kernel_ns", "Kernels run", "ns", 2),
            Column("utilisation", f"Of {window}", "ratio", 0),
            Column("sm_efficiency", "Est. SM efficiency", "ratio", 0),
            Column("occupancy", "Est. occupancy", "ratio", 0),
            Column("blocks_per_sm", "Blocks per SM", "number", 3),
            # Readers see that of the whole capture: `devices`
            Column("small_grid_share", "In small grids", "ratio", 9),
            Column("span_utilisation", "Of captured time", "ratio", 4),
            Column("judged_kernel_ns", f"Kernels run in {window}", "ns", 9),
            Column("judged_ns", window.capitalize(), "ns", 9),
        )
        rows = tuple(
            (
                *(gpu.device, gpu.kernel_ns, ratio(gpu.judged.kernel_ns, gpu.judged.window_ns)),
                *(gpu.judged.sm_efficiency, gpu.judged.occupancy, gpu.judged.blocks_per_sm),
                *(ratio(gpu.judged.small_ns, gpu.judged.loaded_ns), ratio(gpu.kernel_ns, gpu.span_ns)),
                *(gpu.judged.kernel_ns, gpu.judged.window_ns),
            )
            for gpu in result.gpus
        )
        blocks: tuple[Block, ...] = (
            Facts(facts, audience="all" if len(result.gpus) > 1 else "machine"),  # with one GPU, its row shows the same
            Facts(machine, audience="machine"),
            Grid(gpu_columns, rows),
            Prose(_provenance(result)),
            frame_grid(_KERNEL_COLUMNS, result.kernels, "Kernels"),
        )
        return Section(self.slug, self.title, blocks)


_KERNEL_COLUMNS = (
    Column("name", "Kernel", "text", 0),
    CALLS,
    TOTAL,
    Column("sm_efficiency", "Est. SM efficiency", "ratio", 0),
    Column("occupancy", "Est. occupancy", "ratio", 0),
    Column("blocks_per_sm", "Blocks per SM", "number", 2),
)


def _share(result: GpuEfficiency, part: str, whole: str) -> float | None:
    return ratio(result.total(part), result.total(whole))


def _provenance(result: GpuEfficiency) -> str:
    """Return the source of the estimates, and the share of kernel time without an estimate."""
    computed = "from launch shapes and the GPU's limits"
    both = f"as the trace states it, and {computed} where it states 0 or nothing"
    source = (both if result.computed else "as the trace states it") if result.stated else computed
    text = f"SM efficiency is estimated from blocks per SM, occupancy {source}; neither was measured."
    lacking = [
        f"{figure} of {format_ratio(1 - known)} of kernel time"
        for figure, known in (
            ("blocks per SM", _share(result, "loaded_ns", "summed_ns") or 0.0),
            ("occupancy", _share(result, "occupied_ns", "summed_ns") or 0.0),
        )
        if known < 1
    ]
    return f"{text} Not known: {' and '.join(lacking)}." if lacking and result.total("summed_ns") else text


def _gpu(trace: TraceView, device: int, name: str, shapes: Shapes) -> GpuTime:
    kernels, groups = trace.kernel_times, shapes.groups
    if len(trace.kernel_unions) > 1:
        own = kernels["device_id"] == device
        kernels, groups = kernels.filter(own), Groups(groups.keys, groups.codes[own.to_numpy()])
    window = union_all(judged_time(trace, int(process)) for process in parts_by(kernels, "process_id"))
    begin, end = trace.window_of_device(device)
    communicates = pl.col("name").is_in(communication_names(trace)).alias("communicates")
    figures = efficiency(kernels, window, groups, shapes.filled.select("load", "achieved", communicates))
    return GpuTime(name, end - begin, trace.kernel_unions[device].clip(begin, end).total, figures)


def _by_name(shapes: Shapes, durations: Array) -> pl.DataFrame:
    """Return figures of each kernel over the whole capture, weighted by duration; largest total first."""
    totals = {"calls": shapes.groups.counts, "dur_ns": shapes.groups.sums(durations)}
    kernels = shapes.filled.with_columns(pl.Series(name, values) for name, values in totals.items())
    time = pl.col("dur_ns")

    def mean(value: pl.Expr) -> pl.Expr:
        weight = time.filter(value.is_not_null()).sum()
        return pl.when(weight > 0).then(((value * time).sum() / weight).round(6))

    load, achieved = pl.col("load"), pl.col("achieved")
    grouped = kernels.group_by("name").agg(
        pl.col("calls").sum(),
        time.sum().alias("total_ns"),
        mean(pl.min_horizontal(load, pl.when(load.is_not_null()).then(1.0))).alias("sm_efficiency"),
        mean(achieved).alias("occupancy"),
        mean(load).alias("blocks_per_sm"),
    )
    return largest_first(grouped, "name")
