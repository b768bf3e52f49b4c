"""XPlane files (``*.xplane.pb``) of programs on GPUs: one for each rank, with a GPU plane and the host."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.diagnosis.record import DeviceSpan, Kind, Record, Span, Work
from benchmarks.diagnosis.writers.shared import DEVICE_MEMORY, EPOCH_NS, MULTIPROCESSORS, nested, tid_of
from benchmarks.diagnosis.writers.tensorflow_names import tensorflow_name
from benchmarks.diagnosis.writers.xspace import EventType, Plane, Reference, Stats, Unsigned, encode_space

COPIES = {Work.HOST_TO_DEVICE: "MemcpyH2D", Work.DEVICE_TO_HOST: "MemcpyD2H", Work.DEVICE_TO_DEVICE: "MemcpyD2D"}
PROGRAM = "$train.py:88 main"


def write_xplane(record: Record, folder: Path) -> list[Path]:
    """Write one file for each rank and return them."""
    paths = []
    for rank in range(record.ranks):
        planes = [_device_plane(record, rank), host_plane(record, rank, tensorflow_name), environment(record)]
        lost = f"Detected GPU events dropped on host{rank}: Profiler has dropped {record.lost} events."
        path = folder / f"host{rank}.xplane.pb"
        path.write_bytes(encode_space(planes, f"host{rank}", [lost] if record.lost else []))
        paths.append(path)
    return paths


def _device_plane(record: Record, rank: int) -> Plane:
    plane = Plane(0, "/device:GPU:0")
    spans = sorted((span for span in record.device if span.rank == rank), key=lambda span: span.start)
    start = spans[0].start if spans else record.start
    streams: dict[int, list[DeviceSpan]] = {}
    for span in spans:
        streams.setdefault(span.stream, []).append(span)
    for stream, own in sorted(streams.items()):
        events = []
        for span in own:
            name = COPIES.get(span.work, "Memset" if span.work is Work.FILL else span.name)
            events.append(plane.event(EventType(name), span.start - start, span.end - span.start, _details(span)))
        plane.line(stream, f"Stream #{stream}(Compute,MemcpyH2D,MemcpyD2H)", start, events)
    plane.stat("device_vendor", "Nvidia")
    plane.stat("clock_rate", 1_410_000)
    plane.stat("core_count", MULTIPROCESSORS)
    plane.stat("memory_bandwidth", Unsigned(2_039_040_000_000))
    plane.stat("memory_size", Unsigned(DEVICE_MEMORY))
    plane.stat("compute_cap_major", 8)
    plane.stat("compute_cap_minor", 0)
    return plane


def _details(span: DeviceSpan) -> Stats:
    stats: Stats = {"correlation_id": Unsigned(span.correlation), "context_id": "$$1"}
    if span.work.is_copy:
        host = "pinned" if span.pinned else "pageable"
        source = host if span.work is Work.HOST_TO_DEVICE else "device"
        target = host if span.work is Work.DEVICE_TO_HOST else "device"
        kinds = f"kind_src:{source} kind_dst:{target} size:{span.bytes} dest:0 async:{int(span.pinned)}"
        return stats | {"memcpy_details": Reference(kinds)}
    shape = f"grid:{span.grid},1,1 block:{span.block},1,1"
    return stats | {"kernel_details": Reference(f"regs:40 static_shared:0 dynamic_shared:0 {shape} occ_pct:75")}


def host_plane(record: Record, rank: int, name_of: Callable[[Span], str]) -> Plane:
    """Return the plane of the host's threads. Spans without a name are left out."""
    plane = Plane(0, "/host:CPU")
    for facts in record.threads:
        if facts.rank != rank or facts.process:
            continue
        spans = nested([span for span in record.spans if span.rank == rank and span.thread == facts.thread])
        named = [(name_of(span), span) for span in spans]
        events = []
        if facts.thread == 1:
            events.append(plane.event(EventType(PROGRAM), 0, record.end - record.start))
        for name, span in named:
            if name:
                offset = span.start - record.start
                events.append(plane.event(EventType(name), offset, span.end - span.start, _stats_of(span)))
        plane.line(tid_of(facts), facts.name, record.start, events)
    return plane


def _stats_of(span: Span) -> Stats:
    if span.kind is Kind.STEP:
        return {"step_num": int(span.name.rpartition("#")[2]), "_r": 1}
    if span.kind is Kind.API and span.name.startswith("tpu"):
        return {"_pt": 12, "_p": span.correlation}
    if span.kind is Kind.API:
        return {"correlation_id": Unsigned(span.correlation), "context_id": "$$1"}
    return {}


def environment(record: Record) -> Plane:
    """Return the plane of the profile's own start and end."""
    plane = Plane(0, "Task Environment")
    plane.stat("profile_start_time", Unsigned(EPOCH_NS + record.start))
    plane.stat("profile_stop_time", Unsigned(EPOCH_NS + record.end))
    return plane
