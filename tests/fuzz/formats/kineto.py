"""Traces of PyTorch's profiler."""

from __future__ import annotations

from pathlib import Path

from tests.fuzz.cases import Format
from tests.fuzz.mutations import json_text
from tests.fuzz.mutations.octets import SPOIL, in_file, inside, repack
from tests.fuzz.oracle import examine
from tests.parsers.kineto import files as k
from tests.parsers.kineto.dialects import mxnet_trace, paddle_trace
from tests.parsers.kineto.tables import TRAINING


def rank() -> bytes:
    """Return a rank of a job with all that a trace may hold: three steps, loaders, collectives, memory, frames."""
    events = []
    for number in range(3):
        at = 1_000_000 + 200 * number
        ids = {"correlation": 100 + number, "external": 10 + number}
        events += [
            k.step(number, at, 190),
            k.loader(at + 1, 20),
            k.op(
                "aten::conv2d",
                at + 30,
                40,
                external=10 + number,
                shapes=[[8, 3], [1]],
                types=["float"],
                sequence=number,
            ),
            k.runtime("cudaLaunchKernel", at + 40, 5, **ids),
            k.kernel("void at::gemm<float>(int)", at + 60, 60, **ids, grid=(80, 2, 1), registers=64, occupancy=30),
            k.collective(at + 130, 30, correlation=200 + number, stream=20),
            k.copy(at + 170, 4, correlation=300 + number, size=4096),
            k.sync("Stream Sync", at + 175, 3),
            k.memory(at + 35, 512, in_use=1024 * number),
        ]
    events += [
        k.fill(1_000_190, 1, correlation=400),
        k.device_annotation("ProfilerStep#1", 1_000_260, 100),
        k.frame("train.py(10): step", 1_000_030, 60, number=1),
        k.frame("nn.Module: Linear_0", 1_000_031, 40, number=2, parent=1, module=0),
        k.thread_name("python"),
        {"ph": "s", "id": 100, "pid": 1, "tid": 2, "ts": 3, "cat": "ac2g", "name": "ac2g"},
        {"ph": "B", "name": "b", "pid": 1, "tid": 2, "ts": 1_000_003},
        {"ph": "E", "name": "b", "pid": 1, "tid": 2, "ts": 1_000_004},
    ]
    header = {
        "deviceProperties": [k.gpu(0, "Tesla V100")],
        "distributedInfo": {"rank": 1, "world_size": 2, "backend": "nccl"},
        "cuda_runtime_version": 12010,
        "baseTimeNanoseconds": 1_700_000_000_000_000_000,
        "displayTimeUnit": "ms",
    }
    return k.trace(events, header)


def contents() -> dict[str, bytes]:
    """Return small files, by name."""
    return {
        "bare": k.bare(TRAINING),
        "mxnet": mxnet_trace(),
        "paddle": paddle_trace(),
        "rank": rank(),
        "training": k.trace(TRAINING),
    }


def _plain(folder: Path) -> None:
    for name, content in contents().items():
        (folder / f"{name}.pt.trace.json").write_bytes(content)


def _packed(folder: Path) -> None:
    for name, content in contents().items():
        (folder / f"{name}.pt.trace.json.gz").write_bytes(k.compressed(content))


VALUES = in_file(json_text.change)
KINETO = Format("kineto", _plain, {VALUES: 6, SPOIL: 1}, examine)
KINETO_GZ = Format("kineto.gz", _packed, {inside(VALUES): 5, inside(SPOIL): 1, repack: 1, SPOIL: 1}, examine)
