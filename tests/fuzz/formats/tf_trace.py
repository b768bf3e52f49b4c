"""``trace.json`` of the profilers of TensorFlow and JAX."""

from __future__ import annotations

import json
from pathlib import Path

from tests.fuzz.cases import Format
from tests.fuzz.mutations import json_text
from tests.fuzz.mutations.octets import SPOIL, in_file, inside, repack
from tests.fuzz.oracle import examine
from tests.parsers.kineto.files import compressed

_KERNEL = {"correlation_id": "42", "kernel_details": "regs:16 shm:48 grid:3,2,1 block:64,1,1", "group_id": "0"}


def _label(kind: str, name: str, pid: int, tid: int | None = None) -> dict[str, object]:
    return {"ph": "M", "pid": pid, **({} if tid is None else {"tid": tid}), "name": kind, "args": {"name": name}}


def _event(pid: int, tid: int, ts: float, dur: float, name: str, **args: str) -> dict[str, object]:
    return {"ph": "X", "pid": pid, "tid": tid, "ts": ts, "dur": dur, "name": name, "args": args}


def training() -> bytes:
    """Return two steps on a GPU, and a TPU that works at the same time."""
    events = [
        _label("process_name", "/host:CPU", 701),
        _label("thread_name", "python3", 701, 7),
        _label("process_name", "/device:GPU:0 Tesla T4", 1),
        _label("thread_name", "Stream #13(Compute)", 1, 13),
        _label("thread_name", "Stream #14(MemcpyH2D)", 1, 14),
        _label("process_name", "/device:TPU:0", 3),
        _label("thread_name", "XLA Ops", 3, 3),
        _label("thread_name", "XLA Modules", 3, 2),
    ]
    for step in range(2):
        at = 1000.0 + 100 * step
        events += [
            _event(701, 7, at, 90, f"train {step}", group_id=str(step), step_name=f"train {step}", step_num=str(step)),
            _event(701, 7, at + 1, 8, "IteratorGetNext", long_name="IteratorGetNext:IteratorGetNext"),
            _event(701, 7, at + 2, 3, "Iterator::Map", long_name="Iterator::Root::Map", id="-3877662985711006711"),
            _event(701, 7, at + 20, 5, "cuLaunchKernel", correlation_id="42", device_id="0"),
            _event(1, 13, at + 30.161, 40.984, "gemm", annotation="a/MatMul:MatMul", **_KERNEL),
            _event(1, 14, at + 12, 3, "MemcpyH2D", memcpy_details="size:802816 dest:0 async:1", correlation_id="1"),
            _event(3, 2, at + 1, 9, "jit_f(77)", run_id="4"),
            _event(3, 3, at + 2, 3, "copy.2", long_name="%copy.2 = f32[5]", hlo_category="copy", program_id="77"),
        ]
    events.append({"ph": "i", "pid": 701, "tid": 7, "ts": 1003.5, "name": "mark", "s": "t"})
    listed = ",\n".join(map(json.dumps, [*events, {}]))
    return f'{{"displayTimeUnit":"ns","metadata":{{"highres-ticks":true}},\n"traceEvents":[\n{listed}]}}\n'.encode()


def _samples(folder: Path) -> None:
    (folder / "host1.trace.json.gz").write_bytes(compressed(training()))
    (folder / "host2.trace.json").write_bytes(training())


def _step(random, path):
    """A value, whether the file is packed or not."""
    (inside(_VALUES) if path.name.endswith(".gz") else _VALUES)(random, path)


def _packing(random, path):
    (repack if path.name.endswith(".gz") else SPOIL)(random, path)


_VALUES = in_file(json_text.change)
TF_TRACE = Format("tf-trace-json", _samples, {_step: 6, _packing: 1, SPOIL: 1}, examine)
