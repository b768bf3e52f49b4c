"""Run folders as ``traceviz collect`` writes them: recordings of PyTorch's profiler, stacks, samples and a manifest."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.diagnosis.loader import MULTIPLE, SINGLE
from benchmarks.diagnosis.record import Kind, Record, Span, ThreadFacts
from benchmarks.diagnosis.writers.kineto import Form, write_rank
from benchmarks.diagnosis.writers.shared import DEVICE_NAME, EPOCH_NS, nested, pid_of, tid_of

MONOTONIC_NS = 26_610_000_000_000
"""The machine's monotonic clock at the start of every record."""
RESOURCES_NS = 100_000_000
"""Period of the sampler of resources."""
USUAL_HZ, MOST_HZ, WANTED = 100, 1_000, 300
"""Samples of stacks per second, in a long program and in a very short one (``--stacks-rate``); their least number."""
CORES = 16
MEMORY = 68_719_476_736
_LIBRARIES = ("torch/", "vllm/")
_STANDARD = ("logging/", "queue.py", "threading.py", "<frozen", "multiprocessing/", "selectors.py")
_FUNCTION = re.compile(r"(.*)\((\d+)\): (.*)")
_NATIVE = {"sleep": "time.sleep", "collect": "gc.collect", "acquire": "lock.acquire"}
_RANGES = {
    SINGLE: ("__next__", "torch/utils/data/dataloader.py", 734),
    MULTIPLE: ("__next__", "torch/utils/data/dataloader.py", 734),
}
"""Functions of libraries that PyTorch marks as ranges."""
Frame = tuple[str, str, int | None]
Chain = tuple[Frame, ...]
Lines = list[list[Any]]
_PROGRAM: Chain = (("main", "train.py", 88),)
_STARTED_THREAD: Chain = (("_bootstrap", "threading.py", 1002),)
_WORKER: Chain = (("_worker_loop", "torch/utils/data/_utils/worker.py", 349),)
_SERVER: Chain = (
    ("main", "serve.py", 12),
    ("run_engine_core", "vllm/v1/engine/core.py", 692),
    ("run_busy_loop", "vllm/v1/engine/core.py", 719),
)
"""Outermost functions of threads."""


def write_run(record: Record, folder: Path, *, packed: bool) -> list[Path]:
    """Write a run folder and return its path. The recordings of PyTorch are packed once the program has ended."""
    run = folder / "run"
    raw = run / "raw"
    recorded, processes = [], []
    steps = sum(span.kind is Kind.STEP and span.rank == 0 for span in record.spans)
    for rank in range(record.ranks):
        name = f"rank{rank}" if record.ranks > 1 else f"pid{pid_of(rank)}"
        place = raw / "torch" / name
        place.mkdir(parents=True)
        path = write_rank(record, rank, place / f"{name}.pt.trace.json", Form(packed=packed))
        recorded.append(str(path.relative_to(run)))
        status = {"pid": pid_of(rank), "state": "saved", "first_step": 0, "steps_recorded": steps}
        status |= {"stop_cost_ns": 41_000_000, "framework": "torch", "version": "2.9.0"}
        (place / "status.json").write_text(json.dumps(status))
        processes.append({"pid": pid_of(rank), "ppid": 4_000, "python": "3.12.3"})
    (raw / "processes.jsonl").write_text("".join(f"{json.dumps(process)}\n" for process in processes))
    versions = {"pid": pid_of(0), "versions": {"torch": "2.9.0"}}
    (raw / "versions.jsonl").write_text(f"{json.dumps(versions)}\n")
    stacks = _write_stacks(record, raw / "stacks")
    _write_resources(record, raw / "resources")
    sources = {"resources": ["raw/resources"], "stacks": stacks, "torch": recorded}
    (run / "manifest.json").write_text(json.dumps(_manifest(record, sources), indent=1))
    return [run]


def _manifest(record: Record, sources: dict[str, list[str]]) -> dict[str, Any]:
    facts: dict[str, dict[str, Any]] = {
        "resources": {"rate_hz": 10.0, "samples": (record.end - record.start) // RESOURCES_NS, "missed": 0},
        "stacks": {"rate_hz": _rate(record)},
        "torch": {"framework": "torch", "version": "2.9.0"},
    }
    collectors = [
        {"name": name, "state": "recorded", "detail": "", "fix": "", "sources": files, "problems": []}
        | {"facts": facts[name]}
        for name, files in sources.items()
    ]
    return {
        "kind": "traceviz.run",
        "version": 1,
        "name": "train",
        "tags": {},
        "command": "python train.py",
        "left_out": ["command line", "host name", "environment"],
        "status": "finished",
        "exit": {"code": 0, "signal": None},
        "window": {"first_step": 0, "steps": None, "delay_s": None, "duration_s": None},
        "rate_hz": 10.0,
        "collectors": collectors,
        "machine": {"cores": CORES, "usable_cores": CORES, "sockets": 1, "memory_bytes": MEMORY}
        | {"gpus": [{"name": DEVICE_NAME} for _ in range(record.ranks)]},
        "versions": {"traceviz": "0.1.0", "python": "3.12.3", "torch": "2.9.0"},
        "settings": {},
        "pid": pid_of(0),
        "started_unix_ns": EPOCH_NS,
        "ended_unix_ns": EPOCH_NS + record.end,
        "duration_ns": record.end,
        "ending": {"outcome": "finished", "reason": "", "last_lines": []},
        "problems": [],
    }


# Stacks


def _write_stacks(record: Record, folder: Path) -> list[str]:
    """Write the stacks of each process and return their folders below the run folder."""
    written = []
    processes = sorted({(facts.rank, facts.process) for facts in record.threads})
    for rank, process in processes:
        threads = [facts for facts in record.threads if (facts.rank, facts.process) == (rank, process)]
        pid = pid_of(rank, process)
        place = folder / str(pid)
        place.mkdir(parents=True)
        lines = _stack_lines(record, threads, pid, is_worker=process > 0)
        (place / "stacks.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        status = {"pid": pid, "state": "saved", "ticks": len(_ticks(record, pid)), "rate_hz": _rate(record)}
        (place / "status.json").write_text(json.dumps(status))
        written.append(f"raw/stacks/{pid}")
    return written


def _stack_lines(record: Record, threads: list[ThreadFacts], pid: int, *, is_worker: bool) -> Lines:
    about = {"pid": pid, "ppid": 4_000, "role": "worker" if is_worker else "program", "name": "train.py"}
    about |= {"python": "3.12.3", "rate_hz": _rate(record), "started_unix_ns": EPOCH_NS}
    lines: Lines = [["process", about], ["clock", MONOTONIC_NS, EPOCH_NS]]
    frames: dict[Frame, int] = {}
    stacks: dict[tuple[int | None, int], int] = {}
    rows: Lines = []
    ticks = _ticks(record, pid)
    for number, facts in enumerate(threads):
        spans = [span for span in record.spans if (span.rank, span.thread) == (facts.rank, facts.thread)]
        if facts.thread != 1 and not any(span.kind is Kind.PYTHON for span in spans):
            continue  # a thread without Python
        lines.append(["thread", number, tid_of(facts), facts.name, facts.thread == 1, 140_000_000_000_000 + number])
        outermost = _PROGRAM if facts.thread == 1 else _STARTED_THREAD
        if is_worker:
            outermost = _WORKER
        elif facts.thread == 1 and any(span.name.startswith("vllm/") for span in spans):
            outermost = _SERVER
        for start, dur, count, chain, state in _samples(ticks, spans, outermost):
            parent: int | None = None
            for frame in chain:
                if frame not in frames:
                    frames[frame] = len(frames)
                    lines.append(["frame", frames[frame], *frame, _origin(frame)])
                key = parent, frames[frame]
                if key not in stacks:
                    stacks[key] = len(stacks)
                    lines.append(["stack", stacks[key], *key])
                parent = stacks[key]
            cpu = dur if state == "running" else 0
            rows.append([MONOTONIC_NS + start, dur, number, parent, count, cpu, state])
    lines.append(["samples", sorted(rows)])
    tid = tid_of(threads[0])
    for span in record.spans:
        phase = _phase(span) if (span.rank, span.thread) == (threads[0].rank, threads[0].thread) else None
        if phase is not None:
            lines.append(["phase", *phase, MONOTONIC_NS + span.start, span.end - span.start, tid])
    lines.append(["cost", {"cpu_ns": 2_000_000, "ticks": len(rows), "late_ns": 0}])
    return [*lines, ["end", MONOTONIC_NS + record.end]]


def _phase(span: Span) -> tuple[str, str, int | None] | None:
    """Return kind, name and number of the phase that the hooks in a program note for a span."""
    if span.kind is Kind.STEP:
        return "step", "torch_optimizer", int(span.name.rpartition("#")[2])
    if span.kind is Kind.RANGE and span.name == "save_checkpoint":
        return "saving", "torch.save", None
    if span.kind is Kind.PYTHON and "collect>" in span.name:
        return "collection", "generation 2", None
    return None


def _rate(record: Record) -> int:
    length = record.end - record.start
    return min(MOST_HZ, max(USUAL_HZ, round(WANTED * 1_000_000_000 / max(1, length))))


def _ticks(record: Record, pid: int) -> list[int]:
    """Return the moments of the samples, and the end: at random distances around their mean."""
    random, period = Random(pid), 1_000_000_000 / _rate(record)
    times = [record.start + round(random.uniform(0, period))]
    while times[-1] < record.end:
        times.append(times[-1] + round(period * random.uniform(0.5, 1.5)))
    return [*times[:-1], record.end]


def _samples(ticks: list[int], spans: list[Span], outermost: Chain) -> Iterator[tuple[int, int, int, Chain, str]]:
    """Yield start, duration, number of samples, stack and state; samples in a row with the same stack are one."""
    shown = nested([span for span in spans if span.kind is Kind.PYTHON or span.name in _RANGES])
    waits = nested([span for span in spans if span.kind is Kind.OS])
    around: list[tuple[int, Frame]] = []
    next_shown = next_wait = waits_until = 0
    last: tuple[int, int, int, Chain, str] | None = None
    for time, following in pairwise(ticks):
        while next_shown < len(shown) and shown[next_shown].start <= time:
            frame = _frame(shown[next_shown])
            if frame is not None and shown[next_shown].end > time:
                around.append((shown[next_shown].end, frame))
            next_shown += 1
        around = [(end, frame) for end, frame in around if end > time]
        while next_wait < len(waits) and waits[next_wait].start <= time:
            waits_until = max(waits_until, waits[next_wait].end)
            next_wait += 1
        chain = (*outermost, *(frame for _, frame in around))
        state = "waiting" if waits_until > time else "running"
        dur = following - time
        if last is not None and last[3:] == (chain, state):
            last = (last[0], last[1] + dur, last[2] + 1, chain, state)
            continue
        if last is not None:
            yield last
        last = (time, dur, 1, chain, state)
    if last is not None:
        yield last


def _frame(span: Span) -> Frame | None:
    if span.kind is Kind.RANGE:
        return _RANGES[span.name]
    found = _FUNCTION.match(span.name)
    if found:
        return found[3], found[1], int(found[2])
    native = next((name for word, name in _NATIVE.items() if word in span.name), None)
    return None if native is None else (native, "", None)


def _origin(frame: Frame) -> str:
    file = frame[1]
    if not file:
        return "native"
    return "library" if file.startswith(_LIBRARIES) else "standard" if file.startswith(_STANDARD) else "program"


# Resources


def _write_resources(record: Record, folder: Path) -> None:
    """Write the load of the processes and of the devices, ten times per second."""
    folder.mkdir(parents=True)
    facts = [
        next(facts for facts in record.threads if (facts.rank, facts.process) == (rank, 0))
        for rank in range(record.ranks)
    ]
    rows: list[tuple[int, int | None, int | None, str, str, float]] = []
    edges = [*range(record.start, record.end, RESOURCES_NS), record.end]
    for start, end in pairwise(edges):
        for rank in range(record.ranks):
            pid = pid_of(rank)
            threads = sum(other.rank == rank for other in record.threads)
            busy = _share([s for s in record.device if s.rank == rank], start, end)
            waits = [s for s in record.spans if s.kind is Kind.OS and (s.rank, s.thread) == (rank, facts[rank].thread)]
            rows += [
                (EPOCH_NS + end, pid, None, "program CPU", "%", 100.0 * (1 - _share(waits, start, end))),
                (EPOCH_NS + end, pid, None, "program memory", "bytes", 3.2e9),
                (EPOCH_NS + end, pid, None, "program threads", "count", float(threads)),
                (EPOCH_NS + end, None, rank, "GPU utilisation", "%", 100.0 * busy),
                (EPOCH_NS + end, None, rank, "GPU memory used", "bytes", 2.1e10),
            ]
    columns = list(zip(*rows, strict=True)) if rows else [()] * 6
    types = (pa.int64(), pa.int64(), pa.int16(), _TEXT, _TEXT, pa.float64())
    names = ("unix_ns", "pid", "gpu", "metric", "unit", "value")
    arrays = [pa.array(column, type_) for column, type_ in zip(columns, types, strict=True)]
    pq.write_table(pa.table(dict(zip(names, arrays, strict=True))), folder / "part-00001.parquet")
    about = {
        "kind": "traceviz.resources",
        "version": 1,
        "state": "ended",
        "pid": 3_990,
        "rate_hz": 10.0,
        "began_unix_ns": EPOCH_NS,
        "wall_ns": record.end,
        "cpu_ns": 1_000_000,
        "startup_cpu_ns": 250_000_000,
        "memory_bytes": 83_000_000,
        "missed": 0,
        "denied": 0,
        "settings": {"machine.cores": str(CORES), "machine.memory_bytes": str(MEMORY)},
        "processes": [{"pid": pid_of(rank), "name": "python"} for rank in range(record.ranks)],
        "gpus": [{"index": rank, "name": DEVICE_NAME} for rank in range(record.ranks)],
        "gpu_reason": "",
        "parts": 1,
        "samples": len(edges) - 1,
    }
    (folder / "resources.json").write_text(json.dumps(about))


_TEXT = pa.dictionary(pa.int32(), pa.string())


def _share(spans: list[Any], start: int, end: int) -> float:
    """Return the share of an interval that spans cover; they may overlap."""
    covered, until = 0, start
    for span in sorted(spans, key=lambda span: int(span.start)):
        begin, stop = max(span.start, until), min(span.end, end)
        if stop > begin:
            covered, until = covered + stop - begin, stop
    return covered / max(1, end - start)
