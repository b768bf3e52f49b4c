"""Small archives from literals, to be asked: a few traces with numbers that can be added up by hand."""

import pyarrow as pa

from tests.analyses.builders import tables
from traceviz.archive.catalogue import segments as catalogue
from traceviz.archive.catalogue.columns import CATALOGUE
from traceviz.archive.storage import layout
from traceviz.archive.storage.store import Store
from traceviz.trace.tables import write_tables

GEMM, RELU = "sm80_gemm_f16", "relu_elementwise"
MAY, JUNE = 1_778_400_000_000_000_000, 1_781_000_000_000_000_000
"""2026-05-10 and 2026-06-09, Unix time."""


def new_archive(place) -> Store:
    store = Store.at(place)
    layout.create(store)
    return store


def add_trace(store, trace_id, trace, format_name="nsys", **facts):
    """Add a trace that is ready; ``facts`` are columns of its row, ``rows`` those of several ranks."""
    with store.new_folder(*layout.trace_parts(format_name, trace_id)) as folder:
        write_tables(folder, ((name, trace.arrow(name)) for name in trace), {})
    ranks = facts.pop("rows", [{}])
    add_rows(store, *({"trace_id": trace_id, "format": format_name, **facts, **rank} for rank in ranks))


def add_rows(store, *rows):
    """Add rows of the catalogue as they are; missing values have a default or are null."""
    defaults = {
        **dict.fromkeys(CATALOGUE.names),
        "state": "ready",
        "source": "trace",
        "source_sha256": "0" * 64,
        "added_ns": MAY,
        "changed_ns": MAY,
        "traceviz_version": "0.1.0",
    }
    catalogue.append(store, pa.Table.from_pylist([{**defaults, **row} for row in rows], schema=CATALOGUE))


def finding(code, name, share, stake_ns):
    return {"code": code, "name": name, "severity": "warning", "share": share, "stake_ns": stake_ns}


def documented(place) -> Store:
    """Return an archive for the documented queries: two releases of a program, a job of two ranks, another month."""
    store = new_archive(place)
    add_trace(
        store,
        "a000000000000001",
        tables(
            kernels=[(0, 100, GEMM), (200, 100, GEMM), (400, 50, RELU)],
            cuda_api=[
                *((start, 30, "cudaStreamCreateWithFlags") for start in (0, 10, 20, 30, 40, 50)),
                *((start, 10, "cudaLaunchKernel") for start in (60, 70)),
            ],
            memcpy=[
                (0, 40, "h2d", "pageable", "device", 4000),
                (50, 10, "h2d", "pinned", "device", 4000),
                (90, 10, "d2d", "device", "device", 9000),
            ],
        ),
        framework="tensorflow",
        gpu="A100",
        tags=[("release", "1.0")],
        recorded_ns=MAY,
        steps=3,
        verdict="highly input-bound",
        input_share=0.5,
        step_median=1000,
        step_mean=1100.0,
        span_ns=10_000,
        host_cpu=0.9,
        findings=[finding("TV101", "input-bound", 0.5, 1500)],
    )
    add_trace(
        store,
        "a000000000000002",
        tables(
            kernels=[(0, 150, GEMM), (200, 170, GEMM), (400, 51, RELU)],
            cuda_api=[(0, 60, "cudaLaunchKernel"), (70, 20, "cudaFree")],
            memcpy=[(0, 60, "h2d", "pageable", "device", 6000), (90, 20, "d2h", "device", "pinned", 1000)],
        ),
        framework="tensorflow",
        gpu="A100",
        tags=[("release", "1.1")],
        recorded_ns=MAY + 1,
        steps=4,
        verdict="not input-bound",
        input_share=0.01,
        step_median=3000,
        step_mean=3000.0,
        span_ns=20_000,
        host_cpu=0.2,
        findings=[finding("TV203", "pageable-copies", 0.1, 500)],
    )
    add_trace(
        store,
        "b000000000000001",
        tables(
            kernels=[(0, 40, "ncclAllReduce_Sum"), (0, 10, "ncclAllReduce_Sum", {"process_id": 1})],
            cuda_api=[(0, 5, "cudaLaunchKernel"), (0, 15, "cudaStreamCreateWithFlags", {"process_id": 1})],
            collectives=[
                (0, 40, "allreduce"),
                (100, 60, "allreduce"),
                (0, 10, "allreduce", {"process_id": 1}),
            ],
            processes=[(0, "python", {"rank": 0}), (1, "python", {"rank": 1, "pid": 2})],
        ),
        format_name="kineto",
        framework="pytorch",
        job="job42",
        recorded_ns=JUNE,
        span_ns=30_000,
        rows=[
            {"rank": 0, "steps": 5, "step_median": 500, "findings": [finding("TV203", "pageable-copies", 0.2, 700)]},
            {"rank": 1, "steps": 5, "step_median": 700, "input_share": 0.2, "step_mean": 700.0, "host_cpu": 1.0},
        ],
    )
    add_rows(store, {"trace_id": "c0", "state": "quarantined", "error": "no trace", "source": "bad.json"})
    add_rows(store, {"trace_id": "d0", "state": "removed", "source": "gone.json", "input_share": 0.99})
    return store


def half_written(store, trace_id, trace):
    """Write the state of a remote store while a trace is being written: tables, and no manifest yet."""
    add_trace(store, trace_id, trace)
    store.remove(*layout.trace_parts("nsys", trace_id), "manifest.json")
