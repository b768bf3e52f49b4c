"""Kineto traces read in tests: events from literals in, tables as Python values out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.parsers.kineto import files as k
from traceviz.parsers.base import ReadOptions
from traceviz.parsers.kineto.readers import KinetoReader
from traceviz.trace.tables import TraceTables


def read(
    tmp_path: Path, events: Sequence[k.Event], header: dict[str, Any] | None = None, **options: Any
) -> TraceTables:
    return read_bytes(tmp_path, k.trace(events, header), **options)


def read_bytes(tmp_path: Path, data: bytes, **options: Any) -> TraceTables:
    file = tmp_path / "worker.pt.trace.json"
    file.write_bytes(data)
    return TraceTables(dict(KinetoReader().read(file, ReadOptions(**options))))


def rows(trace: TraceTables, name: str, *columns: str) -> list[tuple[Any, ...]]:
    table = trace.arrow(name).to_pylist()
    return [tuple(row[column] for column in columns) for row in table]


def notes(trace: TraceTables) -> dict[str, int | None]:
    return {row["code"]: row["count"] for row in trace.arrow("notes").to_pylist()}


TRAINING = [
    k.step(3, 0, 100),
    k.op("aten::linear", 10, 30, external=5),
    k.op("aten::addmm", 12, 20, external=6),
    k.runtime("cudaLaunchKernel_v7000", 15, 3, correlation=70, external=6),
    k.kernel("gemm", 40, 25.5, correlation=70, external=6, grid=(80, 2, 1), registers=64, shared_memory=49_152),
    k.copy(70, 4, correlation=71, size=4096),
    k.runtime("cudaMemcpyAsync", 60, 5, correlation=71),
    k.fill(80, 1, correlation=72, size=64),
    k.runtime("cuMemsetD8Async", 76, 2, correlation=72, category="cuda_driver"),
]
