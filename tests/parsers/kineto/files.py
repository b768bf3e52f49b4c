"""Kineto traces from literals, as PyTorch's profiler writes them.

    trace(
        [
            step(1, 0, 100),
            op("aten::mm", 10, 20, external=5),
            runtime("cudaLaunchKernel", 12, 3, correlation=7, external=5),
            kernel("gemm", 40, 30, correlation=7, external=5, grid=(80, 1, 1)),
        ],
        header={"deviceProperties": [gpu(0, "Tesla V100")], "distributedInfo": {"rank": 1, "world_size": 2}},
    )

Times are microseconds and may be numbers of any kind or texts, as in the files. Every builder takes further arguments
of the event as ``args={...}`` (they come last and win), and ``category`` where the spelling of another age is wanted.
``trace`` gives the bytes of a file; ``compressed`` those of a gzip file.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from typing import Any

Event = dict[str, Any]
Time = int | float | str

PID = 100
TID = 101


def trace(events: Sequence[Event], header: Mapping[str, Any] | None = None) -> bytes:
    """Return a file: an object with ``header`` and ``traceEvents``. The default ``schemaVersion`` is 1."""
    return json.dumps({"schemaVersion": 1, **(header or {}), "traceEvents": list(events)}).encode()


def bare(events: Sequence[Event]) -> bytes:
    """Return a file of the oldest kind: only the list."""
    return json.dumps(list(events)).encode()


def compressed(data: bytes) -> bytes:
    """Return ``data`` as a gzip file, the same bytes each time."""
    return gzip.compress(data, mtime=0)


def complete(
    name: str,
    start: Time,
    duration: Time,
    category: str = "cpu_op",
    *,
    pid: int | str = PID,
    tid: int | str = TID,
    args: Mapping[str, Any] | None = None,
    **arguments: Any,
) -> Event:
    """Return any event with a start and a duration; ``arguments`` that are ``None`` are left out."""
    given = {**{key: value for key, value in arguments.items() if value is not None}, **(args or {})}
    event = {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": start, "dur": duration}
    return {**event, "args": given} if given else event


def op(
    name: str,
    start: Time,
    duration: Time,
    *,
    external: int | None = None,
    shapes: Any = None,
    types: Any = None,
    sequence: int | None = None,
    category: str = "cpu_op",
    **more: Any,
) -> Event:
    """Return an operation of the framework on the host; ``more`` as :func:`complete` takes it: pid, tid, args."""
    known = {"External id": external, "Input Dims": shapes, "Input type": types, "Sequence number": sequence}
    return complete(name, start, duration, category, **known, **more)


def annotation(
    name: str,
    start: Time,
    duration: Time,
    *,
    external: int | None = None,
    category: str = "user_annotation",
    **more: Any,
) -> Event:
    """Return a range that the program named."""
    return complete(name, start, duration, category, **{"External id": external}, **more)


def step(number: int, start: Time, duration: Time, **more: Any) -> Event:
    """Return the marker of a training step on the host."""
    return annotation(f"ProfilerStep#{number}", start, duration, **more)


def loader(start: Time, duration: Time, *, kind: str = "_SingleProcessDataLoaderIter", **more: Any) -> Event:
    """Return a range in which the program takes its next batch from a DataLoader."""
    return annotation(f"enumerate(DataLoader)#{kind}.__next__", start, duration, **more)


def frame(
    name: str,
    start: Time,
    duration: Time,
    *,
    number: int | None = None,
    parent: int | None = None,
    module: int | None = None,
    **more: Any,
) -> Event:
    """Return a Python frame: ``train.py(10): step``, ``nn.Module: Linear_0``."""
    known = {"Python id": number, "Python parent id": parent, "Python module id": module}
    return complete(name, start, duration, "python_function", **known, **more)


def runtime(
    name: str,
    start: Time,
    duration: Time,
    *,
    correlation: int | None = None,
    external: int | None = None,
    category: str = "cuda_runtime",
    **more: Any,
) -> Event:
    """Return a call of the CUDA runtime; ``category="cuda_driver"`` for the driver."""
    return complete(name, start, duration, category, correlation=correlation, **{"External id": external}, **more)


def _on_device(
    name: str,
    start: Time,
    duration: Time,
    category: str,
    *,
    correlation: int | None = None,
    external: int | None = None,
    device: int = 0,
    stream: int = 7,
    context: int | None = 1,
    **known: Any,
) -> Event:
    """Return an event of a device: Kineto gives the device as pid and the stream as tid."""
    first = {
        "External id": external,
        "device": device,
        "context": context,
        "stream": stream,
        "correlation": correlation,
    }
    return complete(name, start, duration, category, pid=device, tid=stream, **first, **known)


def kernel(
    name: str,
    start: Time,
    duration: Time,
    *,
    grid: Sequence[int] | None = (1, 1, 1),
    block: Sequence[int] | None = (128, 1, 1),
    registers: int | None = None,
    shared_memory: int | None = None,
    blocks_per_sm: float | None = None,
    occupancy: float | None = None,
    category: str = "kernel",
    **more: Any,
) -> Event:
    """Return a kernel. ``occupancy`` is achieved percent; ``more``: correlation, external, device, stream, args ..."""
    known = {
        "registers per thread": registers,
        "shared memory": shared_memory,
        "blocks per SM": blocks_per_sm,
        "grid": None if grid is None else list(grid),
        "block": None if block is None else list(block),
        "est. achieved occupancy %": occupancy,
    }
    return _on_device(name, start, duration, category, **known, **more)


def collective(
    start: Time,
    duration: Time,
    *,
    name: str = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*, unsigned long, ncclWork*)",
    kind: str | None = "allreduce",
    group: str | None = "0",
    group_size: int | None = 2,
    elements: int | None = 1024,
    dtype: str | None = "Float",
    args: Mapping[str, Any] | None = None,
    **known: Any,
) -> Event:
    """Return a kernel of NCCL with its facts about the collective operation; ``kind=None`` for one without facts."""
    arguments = {
        "Collective name": kind,
        "In msg nelems": elements,
        "Out msg nelems": elements,
        "Group size": group_size,
        "dtype": dtype,
        "Process Group Name": group,
    }
    given = {key: value for key, value in arguments.items() if value is not None} if kind else {}
    return kernel(name, start, duration, args={**given, **(args or {})}, **known)


def copy(
    start: Time,
    duration: Time,
    *,
    name: str = "Memcpy HtoD (Pageable -> Device)",
    size: int | None = 1024,
    category: str = "gpu_memcpy",
    **more: Any,
) -> Event:
    """Return a copy on a device."""
    return _on_device(name, start, duration, category, bytes=size, **more)


def fill(start: Time, duration: Time, *, name: str = "Memset (Device)", **known: Any) -> Event:
    """Return a fill of device memory; arguments as of :func:`copy`."""
    return copy(start, duration, name=name, **{"category": "gpu_memset", **known})


def device_annotation(
    name: str, start: Time, duration: Time, *, device: int = 0, stream: int = 7, args: Mapping[str, Any] | None = None
) -> Event:
    """Return the copy of a range of the host on the timeline of a device."""
    return complete(name, start, duration, "gpu_user_annotation", pid=device, tid=stream, args=args)


def sync(
    kind: str,
    start: Time,
    duration: Time,
    *,
    correlation: int | None = None,
    device: int = 0,
    stream: int = 7,
    args: Mapping[str, Any] | None = None,
) -> Event:
    """Return a synchronisation from CUPTI: ``Event Sync``, ``Stream Sync``, ``Context Sync``, ``Stream Wait Event``."""
    known = {"cuda_sync_kind": kind, "stream": stream, "correlation": correlation, "device": device, "context": 1}
    return complete(kind, start, duration, "cuda_sync", pid=device, tid=stream, args=args, **known)


def memory(
    start: Time,
    size: int,
    *,
    device: int | None = 0,
    address: int = 4096,
    in_use: int | None = None,
    reserved: int | None = None,
    **more: Any,
) -> Event:
    """Return an allocation (``size`` > 0) or a release (< 0) of the framework's allocator; no ``device`` is the CPU."""
    known = {
        "Device Type": 0 if device is None else 1,
        "Device Id": -1 if device is None else device,
        "Addr": address,
        "Bytes": size,
        "Total Allocated": in_use,
        "Total Reserved": reserved,
    }
    event = complete("[memory]", start, 0, "cpu_instant_event", **known, **more)
    del event["dur"]
    return {**event, "ph": "i", "s": "t"}


def counter(name: str, start: Time, values: Mapping[str, Any], *, pid: int | str = PID) -> Event:
    """Return a counter of Chrome's format."""
    return {"ph": "C", "name": name, "pid": pid, "ts": start, "args": dict(values)}


def process_name(name: str, *, pid: int | str = PID) -> Event:
    """Return the event that names a process."""
    return {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "ts": 0, "args": {"name": name}}


def thread_name(name: str, *, pid: int | str = PID, tid: int | str = TID) -> Event:
    """Return the event that names a thread."""
    return {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "ts": 0, "args": {"name": name}}


def span(start: Time, duration: Time) -> Event:
    """Return the frame that Kineto draws around a capture."""
    return complete("PyTorch Profiler (0)", start, duration, "Trace", pid="Spans", tid="PyTorch Profiler")


def gpu(number: int, name: str = "NVIDIA A100-SXM4-40GB", **facts: Any) -> dict[str, Any]:
    """Return an entry of ``deviceProperties``."""
    sizes = {"totalGlobalMem": 42_505_273_344, "computeMajor": 8, "computeMinor": 0, "warpSize": 32, "numSms": 108}
    return {"id": number, "name": name, **sizes, "maxThreadsPerMultiprocessor": 2048, **facts}
