"""Traces of a few steps that can be worked out by hand, in the form of real ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from nsys_database import PUSH_POP_RANGE, REGULAR_LAUNCH, NsysDatabase, global_pid
from program import MS, US, Program
from stories import copy_batch, start_up, train

PID = 1001


def loop(path: Path, steps: int, kernels: Sequence[tuple[str, int]], pause_ns: int = 10 * US) -> Path:
    """Return an nsys database of steps in NVTX ranges that touch: before and after each kernel the device idles.

    ::

        range    |step 0                              |step 1 ...
        device   |pause|kernel ######|pause|kernel ###|pause|
    """
    database = NsysDatabase("steps to be worked out by hand")
    database.add_device(0)
    database.add_process(PID, "python3")
    now = 1 * MS
    for step in range(steps):
        begin = now
        now += pause_ns
        for name, dur_ns in kernels:
            _kernel(database, name, now, now + dur_ns)
            now += dur_ns + pause_ns
        thread = global_pid(PID) | PID
        database.add(
            "NVTX_EVENTS",
            start=begin,
            end=now,
            eventType=PUSH_POP_RANGE,
            text=f"step {step}",
            globalTid=thread,
            domainId=0,
        )
    database.save(path)
    return path


def _kernel(database: NsysDatabase, name: str, start: int, end: int) -> None:
    """Add a kernel, and the call that launches it while the device is idle."""
    correlation = len(database.rows.get("CUPTI_ACTIVITY_KIND_KERNEL", ())) + 1
    database.add(
        "CUPTI_ACTIVITY_KIND_RUNTIME",
        start=start - 6 * US,
        end=start - 4 * US,
        eventClass=0,
        globalTid=global_pid(PID) | PID,
        correlationId=correlation,
        nameId=database.string("cudaLaunchKernel_v7000"),
        returnValue=0,
    )
    shape = {"gridX": 512, "gridY": 1, "gridZ": 1, "blockX": 256, "blockY": 1, "blockZ": 1}
    nothing = ("staticSharedMemory", "dynamicSharedMemory", "localMemoryPerThread", "localMemoryTotal")
    database.add(
        "CUPTI_ACTIVITY_KIND_KERNEL",
        start=start,
        end=end,
        deviceId=0,
        contextId=1,
        streamId=7,
        correlationId=correlation,
        globalPid=global_pid(PID),
        demangledName=database.string(name),
        shortName=database.string(name),
        launchType=REGULAR_LAUNCH,
        registersPerThread=32,
        gridId=correlation,
        **shape,
        **dict.fromkeys(nothing, 0),
    )


def kineto_loop(path: Path, steps: int, kernels: Sequence[tuple[str, int]], pause_ns: int = 10 * US) -> Path:
    """Return the program of :func:`loop`, as PyTorch's profiler sees it."""
    host, device = {"pid": PID, "tid": PID}, {"pid": 0, "tid": 7}
    events: list[dict[str, Any]] = []
    now = 1 * MS
    for step in range(steps):
        begin = now
        now += pause_ns
        for name, dur_ns in kernels:
            number = len(events) + 1  # 0 is that of no call
            shape = {"device": 0, "context": 1, "stream": 7, "grid": [512, 1, 1], "block": [256, 1, 1]}
            call = _complete("cuda_runtime", "cudaLaunchKernel", host, now - 6 * US, now - 4 * US)
            kernel = _complete("kernel", name, device, now, now + dur_ns)
            events += [
                {**call, "args": {"correlation": number}},
                {**kernel, "args": {**shape, "correlation": number}},
            ]
            now += dur_ns + pause_ns
        events.append(_complete("user_annotation", f"ProfilerStep#{step}", host, begin, now))
    properties = [{"id": 0, "name": "Synthetic GPU", "computeMajor": 8, "computeMinor": 0, "numSms": 108}]
    path.write_text(json.dumps({"schemaVersion": 1, "deviceProperties": properties, "traceEvents": events}))
    return path


def _complete(category: str, name: str, track: dict[str, int], start_ns: int, end_ns: int) -> dict[str, Any]:
    times = {"ts": start_ns / 1000, "dur": (end_ns - start_ns) / 1000}
    return {"ph": "X", "cat": category, "name": name, **track, **times}


def training(path: Path, load: Callable[[Program], None], steps: int = 20) -> Path:
    """Return the program of the synthetic samples: every step waits for the device before it loads the next batch."""
    database = NsysDatabase("a training loop")
    program = Program(database)
    start_up(program)
    for step in range(steps):
        with program.range(f"step {step}"):
            with program.range("data loading"):
                load(program)
            program.wait_until(train(program, copy_batch(program)))
    database.save(path)
    return path


def kineto_steps(path: Path, durations_us: Sequence[int]) -> Path:
    """Return a Kineto trace of steps on a CPU, one after another."""
    events: list[dict[str, Any]] = []
    now = 1000
    host = {"pid": 1, "tid": 1}
    for number, dur in enumerate(durations_us):
        events.append(_complete("user_annotation", f"ProfilerStep#{number}", host, now * US, (now + dur) * US))
        events.append(_complete("cpu_op", "aten::mm", host, now * US, (now + dur // 2) * US))
        now += dur
    path.write_text(json.dumps({"schemaVersion": 1, "deviceProperties": [], "traceEvents": events}))
    return path
