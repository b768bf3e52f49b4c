"""Precision: matrix products and convolutions that run in 32-bit kernels where tensor cores could compute them.

The bound on the gain is Amdahl's. The 32-bit time of these ops shrinks by the ratio of the peak rates, and everything
else stays. The judged time shrinks by at most that much.
"""

from __future__ import annotations

import re
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
from traceviz.report.findings.registry import record_of
from traceviz.trace.names.kernel_names import UNKNOWN

RATES: tuple[tuple[str, float], ...] = (
    (r"V100", 125 / 15.7),  # NVIDIA V100 data sheet
    (r"\bT4\b|Quadro RTX [68]000", 65 / 8.1),  # NVIDIA T4 data sheet; Turing architecture, appendix A
    (r"A100|A800|A30\b", 312 / 19.5),  # NVIDIA A100 data sheet
    (r"\bA10\b|\bA40\b|RTX A6000", 125 / 31.2),  # NVIDIA A10 data sheet
    (r"\bL4\b|L40S", 121 / 30.3),  # NVIDIA L4 data sheet
    (r"H100|H200", 989.4 / 66.9),  # NVIDIA H100 data sheet
    (r"GeForce RTX 20", 56.9 / 14.2),  # sums in 32 bits, as libraries compute: NVIDIA Turing architecture, appendix A
    (r"GeForce RTX [34]0", 71.2 / 35.6),  # the same: NVIDIA Ampere GA102 and Ada architecture, appendix A
    (r"MI300[AX]|MI325X", 1307.4 / 163.4),  # AMD Instinct MI300X data sheet
    (r"MI210|MI250X?|MI100", 181 / 45.3),  # AMD Instinct MI210 data sheet, 32 bits on matrix cores
)
"""Peak rate of dense 16-bit floats on tensor cores (matrix cores) over that of 32-bit floats, by product name."""
_RATES_OF_CAPABILITY: dict[str, float] = {"7.0": 125 / 15.7, "8.0": 312 / 19.5}
"""The same for devices without a name, where all products of a compute capability agree."""
_WITHOUT_TENSOR_CORES = r"GTX 16|MI[56]0\b|Vega|Radeon VII"
_OF_AMD = r"(?i)AMD|Instinct|Radeon|\bMI\d{2,3}"
LIBRARY = (
    r"(?i)cublas|cudnn|cutlass|xmma|nvjet|magma|miopen|^(?:custom_)?cijk_|igemm_(?:fwd|bwd|wrw)"
    r"|^(?:void )?(?:kepler|maxwell|pascal|volta|turing|ampere|hopper|sm\d+x?\d*)_"
    r"|gemmSN|gemmk1|gemv2[NT]|gemvNSP|^(?:void )?sgemm_(?:largek|\d+x\d+)|convolve_sgemm|(?:dgrad|wgrad\w*)_engine"
    r"|(?:2d|direct)_grouped_direct|winograd(?:3x3|Forward|Wgrad|Backward)|fft2d_[rc]2[rc]|splitk_?reduce"
)
"""Kernels of libraries, which switches of a framework move to tensor cores; others are as their author wrote them."""
_OF_TENSOR_CORES = re.compile(r"(?:void )?(?:volta|turing|ampere|hopper|sm[789]\d|sm1[02]\d)_")
"""Kernels of cuBLAS and cuDNN for devices with tensor cores: their names start with the oldest such generation."""


@dataclass(frozen=True, slots=True)
class MatrixTimes:
    """Kernels of matrix ops, and the part of them that tensor cores could speed up.

    Args:
        by_type: Kernels by op type and precision: ``type, precision, calls, total_ns, share_of_matrix_time``.
        full_ns: Time within the judged time in which 32-bit kernels of these ops run on devices with tensor cores.
        rate: How many times as fast these compute 16-bit floats at their peak, if :data:`RATES` knows all of them: the
            lowest. ``None`` for others.
        of_amd: True if one of these devices is AMD's, which has matrix cores and other switches.
        judged_ns: Judged time, once per device and process.
        judged_words: Text that names the judged time.
    """

    by_type: pl.DataFrame
    full_ns: int
    judged_ns: int
    judged_words: str
    rate: float | None = None
    of_amd: bool = False

    def total_where(self, condition: pl.Expr) -> int:
        """Return the kernel time of the matrix ops that meet ``condition``."""
        return int(self.by_type.filter(condition)["total_ns"].sum())


@dataclass(frozen=True, slots=True)
class PrecisionAnalysis(Analysis[MatrixTimes]):
    """Matrix ops by the precision in their kernels' names. A name without a precision does not count as 32-bit.

    Args:
        min_capability: Devices of this compute capability and newer have tensor cores for 16-bit floats.
        speedup: How many times as fast 16-bit tensor cores are at least, for devices that :data:`RATES` does not know.
        min_share: Least share of the judged time, saved by tensor cores at best, for a finding.
    """

    slug = "precision"
    title = "Precision of matrix ops"
    rules = ("TV405",)

    min_capability: float = 7.0
    speedup: float = 2.0
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
        product = pl.col("name").cast(pl.String).fill_null("")
        devices = trace.frame("devices", "device_id", "compute_capability", product)
        version = pl.col("compute_capability").cast(pl.Float64, strict=False)
        has_tensor_cores = (version >= self.min_capability) & ~pl.col("name").str.contains(_WITHOUT_TENSOR_CORES)
        if devices["compute_capability"].is_null().all() and any(map(_OF_TENSOR_CORES.match, trace.kernel_classes)):
            has_tensor_cores = pl.lit(value=True)  # the format does not state it, but kernels of such a device run
        capable = {device: (name, of) for device, of, name in devices.filter(has_tensor_cores).iter_rows()}
        in_32_bits = (pl.col("precision") == "f32") & pl.col("tensor_core").ne_missing(True)
        full = kinds.filter(in_32_bits & pl.col("is_switchable"))
        kernels = _kernels_of(trace, full)
        total, rates, of_amd = 0, [], False
        for process, device in trace.owners:
            own = kernels.filter((pl.col("process_id") == process) & (pl.col("device_id") == device))
            time = intervals(own).intersect(judged_time(trace, process)).total if device in capable else 0
            total += time
            if time:
                name, capability = capable[device]
                by_name = (rate for pattern, rate in RATES if re.search(pattern, name))
                rates.append(next(by_name, None if name else _RATES_OF_CAPABILITY.get(str(capability))))
                of_amd = of_amd or re.search(_OF_AMD, name) is not None
        known = [rate for rate in rates if rate is not None]
        rate = min(known) if known and len(known) == len(rates) else None
        return MatrixTimes(by_type, total, judged_device_ns(trace), judged_words(trace), rate, of_amd)

    def judge(self, result: MatrixTimes) -> tuple[Finding, ...]:
        """Return a finding on matrix ops in 32 bits on devices with tensor cores."""
        saved = round(result.full_ns * (1 - 1 / (result.rate or self.speedup)))
        if not result.judged_ns or saved < self.min_share * result.judged_ns:
            return ()
        unknown = f"faster (counted as {self.speedup:g} times as fast: no data sheet is known)"
        fast = f"about {result.rate:.0f} times as fast" if result.rate else unknown
        cores = "matrix cores" if result.of_amd else "tensor cores"
        message = (
            f"Matrix products and convolutions run {format_ns(result.full_ns)} in 32-bit kernels, "
            f"{format_ratio(result.full_ns / result.judged_ns)} of the {result.judged_words}, on a device whose "
            f"{cores} compute 16-bit floats {fast}."
        )
        advice = tuple(line for line in record_of("TV405").advice if not (result.of_amd and "TensorFloat" in line))
        evidence = (
            Fact("full_ns", "matrix ops in 32-bit kernels", result.full_ns, "ns"),
            Fact("judged_ns", result.judged_words, result.judged_ns, "ns"),
            Fact("best_case_speedup", "at best", result.judged_ns / (result.judged_ns - saved), "factor"),
        )
        share_of = saved, result.judged_ns, result.judged_words
        return (finding("TV405", message, evidence, *share_of, advice=advice),)

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
    """Return distinct kernels of matrix ops: ``group, type, precision, tensor_core, is_switchable, calls, total_ns``.

    A kernel is switchable if an operator of the framework runs it or it is a library's.
    """
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
    named = (matches(pl.col("type"), MATRIX_TYPE) | torch_matrix_op("op")).fill_null(value=False)
    matrix = named | pl.col("family").is_in(MATRIX_FAMILIES)
    is_switchable = (named | matches(pl.col("name").cast(pl.String), LIBRARY)).alias("is_switchable")
    label = pl.coalesce("type", "family").alias("type")
    return joined.filter(matrix).select("group", label, "precision", "tensor_core", is_switchable, "calls", "total_ns")


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
