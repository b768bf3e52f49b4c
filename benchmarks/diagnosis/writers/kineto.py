"""Files of the PyTorch profiler: one JSON file for each rank."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.diagnosis.record import DeviceSpan, Kind, Record, Span, Work
from benchmarks.diagnosis.writers.shared import (
    CALLBACKS,
    DEVICE_MEMORY,
    DEVICE_NAME,
    EPOCH_NS,
    MULTIPROCESSORS,
    copy_name,
    nested,
    thread_ids,
)

Event = dict[str, Any]
BASE_NS = 1_748_000_000_000_000_000
"""``baseTimeNanoseconds``: times in the file are relative to it."""
CATEGORIES = {
    Kind.STEP: "user_annotation",
    Kind.RANGE: "user_annotation",
    Kind.OPERATOR: "cpu_op",
    Kind.PYTHON: "python_function",
    Kind.API: "cuda_runtime",
}
PROGRAM, STARTED_THREAD = "train.py(88): main", "threading.py(1002): _bootstrap"
"""Outermost functions of the first thread and of the others."""


def write_kineto(record: Record, folder: Path, *, stacks: bool) -> list[Path]:
    """Write one file for each rank and return them."""
    paths = []
    for rank in range(record.ranks):
        path = folder / f"rank{rank}.pt.trace.json"
        path.write_text(json.dumps(_document(record, rank, stacks=stacks)), encoding="utf-8")
        paths.append(path)
    return paths


def _document(record: Record, rank: int, *, stacks: bool) -> Event:
    ids = thread_ids(record)
    # The profiler records the threads of its own process.
    threads = [facts for facts in record.threads if facts.rank == rank and not facts.process]
    own = {facts.thread for facts in threads}
    spans = nested([span for span in record.spans if span.rank == rank and span.thread in own])
    device = [span for span in record.device if span.rank == rank]
    pid = ids[rank, 1][0]
    events = _metadata(record, rank, pid)
    external: dict[int, int] = {}
    for facts in threads:
        events += _thread(record, [span for span in spans if span.thread == facts.thread], ids, external, stacks=stacks)
    for span in device:
        events.append(_device_event(span, external.get(span.correlation, 0)))
        if span.correlation:
            events.append(_flow("f", span.start, rank, span.stream, span.correlation))
    events.append(
        _event("Trace", "PyTorch Profiler (0)", record.start, record.end, "Spans", "PyTorch Profiler", {"Op count": 0})
    )
    start = _microseconds(record.start)
    events.append(
        {
            "name": "Iteration Start: PyTorch Profiler",
            "ph": "i",
            "s": "g",
            "pid": "Traces",
            "tid": "Trace PyTorch Profiler",
            "ts": start,
        }
    )
    document: Event = {
        "schemaVersion": 1,
        "deviceProperties": [_device_properties(number) for number in range(record.ranks)],
        "cuda_runtime_version": 12040,
        "cuda_driver_version": 12090,
        "with_stack": int(stacks),
        "record_shapes": 0,
        "profile_memory": 0,
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": BASE_NS,
    }
    if record.ranks > 1:
        document["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": record.ranks}
    return document | {"traceEvents": events, "traceName": f"rank{rank}.json"}


def _thread(
    record: Record,
    spans: list[Span],
    ids: dict[tuple[int, int], tuple[int, int]],
    external: dict[int, int],
    *,
    stacks: bool,
) -> list[Event]:
    """Return the events of a thread. ``external`` gets the operator of each call."""
    events: list[Event] = []
    open_operators: list[tuple[int, int]] = []  # end and number of the operators around the current event
    open_functions: list[tuple[int, int]] = []
    if stacks and spans:
        first = spans[0]
        outermost = PROGRAM if first.thread == 1 else STARTED_THREAD
        if any(span.kind is Kind.PYTHON for span in spans):  # else a thread without Python
            spans = [Span(first.rank, first.thread, Kind.PYTHON, outermost, record.start, record.end), *spans]
    for number, span in enumerate(spans, start=1):
        if span.kind is Kind.OS or (span.kind is Kind.PYTHON and not stacks):
            continue
        pid, tid = ids[span.rank, span.thread]
        unique = 1_000_000 * span.thread + number
        arguments: Event
        if span.kind is Kind.PYTHON:
            parent = _innermost(open_functions, span)
            arguments = {"Python parent id": parent, "Python id": unique, "Ev Idx": number}
            open_functions.append((span.end, unique))
        elif span.kind is Kind.API:
            around = _innermost(open_operators, span) or 0
            external[span.correlation] = around
            arguments = {"External id": around, "cbid": CALLBACKS[span.name], "correlation": span.correlation}
            events.append(_flow("s", span.start, pid, tid, span.correlation))
        else:
            arguments = {"External id": unique, "Record function id": 0, "Ev Idx": number}
            open_operators.append((span.end, unique))
        events.append(_event(CATEGORIES[span.kind], span.name, span.start, span.end, pid, tid, arguments))
    return events


def _innermost(around: list[tuple[int, int]], span: Span) -> int | None:
    while around and around[-1][0] < span.end:
        around.pop()
    return around[-1][1] if around else None


def _device_event(span: DeviceSpan, external: int) -> Event:
    arguments: Event = {
        "External id": external,
        "device": span.rank,
        "context": 1,
        "stream": span.stream,
        "correlation": span.correlation,
    }
    if span.work.is_copy:
        rate = round(span.bytes / max(1, span.end - span.start), 6)
        arguments |= {"bytes": span.bytes, "memory bandwidth (GB/s)": rate}
        return _event("gpu_memcpy", copy_name(span), span.start, span.end, span.rank, span.stream, arguments)
    arguments |= {
        "queued": 0,
        "registers per thread": 40,
        "shared memory": 0,
        "blocks per SM": round(span.grid / MULTIPROCESSORS, 6),
        "warps per SM": round(span.grid * span.block / 32 / MULTIPROCESSORS, 6),
        "grid": [span.grid, 1, 1],
        "block": [span.block, 1, 1],
        "est. achieved occupancy %": min(100, round(100 * span.grid * span.block / (MULTIPROCESSORS * 2_048))),
    }
    if span.work is Work.COLLECTIVE:
        arguments |= {"Collective name": "allreduce", "In msg nelems": span.bytes // 4, "dtype": "Float"}
    return _event("kernel", span.name, span.start, span.end, span.rank, span.stream, arguments)


def _metadata(record: Record, rank: int, pid: int) -> list[Event]:
    start = _microseconds(record.start)
    events: list[Event] = []
    for number, name, labels in ((pid, "python3", "CPU"), (rank, "python3", f"GPU {rank}")):
        for key, field, value in (
            ("process_name", "name", name),
            ("process_labels", "labels", labels),
            ("process_sort_index", "sort_index", number),
        ):
            events.append({"name": key, "ph": "M", "ts": start, "pid": number, "tid": 0, "args": {field: value}})
    for stream in sorted({span.stream for span in record.device if span.rank == rank}):
        arguments = {"name": f"stream {stream} "}
        events.append({"name": "thread_name", "ph": "M", "ts": start, "pid": rank, "tid": stream, "args": arguments})
    return events


def _event(  # noqa: PLR0917 (the fields of an event in their order)
    category: str, name: str, start: int, end: int, pid: int | str, tid: int | str, arguments: Event
) -> Event:
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": pid,
        "tid": tid,
        "ts": _microseconds(start),
        "dur": (end - start) / 1_000,
        "args": arguments,
    }


def _flow(phase: str, time: int, pid: int, tid: int, correlation: int) -> Event:
    ends = {"bp": "e"} if phase == "f" else {}
    event = {
        "ph": phase,
        "id": correlation,
        "pid": pid,
        "tid": tid,
        "ts": _microseconds(time),
        "cat": "ac2g",
        "name": "ac2g",
    }
    return event | ends


def _microseconds(time: int) -> float:
    return (time + EPOCH_NS - BASE_NS) / 1_000


def _device_properties(number: int) -> Event:
    return {
        "id": number,
        "name": DEVICE_NAME,
        "totalGlobalMem": DEVICE_MEMORY,
        "computeMajor": 8,
        "computeMinor": 0,
        "maxThreadsPerBlock": 1024,
        "maxThreadsPerMultiprocessor": 2048,
        "regsPerBlock": 65536,
        "warpSize": 32,
        "sharedMemPerBlock": 49152,
        "numSms": MULTIPROCESSORS,
    }
