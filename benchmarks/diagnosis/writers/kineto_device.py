"""Calls of the runtime and device work in files of the PyTorch profiler, as three of its back ends write them."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from benchmarks.diagnosis import names
from benchmarks.diagnosis.record import DeviceSpan, Span, Work
from benchmarks.diagnosis.writers.shared import CALLBACKS, DEVICE_MEMORY, DEVICE_NAME, MULTIPROCESSORS, copy_name

Event = dict[str, Any]


class BackEnd(StrEnum):
    """A source of device events: Kineto on CUPTI, Kineto on roctracer, and ``torch.profiler._cupti``."""

    CUPTI = "cupti"
    ROCTRACER = "roctracer"
    MONITOR = "monitor"


FIRST_AMD_DEVICE = 2
"""roctracer numbers the CPU's agents first, so the first GPU of a machine with two sockets is device 2."""
HIP_CALLBACKS = {
    "hipExtModuleLaunchKernel": 65,
    "hipFree": 69,
    "hipLaunchKernel": 107,
    "hipMalloc": 108,
    "hipMemcpyAsync": 134,
    "hipMemcpyWithStream": 153,
    "hipStreamCreateWithFlags": 191,
    "hipStreamDestroy": 193,
    "hipStreamSynchronize": 200,
    "hipGraphLaunch": 215,
    "hipStreamBeginCapture": 219,
    "hipStreamEndCapture": 220,
    "hipGraphInstantiateWithFlags": 279,
}
_HIP_KINDS = {Work.HOST_TO_DEVICE: "1", Work.DEVICE_TO_HOST: "2", Work.DEVICE_TO_DEVICE: "3"}
_DIRECTIONS = {Work.HOST_TO_DEVICE: "HtoD", Work.DEVICE_TO_HOST: "DtoH", Work.DEVICE_TO_DEVICE: "DtoD"}
_OPERATORS = {kernel: name for name, kernel, _ in names.OPERATORS}


def call_arguments(back_end: BackEnd, span: Span, external: int, work: DeviceSpan | None) -> Event:
    """Return the arguments of a call. ``external`` is the operator around it, ``work`` what it launched."""
    if back_end is BackEnd.MONITOR:
        return {"cbid": CALLBACKS[span.name], "correlation": span.correlation}
    if back_end is BackEnd.CUPTI:
        return {"External id": external, "cbid": CALLBACKS[span.name], "correlation": span.correlation}
    arguments: Event = {"External id": external} if external else {}
    arguments |= {"cid": HIP_CALLBACKS[span.name], "correlation": span.correlation}
    if work is not None and work.work.is_copy:
        places = {"src": "0x7f1818900000", "dst": "0x7f14db1a4000"}
        return arguments | places | {"bytes": str(work.bytes), "kind": _HIP_KINDS[work.work]}
    if work is not None and work.graph is None:
        shape = {"grid": [work.grid, 1, 1], "block": [work.block, 1, 1], "shared memory": 0}
        return arguments | {"kernel": work.name} | shape
    return arguments


def has_flow(back_end: BackEnd, span: Span, work: DeviceSpan | None) -> bool:
    """Return whether a call starts a flow to device work, or to a synchronisation of it."""
    return work is not None or (back_end is not BackEnd.ROCTRACER and "Synchronize" in span.name)


def device_number(back_end: BackEnd, rank: int) -> int:
    """Return the number of the device of a rank."""
    return rank + FIRST_AMD_DEVICE if back_end is BackEnd.ROCTRACER else rank


def device_event(back_end: BackEnd, span: DeviceSpan, external: int, ranks: int) -> tuple[str, str, Event]:
    """Return the category, the name and the arguments of device work."""
    device = device_number(back_end, span.rank)
    external_id: Event = {"External id": external} if external else {}
    place: Event = {"device": device, "context": 1, "stream": span.stream, "correlation": span.correlation}
    rate = round(span.bytes / max(1, span.end - span.start), 6)
    if back_end is BackEnd.ROCTRACER:
        del place["context"]
        arguments = external_id | place
        if span.work.is_copy:
            arguments |= {"kind": _DIRECTIONS[span.work], "bytes": span.bytes, "memory bandwidth (GB/s)": rate}
            # roctracer does not know whether the memory of the host is pinned.
            return "gpu_memcpy", copy_name(span).replace("Pinned", "Host").replace("Pageable", "Host"), arguments
        if span.work is Work.FILL:
            return "gpu_memset", "Memset (Device)", arguments | {"kind": "Device"}
        if span.graph is not None:
            return "kernel", span.name, place | {"kind": "Dispatch Task"}
        shape = {"grid": [span.grid, 1, 1], "block": [span.block, 1, 1]}
        arguments |= {"kind": "Dispatch Kernel"} | shape
    elif span.work.is_copy:
        if back_end is BackEnd.MONITOR:
            host = "pinned" if span.pinned else "pageable"
            kinds = {
                "copy kind": _DIRECTIONS[span.work],
                "src kind": host if span.work is Work.HOST_TO_DEVICE else "device",
                "dst kind": host if span.work is Work.DEVICE_TO_HOST else "device",
            }
            return "gpu_memcpy", "Memcpy", place | {"bytes": span.bytes} | kinds | _CHANNEL | {"flags": 0}
        arguments = external_id | place | {"bytes": span.bytes, "memory bandwidth (GB/s)": rate}
        return "gpu_memcpy", copy_name(span), arguments
    elif span.work is Work.FILL:
        if back_end is BackEnd.MONITOR:
            more = {"bytes": span.bytes, "value": 0, "memory kind": 3, "flags": 0}
            return "gpu_memset", "Memset", place | more | _CHANNEL
        arguments = external_id | place | {"bytes": span.bytes, "memory bandwidth (GB/s)": rate}
        return "gpu_memset", "Memset (Device)", arguments
    else:
        shape = {"grid": [span.grid, 1, 1], "block": [span.block, 1, 1]}
        arguments = (
            place | shape | {"registers per thread": 40, "shared memory": 0, "priority": 0, "queued": 0} | _CHANNEL
            if back_end is BackEnd.MONITOR
            else external_id | place | shape | _occupancy(span)
        )
        if span.graph is not None:
            arguments |= {"graph id": span.graph, "graph node id": span.node}
            if span.name in _OPERATORS:  # what the program says of a part of a graph
                arguments |= {"name": _OPERATORS[span.name], "module_fqn": "model.block", "autograd_phase": "forward"}
    if span.work is Work.COLLECTIVE and back_end is not BackEnd.ROCTRACER:
        arguments |= _collective(span, ranks)
    return "kernel", span.name, arguments


_CHANNEL = {"channel": 1, "channel_type": 1}


def _occupancy(span: DeviceSpan) -> Event:
    return {
        "queued": 0,
        "registers per thread": 40,
        "shared memory": 0,
        "blocks per SM": round(span.grid / MULTIPROCESSORS, 6),
        "warps per SM": round(span.grid * span.block / 32 / MULTIPROCESSORS, 6),
        "est. achieved occupancy %": min(100, round(100 * span.grid * span.block / (MULTIPROCESSORS * 2_048))),
    }


def _collective(span: DeviceSpan, ranks: int) -> Event:
    members = list(span.members or range(ranks))
    return {
        "Collective name": span.operation,
        "In msg nelems": span.bytes // 4,
        "Out msg nelems": span.bytes // 4,
        "Group size": len(members),
        "dtype": "Float",
        "In split size": "[]",
        "Out split size": "[]",
        "Process Group Name": "0" if len(members) == ranks else f"{min(members) + 1}",
        "Process Group Description": "default_pg" if len(members) == ranks else "undefined",
        "Process Group Ranks": str(members),
    }


def device_properties(back_end: BackEnd, ranks: int) -> list[Event]:
    """Return the properties of the devices of a machine."""
    if back_end is BackEnd.ROCTRACER:
        amd = {
            "name": "AMD Instinct MI300X",
            "totalGlobalMem": 206_141_652_992,
            "computeMajor": 9,
            "computeMinor": 4,
            "maxThreadsPerBlock": 1_024,
            "maxThreadsPerMultiprocessor": 2_048,
            "regsPerBlock": 65_536,
            "warpSize": 64,
            "sharedMemPerBlock": 65_536,
            "numSms": 304,
            "maxSharedMemoryPerMultiProcessor": 65_536,
        }
        return [{"id": number, **amd} for number in range(ranks + FIRST_AMD_DEVICE)]
    nvidia = {
        "name": DEVICE_NAME,
        "totalGlobalMem": DEVICE_MEMORY,
        "computeMajor": 8,
        "computeMinor": 0,
        "maxThreadsPerBlock": 1_024,
        "maxThreadsPerMultiprocessor": 2_048,
        "regsPerBlock": 65_536,
        "warpSize": 32,
        "sharedMemPerBlock": 49_152,
        "numSms": MULTIPROCESSORS,
        "regsPerMultiprocessor": 65_536,
        "sharedMemPerBlockOptin": 166_912,
        "sharedMemPerMultiprocessor": 167_936,
    }
    return [{"id": number, **nvidia} for number in range(ranks)]
