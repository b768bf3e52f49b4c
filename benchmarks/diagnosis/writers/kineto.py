"""Files of the PyTorch profiler: one JSON file for each rank."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.diagnosis.record import DeviceSpan, Kind, Record, Span
from benchmarks.diagnosis.writers.kineto_device import (
    BackEnd,
    Event,
    call_arguments,
    device_event,
    device_number,
    device_properties,
    has_flow,
)
from benchmarks.diagnosis.writers.shared import EPOCH_NS, nested, thread_ids

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
_ORDER = ("user_annotation", "cpu_op", "python_function", "cuda_runtime")
"""Host events by category, as the profiler writes them; calls and device work follow in the order of time."""
_DEVICE_SORT_INDEX = 5_000_000
_HALF_INPUTS = ("gemm", "Cijk_Alik_Bljk_HHS")
"""Parts of names of kernels whose inputs have 16 bits."""


@dataclass(frozen=True, slots=True)
class Form:
    """A way to record.

    Args:
        stacks: Functions of Python are recorded (``with_stack``).
        shapes: Shapes and types of inputs are recorded (``record_shapes``).
        packed: The file is packed with gzip.
        back_end: The source of device events.
    """

    stacks: bool = False
    shapes: bool = False
    packed: bool = False
    back_end: BackEnd = BackEnd.CUPTI


def write_kineto(record: Record, folder: Path, form: Form) -> list[Path]:
    """Write one file for each rank and return them."""
    return [write_rank(record, rank, folder / f"rank{rank}.pt.trace.json", form) for rank in range(record.ranks)]


def write_rank(record: Record, rank: int, path: Path, form: Form) -> Path:
    """Write the file of a rank, and return its path with the suffix that it has."""
    content = json.dumps(_document(record, rank, form)).encode()
    if form.packed:
        path, content = path.with_name(f"{path.name}.gz"), gzip.compress(content, 1, mtime=0)
    path.write_bytes(content)
    return path


def _document(record: Record, rank: int, form: Form) -> Event:
    device = [span for span in record.device if span.rank == rank]
    launched = {span.correlation: span for span in device if span.correlation}
    host, calls, external, annotations = _host_events(record, rank, form, launched)
    timed: list[tuple[int, list[Event]]] = calls
    number = device_number(form.back_end, rank)
    for span in device:
        category, name, arguments = device_event(form.back_end, span, external.get(span.correlation, 0), record.ranks)
        events = [_event(category, name, span.start, span.end, number, span.stream, arguments)]
        if span.correlation:
            events.append(_flow("f", span.start, number, span.stream, span.correlation))
        timed.append((span.start, events))
    events = host + [event for _, group in sorted(timed, key=lambda item: item[0]) for event in group]
    for (external_id, name, stream), (start, end) in _device_annotations(device, annotations).items():
        arguments = {"External id": external_id}
        events.append(_event("gpu_user_annotation", name, start, end, number, stream, arguments))
    metadata = _metadata(record, rank, number)
    if form.back_end is BackEnd.MONITOR:  # it puts its own before the events of the host
        events = metadata + events
        metadata = []
    first = {"ts": _microseconds(record.start)}
    trace = {"Op count": 0}
    events += [
        *metadata,
        _event("Trace", "PyTorch Profiler (0)", record.start, record.end, "Spans", "PyTorch Profiler", trace),
        {"name": "process_sort_index", "ph": "M", **first, "pid": "Spans", "tid": 0, "args": {"sort_index": 1 << 29}},
        {"name": "Iteration Start: PyTorch Profiler", "ph": "i", "s": "g", "pid": "Traces", **first}
        | {"tid": "Trace PyTorch Profiler"},
        {"name": "Record Window End", "ph": "i", "s": "g", "pid": "", "tid": "", "ts": _microseconds(record.end)},
    ]
    versions = (
        {"roctracer_version": 4.1, "hip_runtime_version": 70_051_831, "hip_driver_version": 70_051_831}
        if form.back_end is BackEnd.ROCTRACER
        else {"cuda_runtime_version": 12_040, "cuda_driver_version": 12_090, "cupti_version": 22}
    )
    document: Event = {
        "schemaVersion": 1,
        "deviceProperties": device_properties(form.back_end, record.ranks),
        **versions,
        **({"with_stack": 1} if form.stacks else {}),
        **({"record_shapes": 1} if form.shapes else {}),
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": BASE_NS,
    }
    if record.ranks > 1:
        document["distributedInfo"] = {
            "backend": "nccl",
            "rank": rank,
            "world_size": record.ranks,
            "pg_count": 1,
            "nccl_version": "2.21.5",
        }
    return document | {"traceEvents": events, "traceName": f"rank{rank}.json"}


def _host_events(
    record: Record, rank: int, form: Form, launched: dict[int, DeviceSpan]
) -> tuple[list[Event], list[tuple[int, list[Event]]], dict[int, int], dict[int, tuple[int, str]]]:
    """Return events of the host, its calls by time, and the operator and the annotation around each call."""
    ids = thread_ids(record)
    # The profiler records the threads of its own process.
    threads = [facts.thread for facts in record.threads if facts.rank == rank and not facts.process]
    groups: dict[str, list[Event]] = {category: [] for category in _ORDER}
    calls: list[tuple[int, list[Event]]] = []
    external: dict[int, int] = {}
    annotations: dict[int, tuple[int, str]] = {}
    operators: dict[int, Event] = {}
    for thread in threads:
        spans = nested([span for span in record.spans if span.rank == rank and span.thread == thread])
        if form.stacks and any(span.kind is Kind.PYTHON for span in spans):  # else a thread without Python
            outermost = PROGRAM if thread == 1 else STARTED_THREAD
            spans = [Span(rank, thread, Kind.PYTHON, outermost, record.start, record.end), *spans]
        open_operators: list[tuple[int, int]] = []  # end and number of the operators around the current event
        open_functions: list[tuple[int, int]] = []
        open_annotations: list[tuple[int, int]] = []
        titles: dict[int, str] = {}
        pid, tid = ids[rank, thread]
        for number, span in enumerate(spans, start=1):
            if span.kind is Kind.OS or (span.kind is Kind.PYTHON and not form.stacks):
                continue
            unique = 1_000_000 * thread + number
            arguments: Event
            if span.kind is Kind.API:
                work = launched.get(span.correlation)
                external[span.correlation] = _innermost(open_operators, span) or 0
                annotation = _innermost(open_annotations, span)
                if annotation is not None:
                    annotations[span.correlation] = annotation, titles[annotation]
                arguments = call_arguments(form.back_end, span, external[span.correlation], work)
                # Calls without device work end a flow that nothing started.
                phase = "s" if has_flow(form.back_end, span, work) else "f"
                flow = _flow(phase, span.start, pid, tid, span.correlation)
                event = _event("cuda_runtime", span.name, span.start, span.end, pid, tid, arguments)
                calls.append((span.start, [event, flow]))
                continue
            if span.kind is Kind.PYTHON:
                parent = _innermost(open_functions, span)
                arguments = {"Python parent id": parent, "Python id": unique, "Ev Idx": number}
                if span.name.startswith("nn.Module"):
                    arguments["Python module id"] = 0
                open_functions.append((span.end, unique))
            else:
                arguments = {"External id": unique, "Record function id": 0, "Ev Idx": number}
                open_operators.append((span.end, unique))
                if span.kind is Kind.OPERATOR:
                    operators[unique] = arguments
                else:
                    open_annotations.append((span.end, unique))
                    titles[unique] = span.name
            category = CATEGORIES[span.kind]
            groups[category].append(_event(category, span.name, span.start, span.end, pid, tid, arguments))
    if form.shapes:
        _add_shapes(operators, {external.get(number, 0): work for number, work in launched.items()})
    return [event for category in _ORDER for event in groups[category]], calls, external, annotations


def _device_annotations(
    device: list[DeviceSpan], annotations: dict[int, tuple[int, str]]
) -> dict[tuple[int, str, int], tuple[int, int]]:
    """Return start and end of annotations on each stream: those of the work that was launched in them."""
    times: dict[tuple[int, str, int], tuple[int, int]] = {}
    for span in device:
        if span.correlation in annotations:
            key = *annotations[span.correlation], span.stream
            start, end = times.get(key, (span.start, span.end))
            times[key] = min(start, span.start), max(end, span.end)
    return times


def _add_shapes(operators: dict[int, Event], work: dict[int, DeviceSpan]) -> None:
    """Add dimensions, strides and types of inputs; a matrix product has those of its kernel's precision."""
    for number, arguments in operators.items():
        launched = work.get(number)
        is_half = launched is not None and any(part in launched.name for part in _HALF_INPUTS)
        is_half = is_half and "sgemm" not in (launched.name if launched else "")
        arguments |= {
            "Concrete Inputs": ["", "", "1"],
            "Input type": ["c10::Half" if is_half else "float"] * 2 + ["Scalar"],
            "Input Strides": [[393_216, 768, 1], [768, 1], []],
            "Input Dims": [[64, 512, 768], [768, 768], []],
        }


def _innermost(around: list[tuple[int, int]], span: Span) -> int | None:
    while around and around[-1][0] < span.end:
        around.pop()
    return around[-1][1] if around else None


def _metadata(record: Record, rank: int, device: int) -> list[Event]:
    start = _microseconds(record.start)
    ids = thread_ids(record)
    pid = ids[rank, 1][0]
    rows: list[tuple[str, int, int, Event]] = []
    for number, labels, order in ((pid, "CPU", pid), (device, f"GPU {device}", _DEVICE_SORT_INDEX + device)):
        rows += [
            ("process_name", number, 0, {"name": "python3"}),
            ("process_labels", number, 0, {"labels": labels}),
            ("process_sort_index", number, 0, {"sort_index": order}),
        ]
    lanes = [(device, stream, f"stream {stream} ") for stream in _streams(record, rank)]
    for facts in record.threads:
        if facts.rank == rank and not facts.process:
            tid = ids[rank, facts.thread][1]
            lanes.append((pid, tid, f"thread {tid} ({facts.name})"))
    for number, lane, name in lanes:
        rows.append(("thread_name", number, lane, {"name": name}))
        rows.append(("thread_sort_index", number, lane, {"sort_index": lane}))
    return [{"name": key, "ph": "M", "ts": start, "pid": pid, "tid": tid, "args": args} for key, pid, tid, args in rows]


def _streams(record: Record, rank: int) -> list[int]:
    return sorted({span.stream for span in record.device if span.rank == rank})


def _event(  # noqa: PLR0917 (the fields of an event in their order)
    category: str, name: str, start: int, end: int, pid: int | str, tid: int | str, arguments: dict[str, Any]
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
    event = {"ph": phase, "id": correlation, "pid": pid, "tid": tid, "ts": _microseconds(time)}
    return event | {"cat": "ac2g", "name": "ac2g"} | ends


def _microseconds(time: int) -> float:
    return (time + EPOCH_NS - BASE_NS) / 1_000
