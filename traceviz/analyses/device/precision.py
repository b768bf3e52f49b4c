"""Precision: matrix products and convolutions that run in 32-bit kernels where tensor cores could compute them.

The bound on the gain is Amdahl's. The 32-bit time of these ops shrinks by the ratio of the peak rates, and everything
else stays. The judged time shrinks by at most that much.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from traceviz.analyses.base import Analysis, finding
from traceviz.analyses.derived.calls.op_names import MATRIX_TYPE, parsed_ops, torch_matrix_op
from traceviz.analyses.derived.capture.kind import why_no_device_work
from traceviz.analyses.derived.device.occupancy import kernels_by_name
from traceviz.analyses.derived.device.work import judged_device_ns
from traceviz.analyses.derived.frames import intervals
from traceviz.analyses.derived.grouped import Groups
from traceviz.analyses.derived.judged_time import judged_time, judged_words
from traceviz.analyses.derived.patterns import matches
from traceviz.analyses.derived.statistics import CALLS, TOTAL, frame_grid, ratio, share
from traceviz.analyses.derived.view import TraceView, once_per_trace
from traceviz.core.units import format_ns, format_ratio
from traceviz.report import Column, Fact, Facts, Finding, Section, Skipped
from traceviz.report.findings.record import WARNING_SHARE
from traceviz.trace.names.kernel_names import UNKNOWN

RATES: dict[str, float] = {
    "7.0": 125 / 15.7,  # V100: NVIDIA Tesla V100 GPU architecture, WP-08608-001, table 1
    "7.5": 65 / 8.1,  # T4: NVIDIA T4 data sheet
    "8.0": 312 / 19.5,  # A100: NVIDIA A100 Tensor Core GPU architecture, table 1
    "8.6": 125 / 31.2,  # A10: NVIDIA A10 data sheet
    "8.9": 121 / 30.3,  # L4: NVIDIA L4 data sheet
    "9.0": 989.4 / 66.9,  # H100 SXM5: NVIDIA H100 Tensor Core GPU architecture, table 2
}
"""Peak rate of dense 16-bit floats on tensor cores over that of 32-bit floats, by compute capability."""

OWN_KERNEL = r"^(void )?\w+\([^<>:]*\)$"
"""A plain function with its parameters (``matmul(float*, float*, int)``): the program's own kernel, whose precision no
setting of a framework changes. Kernels of libraries are templates, lie in namespaces, or have no parameters."""


@dataclass(frozen=True, slots=True)
class MatrixTimes:
    """Kernels of matrix ops, and the part of them that tensor cores could speed up.

    Args:
        by_type: Kernels by op type and precision: ``type, precision, calls, total_ns, share_of_matrix_time``.
        full_ns: Time within the judged time in which 32-bit kernels of these ops run on devices with tensor cores.
        rate: How many times as fast these compute 16-bit floats at their peak, if :data:`RATES` knows all of them: the
            lowest. ``None`` for others.
        judged_ns: Judged time, once per device and process.
        judged_words: Text that names the judged time.
    """

    by_type: pl.DataFrame
    full_ns: int
    judged_ns: int
    judged_words: str
    rate: float | None = None

    def total_where(self, condition: pl.Expr) -> int:
        """Return the kernel time of the matrix ops that meet ``condition``."""
        return int(self.by_type.filter(condition)["total_ns"].sum())


@dataclass(frozen=True, slots=True)
class PrecisionAnalysis(Analysis[MatrixTimes]):
    """Matrix ops by the precision in their kernels' names. A name without a precision does not count as 32-bit.

    Args:
        min_capability: Devices of this compute capability and newer have tensor cores for 16-bit floats.
        speedup: How many times as fast 16-bit tensor cores are taken to be on devices that :data:`RATES` does not know.
        min_share: Least share of the judged time, saved by tensor cores at best, for a finding.
    """

    slug = "precision"
    title = "Precision of matrix ops"
    rules = ("TV405",)

    min_capability: float = 7.0
    speedup: float = 8.0
    min_share: float = WARNING_SHARE

    def run(self, trace: TraceView) -> MatrixTimes | Skipped:
        """Find the kernels of matrix ops and read their precision from their names."""
        kinds = _matrix_kinds(trace)
        if not kinds.height:
            return self.skipped(
                why_no_device_work(trace)
                or "no kernel of the trace is known to belong to a matrix product or convolution"
            )
        grouped = kinds.group_by("type", "precision").agg(pl.col("calls", "total_ns").sum())
        by_type = grouped.with_columns(share("total_ns", int(grouped["total_ns"].sum()), "share_of_matrix_time"))
        by_type = by_type.sort("total_ns", "type", "precision", descending=[True, False, False])
        devices = trace.frame("devices", "device_id", "compute_capability")
        version = pl.col("compute_capability").cast(pl.Float64, strict=False)
        capable = dict(devices.filter(version >= self.min_capability)["device_id", "compute_capability"].iter_rows())
        is_full = (pl.col("precision") == "f32") & pl.col("tensor_core").ne_missing(True)
        full = kinds.filter(is_full & ~matches(pl.col("name"), OWN_KERNEL))
        kernels = _kernels_of(trace, full)
        total, rates = 0, []
        for process, device in trace.owners:
            own = kernels.filter((pl.col("process_id") == process) & (pl.col("device_id") == device))
            time = intervals(own).intersect(judged_time(trace, process)).total if device in capable else 0
            total += time
            rates += [RATES.get(str(capable[device]))] if time else []
        known = [rate for rate in rates if rate is not None]
        rate = min(known) if known and len(known) == len(rates) else None
        return MatrixTimes(by_type, total, judged_device_ns(trace), judged_words(trace), rate)

    def judge(self, result: MatrixTimes) -> tuple[Finding, ...]:
        """Return a finding on matrix ops in 32 bits on devices with tensor cores."""
        saved = round(result.full_ns * (1 - 1 / (result.rate or self.speedup)))
        if not result.judged_ns or saved < self.min_share * result.judged_ns:
            return ()
        fast = f"about {result.rate:.0f} times as fast" if result.rate else "faster"
        message = (
            f"Matrix products and convolutions run {format_ns(result.full_ns)} in 32-bit kernels, "
            f"{format_ratio(result.full_ns / result.judged_ns)} of the {result.judged_words}, on a device whose tensor "
            f"cores compute 16-bit floats {fast}."
        )
        evidence = (
            Fact("full_ns", "matrix ops in 32-bit kernels", result.full_ns, "ns"),
            Fact("judged_ns", result.judged_words, result.judged_ns, "ns"),
            Fact("best_case_speedup", "at best", result.judged_ns / (result.judged_ns - saved), "factor"),
        )
        return (finding("TV405", message, evidence, saved, result.judged_ns, result.judged_words),)

    def describe(self, result: MatrixTimes) -> Section:
        """Describe time by precision, and matrix ops by type and precision."""
        total = result.total_where(pl.lit(True))
        full = result.total_where(pl.col("precision") == "f32")
        unknown = result.total_where(pl.col("precision") == UNKNOWN)
        facts = (
            Fact("total_ns", "kernel time of matrix ops", total, "ns"),
            Fact("full_share", "in 32-bit kernels", ratio(full, total), "ratio"),
            Fact("unknown_share", "of unknown precision", ratio(unknown, total), "ratio"),
        )
        columns = (
            Column("type", "Op type", "text", 0),
            Column("precision", "Precision", "text", 0),
            CALLS,
            TOTAL,
            Column("share_of_matrix_time", "Of matrix time", "ratio", 0, bar=True),
        )
        return Section(self.slug, self.title, (Facts(facts), frame_grid(columns, result.by_type)))


MATRIX_FAMILIES = ("gemm", "convolution", "attention")
"""Kernel families that are matrix ops even if the trace does not name the op."""


def _matrix_kinds(trace: TraceView) -> pl.DataFrame:
    """Return distinct kernels of matrix ops: ``group, name, type, precision, tensor_core, calls, total_ns``."""
    groups = _kernels_by_op(trace)
    durations = trace.kernel_times["dur_ns"].fill_null(0).to_numpy()
    sums = pl.Series("calls", groups.counts), pl.Series("total_ns", groups.sums(durations))
    kinds = groups.keys.with_columns(*sums).with_row_index("group")
    classified = pl.DataFrame(
        [(name, kernel.family, kernel.precision, kernel.tensor_core) for name, kernel in trace.kernel_classes.items()],
        {"name": pl.String, "family": pl.String, "precision": pl.String, "tensor_core": pl.Boolean},
        orient="row",
    )
    types = parsed_ops(kinds["op"]).select(pl.col("text").alias("op"), "type")
    joined = kinds.join(classified, on="name", how="left").join(types, on="op", how="left")
    named = matches(pl.col("type"), MATRIX_TYPE) | torch_matrix_op("op")
    matrix = named.fill_null(value=False) | pl.col("family").is_in(MATRIX_FAMILIES)
    label = pl.coalesce("type", "family").alias("type")
    return joined.filter(matrix).select("group", "name", label, "precision", "tensor_core", "calls", "total_ns")


@once_per_trace
def _kernels_by_op(trace: TraceView) -> Groups:
    """Group all kernels by name and op."""
    kernels = trace.frame("kernels", "name", "op")
    if kernels["op"].count():
        return Groups.of(kernels, "name", "op")
    by_name = kernels_by_name(trace)
    return Groups(by_name.keys.with_columns(pl.lit(None, pl.String).alias("op")), by_name.codes)


def _kernels_of(trace: TraceView, kinds: pl.DataFrame) -> pl.DataFrame:
    """Return kernels of the given groups of :func:`_kernels_by_op`: rows of :attr:`TraceView.kernel_times`."""
    if not kinds.height:
        return trace.kernel_times.head(0)
    groups = _kernels_by_op(trace)
    wanted = np.zeros(len(groups), dtype=bool)
    wanted[kinds["group"].to_numpy()] = True
    return trace.kernel_times.filter(pl.Series(wanted[groups.codes], dtype=pl.Boolean))
