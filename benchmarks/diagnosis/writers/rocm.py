"""A record as a program on AMD devices would leave it: names of HIP's calls and of AMD's kernels."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.diagnosis import names
from benchmarks.diagnosis.record import DeviceSpan, Kind, Record, Span, Work

CALLS = {
    "cudaFree": "hipFree",
    "cudaGraphInstantiate": "hipGraphInstantiateWithFlags",
    "cudaGraphLaunch": "hipGraphLaunch",
    "cudaLaunchKernel": "hipLaunchKernel",
    "cudaMalloc": "hipMalloc",
    "cudaMemcpyAsync": "hipMemcpyAsync",
    "cudaStreamBeginCapture": "hipStreamBeginCapture",
    "cudaStreamCreateWithFlags": "hipStreamCreateWithFlags",
    "cudaStreamDestroy": "hipStreamDestroy",
    "cudaStreamEndCapture": "hipStreamEndCapture",
    "cudaStreamSynchronize": "hipStreamSynchronize",
}
_TILE = "MT128x128x32_MI16x16x16x1_SN_1LDSB1_GRVW8_PGR1_PLR1_TLDS1_WG64_4_1"
KERNELS = {
    names.HALF: f"Cijk_Alik_Bljk_HHS_BH_Bias_HAS_SAV_UserArgs_{_TILE}",
    names.FULL: f"Cijk_Alik_Bljk_SB_Bias_AS_SAV_UserArgs_{_TILE}",
    names.LAYOUT: "batched_transpose_32x32_half",
    names.SEND_RECEIVE: "ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)",
    names.ALL_REDUCE: "ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)",
}
"""Matrix products of hipBLASLt, transposes of MIOpen, collectives of RCCL. PyTorch's own kernels keep their names."""


def as_rocm(record: Record) -> Record:
    """Return the record with AMD's names.

    ``hipMemcpyWithStream`` copies and waits in one call: it stands for a pageable copy, and for a copy to the host with
    the synchronisation that follows it.
    """
    device = tuple(replace(span, name=KERNELS.get(span.name, span.name)) for span in record.device)
    work = {(span.rank, span.correlation): span for span in device}
    spans: list[Span] = []
    last: dict[tuple[int, int], int] = {}  # position of the last call of each thread
    for span in record.spans:
        if span.kind is not Kind.API:
            spans.append(span)
            continue
        thread = span.rank, span.thread
        before = spans[last[thread]] if thread in last else None
        if span.name == "cudaStreamSynchronize" and before is not None and _is_read(before, work):
            spans[last[thread]] = replace(before, name="hipMemcpyWithStream", end=span.end)
            continue
        last[thread] = len(spans)
        spans.append(replace(span, name=_call_name(span, work.get((span.rank, span.correlation)))))
    return replace(record, spans=tuple(spans), device=device)


def _call_name(span: Span, launched: DeviceSpan | None) -> str:
    if launched is not None and launched.work.is_copy and not launched.pinned:
        return "hipMemcpyWithStream"
    if launched is not None and launched.name.startswith("Cijk") and launched.graph is None:
        return "hipExtModuleLaunchKernel" if span.name == "cudaLaunchKernel" else CALLS[span.name]
    return CALLS[span.name]


def _is_read(call: Span, work: dict[tuple[int, int], DeviceSpan]) -> bool:
    launched = work.get((call.rank, call.correlation))
    return launched is not None and launched.work is Work.DEVICE_TO_HOST and call.name == "hipMemcpyAsync"
