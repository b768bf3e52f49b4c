"""XPlane files of programs on TPUs: modules, their operations, and waits for the infeed queue.

A TPU runs a step as one module, which the host starts with one call. Its first operation takes the batch from the
infeed queue, which a thread of the host fills. The record of a program on GPUs becomes that of the same program on
TPUs: work keeps its times, and the time in which a batch was prepared becomes the time of the infeed operation.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks.diagnosis import names
from benchmarks.diagnosis.knobs import Knob
from benchmarks.diagnosis.loader import MULTIPLE, SINGLE
from benchmarks.diagnosis.record import DeviceSpan, Kind, Record, Span, ThreadFacts, Work
from benchmarks.diagnosis.writers.tensorflow_names import tensorflow_name
from benchmarks.diagnosis.writers.xplane import environment, host_plane
from benchmarks.diagnosis.writers.xspace import EventType, Plane, Stats, Unsigned, encode_space

MODULES, OPERATIONS, ASYNCHRONOUS, STEPS = 2, 3, 4, 1
"""Numbers of the lines of a TPU plane."""
_LINES = {STEPS: "Steps", MODULES: "XLA Modules", OPERATIONS: "XLA Ops", ASYNCHRONOUS: "Async XLA Ops"}
TRAIN, EVALUATE = 4_611_000_001, 4_611_000_002
"""Numbers of the two programs."""
CAUSES = frozenset(
    {
        Knob.SLOW_LOADER,
        Knob.SLOW_WORKERS,
        Knob.SLOW_DISK,
        Knob.INTERCONNECT,
        Knob.STRAGGLER,
        Knob.LOGGING,
        Knob.CHECKPOINT,
        Knob.EVALUATION,
        Knob.START_UP,
    }
)
"""Causes that a program on TPUs can have: it launches no operators, and its memory is planned by the compiler."""
_FEEDER = 60
_LAUNCH = 10_000
_GAP = 2_000
_FUSIONS = {names.GELU: "gelu_fusion", names.NORM: "norm_fusion", names.SOFTMAX: "softmax_fusion"}
_CATEGORIES = {
    "fusion": "convolution fusion",
    "infeed": "infeed",
    "all-reduce-start": "all-reduce-start",
    "all-reduce-done": "all-reduce-done",
}


@dataclass(slots=True)
class _Rank:
    """The work of one rank as it is made."""

    rank: int
    device: list[DeviceSpan] = field(default_factory=list)
    host: list[Span] = field(default_factory=list)
    runs: int = 0

    def add(self, line: int, name: str, start: int, end: int, work: Work = Work.KERNEL) -> None:
        self.device.append(DeviceSpan(self.rank, line, work, name, start, end, self.runs))

    def module(self, name: str, program: int, operations: list[DeviceSpan], start: int) -> int:
        """Add a run of a module, with the call that starts it, and return its end."""
        self.runs += 1
        called = max(0, start - 2 * _LAUNCH)
        self.host.append(Span(self.rank, 1, Kind.API, "tpu::System::Execute", called, called + _LAUNCH, self.runs))
        end = operations[-1].end
        self.add(MODULES, f"{name}({program})", start, end)
        for number, span in enumerate(operations, start=1):
            self.add(OPERATIONS, f"{_FUSIONS.get(span.name, 'fusion')}.{number}", span.start, span.end)
        return end


def as_tpu(record: Record) -> Record:
    """Return the record of the same program on TPUs; streams are lines, and calls are starts of modules."""
    device: list[DeviceSpan] = []
    spans = [span for span in record.spans if span.kind in {Kind.PYTHON, Kind.STEP, Kind.OS}]
    spans += [
        span
        for span in record.spans
        if span.kind is Kind.RANGE and not span.name.startswith(("nccl:", "Optimizer.step#", "gloo:"))
    ]
    threads = list(record.threads)
    for number in range(record.ranks):
        rank = _rank_on_tpu(record, number)
        device += rank.device
        spans += rank.host
        threads.append(ThreadFacts(number, _FEEDER, "tf_infeed", 0))
    return replace(record, spans=tuple(spans), device=tuple(device), threads=tuple(threads))


def _rank_on_tpu(record: Record, number: int) -> _Rank:
    rank = _Rank(number)
    work = sorted((span for span in record.device if span.rank == number), key=lambda span: span.start)
    kernels = [span for span in work if span.work is Work.KERNEL]
    collectives = [span for span in work if span.work is Work.COLLECTIVE]
    batches = [span for span in work if span.work is Work.HOST_TO_DEVICE]
    takes = sorted(
        span.start
        for span in record.spans
        if span.rank == number and span.kind is Kind.RANGE and span.name in {SINGLE, MULTIPLE}
    )
    starts = [span.start for span in kernels]
    ended = 0
    for index, batch in enumerate(batches):
        following = batches[index + 1].start if index + 1 < len(batches) else record.end + 1
        inside = kernels[bisect_left(starts, batch.start) : bisect_left(starts, following)]
        last = max((place for place, span in enumerate(inside) if span.name == names.OPTIMIZER), default=-1)
        train, rest = inside[: last + 1], inside[last + 1 :]
        rank.host.append(
            Span(number, _FEEDER, Kind.OPERATOR, "InfeedEnqueueTuple:InfeedEnqueueTuple", batch.start, batch.end)
        )
        if train:
            start = max(takes[index], ended + _GAP)
            rank.add(OPERATIONS, "infeed.1", start, train[0].start)
            ended = rank.module("jit_train_step", TRAIN, train, start)
            rank.add(STEPS, str(index), start, ended)
            meets = [span for span in collectives if batch.start <= span.start < following]
            for place, span in enumerate(meets, start=1):
                _add_collective(rank, span, place, train)
        if rest:
            ended = rank.module("jit_eval_step", EVALUATE, rest, rest[0].start)
    return rank


def _add_collective(rank: _Rank, span: DeviceSpan, number: int, operations: list[DeviceSpan]) -> None:
    """Add an asynchronous collective, and the time that the next operation waits for it."""
    rank.add(ASYNCHRONOUS, f"all-reduce-start.{number}", span.start, span.end, Work.COLLECTIVE)
    computed = max((other.end for other in operations if other.start < span.end), default=span.start)
    begin = max(computed, span.start)
    if begin < span.end:
        rank.add(OPERATIONS, f"all-reduce-done.{number}", begin, span.end, Work.COLLECTIVE)


def write_tpu(record: Record, folder: Path) -> list[Path]:
    """Write one file for each rank of a record of :func:`as_tpu`, and return them."""
    has_steps = any(span.kind is Kind.STEP for span in record.spans)
    paths = []
    for rank in range(record.ranks):
        planes = [_device_plane(record, rank, has_steps=has_steps), host_plane(record, rank, _name)]
        path = folder / f"host{rank}.xplane.pb"
        path.write_bytes(encode_space([*planes, environment(record)], f"host{rank}", []))
        paths.append(path)
    return paths


def _name(span: Span) -> str:
    return span.name if span.kind in {Kind.API, Kind.OPERATOR} else tensorflow_name(span)


def _device_plane(record: Record, rank: int, *, has_steps: bool) -> Plane:
    plane = Plane(0, "/device:TPU:0")
    spans = sorted((span for span in record.device if span.rank == rank), key=lambda span: span.start)
    for line, name in _LINES.items():
        if line == STEPS and not has_steps:
            continue
        events = [
            plane.event(_type_of(span), span.start - record.start, span.end - span.start, _stats(span, line, rank))
            for span in spans
            if span.stream == line
        ]
        plane.line(line, name, record.start, events)
    plane.stat("device_type_string", "TPU v5 lite")
    plane.stat("core_details", b"(\x040\x04")
    plane.stat("has_megacore", 0)
    plane.stat("has_merged_vmem", 1)
    for name, peak in _PEAKS.items():
        plane.stat(name, peak)
    return plane


_PEAKS = {
    "peak_teraflops_per_second": 197.0,
    "peak_hbm_bw_gigabytes_per_second": 819.2,
    "peak_cmem_rd_bw_gigabytes_per_second": 0.0,
    "peak_cmem_wr_bw_gigabytes_per_second": 0.0,
    "peak_vmem_rd_bw_gigabytes_per_second": 11_878.6,
    "peak_vmem_wr_bw_gigabytes_per_second": 8_192.0,
    "peak_sram_rd_bw_gigabytes_per_second": 11_878.6,
    "peak_sram_wr_bw_gigabytes_per_second": 8_192.0,
}


def _type_of(span: DeviceSpan) -> EventType:
    if span.stream not in {OPERATIONS, ASYNCHRONOUS}:
        return EventType(span.name)
    kind = span.name.partition(".")[0]
    shape = "f32[64,512,768]{2,1,0:T(8,128)}"
    operands = "token[] %token.1" if kind == "infeed" else f"{shape} %param.1"
    operation = "fusion" if kind.endswith("fusion") else kind
    stats: Stats = {
        "hlo_category": _CATEGORIES.get(kind, "loop fusion"),
        "program_id": Unsigned(TRAIN),
        "symbol_id": Unsigned(sum(map(ord, span.name))),
        "flops": 0 if kind != "fusion" else 77_309_411_328,
        "model_flops": 0 if kind != "fusion" else 77_309_411_328,
        "bytes_accessed": 201_326_592,
        "memory_access_breakdown": b"",
        "raw_bytes_accessed": 201_326_592,
        "shape_with_layout": shape,
    }
    return EventType(f"%{span.name} = {shape} {operation}({operands})", span.name, tuple(stats.items()))


def _stats(span: DeviceSpan, line: int, rank: int) -> Stats:
    if line == STEPS:
        return {"group_id": int(span.name)}
    if line == MODULES:
        run: Stats = {"run_id": Unsigned(span.correlation), "replica_id": rank, "queue_id": Unsigned(0)}
        return run | {"core_type": Unsigned(0), "_ct": 12, "_c": span.correlation}
    if line == ASYNCHRONOUS:
        return {"hlo_op": span.name, "_a": 1, "flow": Unsigned(span.start), "id": Unsigned(span.correlation)}
    times: Stats = {
        "device_offset_ps": Unsigned(span.start * 1_000),
        "device_duration_ps": Unsigned((span.end - span.start) * 1_000),
    }
    return times | ({"all_reduce_unique_id": Unsigned(span.start)} if span.work is Work.COLLECTIVE else {})
