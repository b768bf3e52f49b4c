"""Small captures as the profilers of TensorFlow and JAX write them, and how tests read them."""

from pathlib import Path

from tests.parsers.xplane.files import Name, Ref, Unsigned, event, line, plane, space
from traceviz.parsers.base import ReadRequest
from traceviz.parsers.xplane.readers import XPlaneReader
from traceviz.trace.tables import TraceTables

US = 1_000_000
"""Picoseconds in a microsecond."""

DETAILS = "regs:32 static_shared:48 dynamic_shared:16 grid:4,2,1 block:64,1,1 occ_pct:50"


def read(path: Path, **options: object) -> TraceTables:
    """Return all tables of the capture at ``path``."""
    return TraceTables(dict(XPlaneReader().read(path, ReadRequest(**options))))


def tables_of(folder: Path, content: bytes, **options: object) -> TraceTables:
    """Return all tables of a capture with this content."""
    path = folder / "host.xplane.pb"
    path.write_bytes(content)
    return read(path, **options)


def rows(tables: TraceTables, table: str, *columns: str) -> list[tuple]:
    """Return rows of a table, with these columns."""
    records = tables.arrow(table).select(list(columns)).to_pylist()
    return [tuple(row.values()) for row in records]


def notes(tables: TraceTables) -> dict[str, tuple]:
    """Return severity, count and message of the notes by code."""
    return {row["code"]: (row["severity"], row["count"], row["message"]) for row in tables.arrow("notes").to_pylist()}


def environment(start_ns: int = 1_700_000_000_000_000_000) -> bytes:
    """Return the plane with the start of profiling."""
    return plane("Task Environment", stats={"profile_start_time": Unsigned(start_ns), "profile_options": b"\x10\x02"})


def host(*lines: object, **given: object) -> bytes:
    """Return the plane of the host's threads."""
    return plane("/host:CPU", *lines, **given)


def gpu(*lines: object, number: int = 0, **given: object) -> bytes:
    """Return the plane of a GPU."""
    facts = {
        "device_vendor": "Nvidia",
        "gpu_device_name": "Tesla T4",
        "clock_rate": 1_590_000,
        "core_count": 40,
        "memory_bandwidth": Unsigned(320_064_000_000),
        "memory_size": Unsigned(15_843_721_216),
        "compute_cap_major": 7,
        "compute_cap_minor": 5,
    }
    return plane(f"/device:GPU:{number}", *lines, plane_id=number, stats=facts, **given)


def training(steps: int = 3) -> bytes:
    """Return a training run on one GPU: each step of 100 µs takes 10 µs of input, and launches a copy and a kernel."""
    host_events, stream, copies, iterators = [], [], [], []
    for step in range(steps):
        at, call = step * 100 * US, 10 * step
        host_events += [
            event("train", at, 90 * US, {"step_num": step, "_r": 1}),
            event("IteratorGetNext:IteratorGetNext", at + US, 10 * US, {"is_eager": 0}),
            event("cuMemcpyHtoDAsync_v2", at + 12 * US, 2 * US, {"correlation_id": call + 1, "device_id": 0}),
            event("cuLaunchKernel", at + 20 * US, 5 * US, {"correlation_id": call + 2, "device_id": 0}),
        ]
        iterators.append(event("Iterator::Root::Map", at + 2 * US, 6 * US, {"id": Unsigned(2**63 + step)}))
        launched = {"correlation_id": Unsigned(call + 2), "context_id": "$$1", "kernel_details": Ref(DETAILS)}
        stream.append(event("gemm", at + 30 * US, 40 * US, {**launched, "tf_op": Ref("dense/MatMul:MatMul")}))
        copied = {"memcpy_details": Ref("kind_src:pageable kind_dst:device size:4096 dest:0 async:1")}
        copies.append(event("MemcpyH2D", at + 15 * US, 3 * US, {**copied, "correlation_id": Unsigned(call + 1)}))
    return space(
        host(
            line(100, *host_events, name="python3", timestamp_ns=1_000),
            line(-7, *iterators, name="tf_data/-7", timestamp_ns=1_000),
            names={"IteratorGetNext:IteratorGetNext": Name("IteratorGetNext")},
        ),
        gpu(
            line(13, *stream, name="Stream #13(Compute)", timestamp_ns=1_000),
            line(14, *copies, name="Stream #14(MemcpyH2D)", timestamp_ns=1_000),
            line(-559038737, event("0", 0, 90 * US), name="Steps", timestamp_ns=1_000),
        ),
        environment(),
        hostnames=["secret-host"],
    )
