"""Figures of GPUs by PyTorch's TensorBoard plugin, and further clues for its recommendations.

The definitions are those of its last source (pytorch/kineto, ``tb_plugin``: ``gpu_metrics_parser``, ``tensor_core``,
``tensor_cores_parser``, ``data``).
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from traceviz.analyses.derived.device.names import device_names
from traceviz.analyses.derived.device.sm_efficiency import Efficiency, efficiency
from traceviz.analyses.derived.frames import having, parts_by
from traceviz.analyses.derived.grouped import Groups
from traceviz.analyses.derived.statistics import ratio
from traceviz.analyses.derived.view import TraceView
from traceviz.core.arrays.intervals import IntervalSet

_TENSOR_CORE_KERNELS = (
    *("h884", "s884", "h1688", "s1688", "hmma", "i8816", "16816", "c1688"),
    *("dgrad_1x1_stride_2x2", "first_layer_wgrad_kernel", "conv1x1", "conv2d_c1_k1", "direct_group"),
    *("xmma_implicit_gemm", "xmma_sparse_conv", "xmma_warp_specialized_implicit_gemm", "xmma_gemm", "xmma_sparse_gemm"),
)
"""Parts of kernel names that, for the plugin, use tensor cores. Kernels of newer GPUs are not among them."""

_ELIGIBLE_OPS = frozenset(
    f"aten::{name}"
    for name in (
        *("_convolution", "conv1d", "conv2d", "conv3d", "conv_tbc", "convolution", "cudnn_convolution"),
        *("conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cudnn_convolution_transpose", "prelu"),
        *("addmm", "addmm_", "addmv", "addr", "matmul", "mm", "mv", "linear", "addbmm", "baddbmm", "bmm"),
        *("chain_matmul", "linalg_multi_dot", "_thnn_fused_lstm_cell", "_thnn_fused_gru_cell", "lstm_cell"),
        *("gru_cell", "rnn_tanh_cell", "rnn_relu_cell", "cudnn_convolution_backward"),
        *("cudnn_convolution_backward_input", "cudnn_convolution_backward_weight"),
        *("cudnn_convolution_transpose_backward", "cudnn_convolution_transpose_backward_input"),
        "cudnn_convolution_transpose_backward_weight",
    )
) | {
    *("CudnnConvolutionBackward", "CudnnConvolutionTransposeBackward", "BmmBackward0", "MmBackward"),
    *("AddmvBackward", "MvBackward", "AddmmBackward", "AddbmmBackward"),
}
"""Operators that, for the plugin, can use tensor cores, with their names as of PyTorch 1.8 to 1.10."""


@dataclass(frozen=True, slots=True)
class GpuFigures:
    """The plugin's figures of one GPU that a process uses, from the start of the first step to the end of the last.

    Args:
        process_id: The process.
        device_id: The GPU.
        ordinal: The program's number for it.
        device: Its name for readers.
        efficiency: Utilisation, SM efficiency and occupancy, as the trace states them.
        tensor_core_share: Share of kernels whose names show tensor cores, of the time of kernels launched by calls of
            the runtime.
    """

    process_id: int
    device_id: int
    ordinal: int
    device: str
    efficiency: Efficiency
    tensor_core_share: float | None

    @property
    def utilisation(self) -> float:
        """Share of the steps' time, gaps between them included, in which a kernel runs."""
        return ratio(self.efficiency.kernel_ns, self.efficiency.window_ns) or 0.0


@dataclass(frozen=True, slots=True)
class FullMemory:
    """A GPU whose memory was nearly all in use."""

    ordinal: int
    peak_bytes: int
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class Clues:
    """Clues for recommendations besides step time and the figures of GPUs.

    Args:
        data_parallel: True if DataParallel ran on several GPUs.
        without_nccl: True if DistributedDataParallel ran without NCCL on a GPU that NCCL supports.
        first_major: Major compute capability of the first GPU, if known.
        tensor_core_share: Share of all kernel time in kernels on tensor cores; ``None`` without kernels.
        eligible_share: Share of kernel time in operators that could use them.
        full: The first GPU whose memory was nearly all in use.
    """

    data_parallel: bool
    without_nccl: bool
    first_major: int | None
    tensor_core_share: float | None
    eligible_share: float
    full: FullMemory | None


FULL = 0.9
"""A GPU counts as full from this share of its memory on."""
_NCCL_CAPABILITY = 3.5


def gpu_figures(trace: TraceView, process: int, begin: int, end: int) -> list[GpuFigures]:
    """Return figures of each GPU that the process uses, between two moments.

    Only values of the trace count; none are computed from launch shapes. Some recordings wrongly state an occupancy of
    0, which lowers the mean.
    """
    columns = ("start_ns", "dur_ns", "process_id", "device_id", "correlation_id", "name")
    kernels = trace.frame("kernels", *columns, "blocks_per_sm", "achieved_occupancy").filter(
        pl.col("process_id") == process
    )
    kernels = kernels.with_columns(
        pl.when(pl.col("blocks_per_sm") > 0).then(pl.col("blocks_per_sm")).alias("load"),
        pl.when(pl.col("achieved_occupancy") >= 0).then(pl.col("achieved_occupancy")).alias("achieved"),
    )
    if not kernels.height:
        return []
    names, window = device_names(trace), IntervalSet.span(begin, end)
    ordinals = dict(trace.frame("devices", "device_id", "ordinal").drop_nulls().iter_rows())
    on_tensor_cores = pl.col("name").is_in(_tensor_core_names(trace))
    return [
        GpuFigures(
            process_id=process,
            device_id=device,
            ordinal=ordinals.get(device, device),
            device=names[device],
            efficiency=_efficiency(part, window),
            tensor_core_share=_share(_linked(trace, part), on_tensor_cores),
        )
        for device, part in parts_by(kernels, "device_id").items()
    ]


def _efficiency(kernels: pl.DataFrame, window: IntervalSet) -> Efficiency:
    shapes = Groups.of(kernels, "load", "achieved")
    return efficiency(kernels, window, shapes, shapes.keys.with_columns(pl.lit(value=False).alias("communicates")))


def clues(trace: TraceView) -> Clues:
    """Collect the clues."""
    names = set(trace.host_names["name"].to_list())
    kernels = trace.frame("kernels", "dur_ns", "process_id", "device_id", "correlation_id", "name", "op")
    stated = trace.frame("devices", "compute_capability")["compute_capability"].drop_nulls()
    known = stated.cast(pl.Float64, strict=False).drop_nulls().to_list()
    nccl = any(name.startswith("nccl:") for name in names)
    launched = _linked(trace, kernels).filter(pl.col("op").is_not_null())
    # The first GPU whose allocator gave out more than :data:`FULL` of its memory.
    events = trace.frame("memory_events", "device_id", "in_use_bytes").drop_nulls()
    peaks = events.group_by("device_id").agg(pl.col("in_use_bytes").max().alias("peak"))
    devices = trace.frame("devices", "device_id", "ordinal", "memory_bytes").drop_nulls()
    full = peaks.join(devices, on="device_id").filter(pl.col("peak") > FULL * pl.col("memory_bytes"))
    rows = full.sort("device_id")[["ordinal", "peak", "memory_bytes"]].head(1).rows()
    return Clues(
        data_parallel="DataParallel.forward" in names and kernels["device_id"].n_unique() > 1,
        without_nccl="DistributedDataParallel.forward" in names
        and not nccl
        and any(capability >= _NCCL_CAPABILITY for capability in known),
        first_major=int(known[0]) if known else None,
        tensor_core_share=_share(kernels, pl.col("name").is_in(_tensor_core_names(trace))),
        eligible_share=_share(launched, pl.col("op").is_in(list(_ELIGIBLE_OPS))) or 0.0,
        full=FullMemory(*rows[0]) if rows else None,
    )


def _linked(trace: TraceView, kernels: pl.DataFrame) -> pl.DataFrame:
    """Return the ``kernels`` that a recorded runtime call launched. The plugin ignores calls of the driver."""
    calls = trace.frame("cuda_api", "process_id", "correlation_id", "domain")
    return kernels.join(having(calls, "domain", "runtime"), on=["process_id", "correlation_id"], how="semi")


def _tensor_core_names(trace: TraceView) -> list[str]:
    return [name for name in trace.kernel_classes if any(part in name for part in _TENSOR_CORE_KERNELS)]


def _share(kernels: pl.DataFrame, condition: pl.Expr) -> float | None:
    """Return the share of the time of ``kernels`` in those that meet ``condition``."""
    return ratio(int(kernels.filter(condition)["dur_ns"].sum()), int(kernels["dur_ns"].sum()))
