"""Traces as the profilers of PaddlePaddle and MXNet write them, from literals."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

Event = dict[str, Any]

BEGAN_US = 1_795_433_813_793_653
"""Start of the capture."""


def paddle(name: str, start: float, lasts: float, kind: str, side: str = "C++", **arguments: Any) -> Event:
    """Return an event on a thread: its time as ``ts`` is cut to microseconds, and stated once more."""
    return {
        "name": f"{name}[{lasts:.3f} us]",
        "pid": 7,
        "tid": f"7({side})",
        "ts": BEGAN_US + int(start),
        "dur": lasts,
        "ph": "X",
        "cat": kind,
        "args": {"start_time": f"{start:.3f} us", "end_time": f"{start + lasts:.3f} us", **arguments},
    }


def on_device(name: str, start: float, lasts: float, kind: str, correlation: int, **arguments: Any) -> Event:
    """Return an event of a device and its stream."""
    event = paddle(name, start, lasts, kind, **{"stream": 9, "correlation id": correlation, **arguments})
    return {**event, "pid": 0, "tid": 9}


STEP = [
    paddle("ProfileStep#4", 0.0, 900.0, "ProfileStep", "Python"),
    paddle("_DataLoaderIterSingleProcess", 0.9, 99.2, "Dataloader", "Python"),
    paddle("Sequential", 110.0, 90.0, "Forward", "Python"),
    paddle("conv2d dygraph", 120.9, 70.4, "Operator", input_shapes={"x": [[8, 3]]}),
    paddle("conv2d infer_meta", 121.0, 5.0, "OperatorInner"),
    paddle("conv2d kernel launch", 130.2, 61.0, "DygraphKernelLaunch"),
    paddle("cudaLaunchKernel", 150.0, 10.0, "CudaRuntime", **{"correlation id": 31}),
    paddle("Optimization Step", 500.0, 100.0, "Optimization", "Python"),
    paddle("ProfileStep#5", 910.0, 50.0, "ProfileStep", "Python"),
]
GPU = [
    on_device("implicit_convolve_sgemm", 170.0, 40.5, "Kernel", 31, device=0, context=1, grid=[8, 1, 1]),
    on_device("MEMCPY_HtoD", 60.0, 20.0, "Memcpy", 30, bytes=4096),
]
THREAD = {"name": "thread_name", "pid": 7, "tid": "7(C++)", "ph": "M", "args": {"name": "thread 7:MainThread(C++)"}}


def paddle_trace(events: Sequence[Event] = (*STEP, *GPU)) -> bytes:
    """Return a file of PaddlePaddle; the last of its events is empty."""
    header = {"displayTimeUnit": "ms", "schemaVersion": "1.0.2", "span_index": "0"}
    return json.dumps({**header, "traceEvents": [THREAD, *events, {}]}).encode()


def mxnet(name: str, start: int, end: int, thread: int = 10_399_946_086_341_798_551) -> list[Event]:
    """Return the start and the end of an operator."""
    both = {"name": name, "cat": "operator", "pid": 0, "tid": thread}
    return [{**both, "ph": "B", "ts": start}, {**both, "ph": "E", "ts": end}]


def mxnet_trace() -> bytes:
    """Return a file of MXNet: operators on the CPU, and one on a GPU."""
    named = [
        {"ph": "M", "args": {"name": name}, "pid": number, "name": "process_name"}
        for number, name in enumerate(("cpu/0", "gpu/0", "cpu pinned/", "cpu shared/"))
    ]
    call = {"name": "MXNDArrayCreateEx", "cat": "MXNET_C_API", "ph": "b", "ts": 900, "id": 4, "pid": 849, "tid": 4}
    on_gpu = [{**event, "pid": 1} for event in mxnet("Convolution", 1_300, 1_400, 12_422_998_293_768_367_055)]
    events = [*named, call, *mxnet("FullyConnected", 1_000, 1_250), *mxnet("WaitForVar", 1_250, 1_260), *on_gpu]
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}, indent=4).encode()
