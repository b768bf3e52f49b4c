"""``trace.json.gz`` of TensorFlow and JAX: Chrome's format with the processes and lanes of their profilers."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from benchmarks.diagnosis.record import Kind, Record, Work
from benchmarks.diagnosis.writers.shared import nested, tid_of
from benchmarks.diagnosis.writers.tensorflow_names import tensorflow_name

HOST_PROCESS = 701
COPIES = {Work.HOST_TO_DEVICE: "MemcpyH2D", Work.DEVICE_TO_HOST: "MemcpyD2H", Work.DEVICE_TO_DEVICE: "MemcpyD2D"}


def write_trace_json(record: Record, folder: Path) -> list[Path]:
    """Write one file for each rank and return them."""
    paths = []
    for rank in range(record.ranks):
        path = folder / f"host{rank}.trace.json.gz"
        document = {"displayTimeUnit": "ns", "metadata": {"highres-ticks": True}, "traceEvents": _events(record, rank)}
        path.write_bytes(gzip.compress(json.dumps(document).encode(), mtime=0))
        paths.append(path)
    return paths


def _events(record: Record, rank: int) -> list[dict[str, Any]]:
    device_process = rank + 1
    events: list[dict[str, Any]] = []
    for pid, name in ((HOST_PROCESS, "/host:CPU"), (device_process, f"/device:GPU:{rank}")):
        events.append({"ph": "M", "pid": pid, "name": "process_name", "args": {"name": name}})
        events.append({"ph": "M", "pid": pid, "name": "process_sort_index", "args": {"sort_index": pid}})
    threads = {facts.thread: tid_of(facts) for facts in record.threads if facts.rank == rank and not facts.process}
    for facts in record.threads:
        if facts.rank == rank and not facts.process:
            events += _lane(HOST_PROCESS, threads[facts.thread], f"{facts.name}/{threads[facts.thread]}")
    for stream in sorted({span.stream for span in record.device if span.rank == rank}):
        events += _lane(device_process, stream, f"Stream #{stream}(Compute,MemcpyD2H,MemcpyH2D)")
    for span in nested([span for span in record.spans if span.rank == rank and span.thread in threads]):
        if span.kind in {Kind.OS, Kind.PYTHON}:
            continue
        values: dict[str, Any] = {"correlation_id": str(span.correlation)} if span.kind is Kind.API else {}
        if span.kind is Kind.STEP:
            values = {"step_num": span.name.rpartition("#")[2]}
        events.append(
            _complete(HOST_PROCESS, threads[span.thread], tensorflow_name(span), span.start, span.end, values)
        )
    for work in sorted((span for span in record.device if span.rank == rank), key=lambda span: span.start):
        values = {"correlation_id": str(work.correlation)}
        if work.work.is_copy:
            values["memcpy_details"] = f"size:{work.bytes} dest:0 async:1"
        else:
            values["kernel_details"] = (
                f"regs:40 static_shared:0 dynamic_shared:0 grid:{work.grid},1,1 block:{work.block},1,1 occ_pct:75"
            )
        name = COPIES.get(work.work, work.name)
        events.append(_complete(device_process, work.stream, name, work.start, work.end, values))
    return [*events, {}]  # the profiler ends its list with an empty event


def _lane(pid: int, tid: int, name: str) -> list[dict[str, Any]]:
    lane = {"ph": "M", "pid": pid, "tid": tid}
    return [
        lane | {"name": "thread_name", "args": {"name": name}},
        lane | {"name": "thread_sort_index", "args": {"sort_index": tid}},
    ]


def _complete(  # noqa: PLR0917 (the fields of an event in their order)
    pid: int, tid: int, name: str, start: int, end: int, values: dict[str, Any]
) -> dict[str, Any]:
    event = {"ph": "X", "pid": pid, "tid": tid, "ts": start / 1_000, "dur": (end - start) / 1_000, "name": name}
    return event | {"args": values} if values else event
