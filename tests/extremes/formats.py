"""A sample of every format that is read, made once a process."""

from __future__ import annotations

import gzip
import json
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.conftest import REPOSITORY
from tests.extremes.csv_sample import CsvSample
from tests.extremes.json_sample import JsonSample, event_kind
from tests.extremes.parquet_sample import ParquetSample
from tests.extremes.sqlite_sample import SqliteSample
from tests.extremes.values import Sample
from tests.extremes.xplane_sample import XPlaneSample
from tests.parsers.run.stack_files import training
from tests.parsers.run.stack_files import write as write_stacks
from traceviz import api

SAMPLES = REPOSITORY / "sample_traces"
SYNTHETIC = SAMPLES / "synthetic"
NSYS = SYNTHETIC / "healthy.sqlite"


@cache
def _made() -> Path:
    """Return a folder for the samples that are made, which the system clears away."""
    return Path(tempfile.mkdtemp(prefix="traceviz-extremes-"))


def _nsys_parquet() -> Sample:
    folder = _made() / "export_pqtdir"
    folder.mkdir(exist_ok=True)
    with closing(sqlite3.connect(NSYS)) as connection:
        connection.row_factory = sqlite3.Row
        for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            rows = [dict(row) for row in connection.execute(f'SELECT * FROM "{table}"')]
            if rows:
                pq.write_table(pa.Table.from_pylist(rows), folder / f"{table}.parquet")
    return ParquetSample(folder)


def _folder(source: Path) -> Callable[[], Sample]:
    def made() -> Sample:
        return ParquetSample(api.convert(source, _made() / f"{source.name}.folder", force=True))

    return made


def _manifest_of_folder() -> Sample:
    folder = api.convert(NSYS, _made() / "manifest.folder", force=True)

    def write(text: str, target: Path) -> Path:
        copied = shutil.copytree(folder, target / "trace")
        (copied / "manifest.json").write_text(text)
        return copied

    return JsonSample(json.loads((folder / "manifest.json").read_text()), write)


def _in_file(name: str) -> Callable[[str, Path], Path]:
    def write(text: str, folder: Path) -> Path:
        (folder / name).write_text(text)
        return folder / name

    return write


def _kineto(name: str) -> Callable[[], Sample]:
    def made() -> Sample:
        document = json.loads(gzip.decompress((SAMPLES / name).read_bytes()))
        return JsonSample(document, _in_file("a.pt.trace.json"), event_kind)

    return made


def _tf_trace_json() -> Sample:
    def meta(what: str, name: str, **where: int) -> dict[str, Any]:
        return {"ph": "M", **where, "name": what, "args": {"name": name}}

    def event(pid: int, tid: int, ts: float, dur: float, shown: str, **args: str) -> dict[str, Any]:
        return {"ph": "X", "pid": pid, "tid": tid, "ts": ts, "dur": dur, "name": shown, "args": args}

    of_kernel = {"correlation_id": "7", "kernel_details": "regs:32 grid:4,1,1 block:128,1,1", "hlo_op": "dot.1"}
    of_copy = {"memcpy_details": "kind_src:pageable kind_dst:device size:100 dest:0 async:1", "correlation_id": "8"}
    events = [
        meta("process_name", "/host:CPU", pid=701),
        meta("thread_name", "python3", pid=701, tid=7),
        meta("process_name", "/device:GPU:0", pid=1),
        meta("thread_name", "Stream #13(Compute)", pid=1, tid=13),
        meta("thread_name", "Stream #14(MemcpyH2D)", pid=1, tid=14),
        meta("process_name", "/device:GPU:0/stream:13", pid=2),
        event(701, 7, 10.0, 100.5, "train 1", group_id="0", step_num="1"),
        event(701, 7, 12.0, 5.5, "cudaLaunchKernel", correlation_id="7", group_id="0"),
        event(1, 13, 20.25, 8.0, "kernel_1", **of_kernel),
        event(1, 14, 40.25, 8.0, "MemcpyH2D", **of_copy),
        event(2, 0, 60.5, 1.25, "MatMul", op="MatMul", name="dense/MatMul"),
        {"ph": "i", "pid": 701, "tid": 7, "ts": 110.0, "name": "mark", "args": {"bytes_allocated": "12"}},
        {},
    ]
    document = {"displayTimeUnit": "ns", "metadata": {"highres-ticks": True}, "traceEvents": events}
    return JsonSample(document, _in_file("host.trace.json"), event_kind)


RUN = {
    "kind": "traceviz.run",
    "version": 1,
    "name": "cnn",
    "tags": {"batch": "64"},
    "command": "python, 2 arguments",
    "status": "finished",
    "exit": {"code": 0, "signal": None},
    "pid": 20,
    "started_unix_ns": 1_700_000_000_000_000_000,
    "ended_unix_ns": 1_700_000_010_000_000_000,
    "duration_ns": 10_000_000_000,
    "window": {"start_s": 1, "duration_s": 2},
    "collectors": [
        {
            "name": "resources",
            "state": "recorded",
            "sources": ["raw/resources"],
            "problems": [{"code": "a", "message": "b", "fix": "c"}],
            "facts": {"stop_cost_ns": 5},
        }
    ],
    "problems": [{"code": "d", "message": "e", "fix": "f"}],
    "machine": {"cores": 8, "sockets": 1, "gpus": [{"name": "H200"}], "container": None},
    "versions": {"traceviz": "0.1"},
    "settings": {"OMP_NUM_THREADS": "4"},
}
RESOURCES = {
    "kind": "traceviz.resources",
    "version": 1,
    "state": "ended",
    "began_unix_ns": 1_700_000_000_000_000_000,
    "wall_ns": 10_000_000_000,
    "cpu_ns": 50_000_000,
    "startup_cpu_ns": 20_000_000,
    "rate_hz": 10.0,
    "missed": 3,
    "denied": 1,
    "clock_step_ns": 10,
    "settings": {"machine.cores": "8", "env.OMP_NUM_THREADS": "4"},
    "processes": [{"pid": 20, "name": "python"}],
    "gpus": [{"ordinal": 3, "name": "H200", "uuid": "GPU-1", "memory_bytes": 1000}],
}
STATUS = {"state": "saved", "pid": 20, "steps_recorded": 2}


def _run_folder(manifest: str, resources: str, status: str, folder: Path) -> Path:
    run = folder / "run"
    raw = run / "raw" / "resources"
    raw.mkdir(parents=True)
    (run / "manifest.json").write_text(manifest)
    (raw / "resources.json").write_text(resources)
    (raw / "status.json").write_text(status)
    begin = 1_700_000_000_000_000_000
    metrics = (("program CPU", "%", 20, None), ("GPU power", "W", None, 3), ("core 0", "%", None, None))
    rows = [
        {"unix_ns": begin + n * 10**8, "pid": pid, "gpu": gpu, "metric": metric, "unit": unit, "value": 10.0 + n}
        for n in range(20)
        for metric, unit, pid, gpu in metrics
    ]
    kinds = {"unix_ns": pa.int64(), "pid": pa.int64(), "gpu": pa.int16(), "value": pa.float64()}
    word = pa.dictionary(pa.int32(), pa.string())
    fields = [pa.field(name, kinds.get(name, word)) for name in rows[0]]
    pq.write_table(pa.Table.from_pylist(rows, pa.schema(fields)), raw / "part-00001.parquet")
    return run


def _run_manifest() -> Sample:
    return JsonSample(RUN, lambda text, folder: _run_folder(text, json.dumps(RESOURCES), json.dumps(STATUS), folder))


def _run_description() -> Sample:
    return JsonSample(RESOURCES, lambda text, folder: _run_folder(json.dumps(RUN), text, json.dumps(STATUS), folder))


def _run_status() -> Sample:
    return JsonSample(STATUS, lambda text, folder: _run_folder(json.dumps(RUN), json.dumps(RESOURCES), text, folder))


def _run_samples() -> Sample:
    folder = _made() / "samples"
    shutil.rmtree(folder, ignore_errors=True)
    run = _run_folder(json.dumps(RUN), json.dumps(RESOURCES), json.dumps(STATUS), folder)
    return ParquetSample(run, "raw/resources")


def _stacks() -> Sample:
    def write(text: str, folder: Path) -> Path:
        return write_stacks(folder / "stacks.jsonl", json.loads(text))

    def kind(element: Any) -> str:  # the position in a line defines the meaning
        if isinstance(element, list):
            return element[0] if element and isinstance(element[0], str) else "row"
        return repr(element)

    return JsonSample(training(2), write, kind)


def _saved_report() -> Sample:
    report = api.report_on(SYNTHETIC / "input_bound.sqlite", sections=["device_use", "kernels", "steps"])
    return JsonSample(json.loads(api.to_text(report, "json")), _in_file("report.json"))


FORMATS: dict[str, Callable[[], Sample]] = {
    "nsys-sqlite": lambda: SqliteSample(NSYS, "first"),
    "nsys-sqlite-all-rows": lambda: SqliteSample(NSYS),
    "nsys-sqlite-recorded": lambda: SqliteSample(SAMPLES / "nsys" / "nvtx_loop.sqlite", "first"),
    "nsys-parquet": _nsys_parquet,
    "nvprof-sqlite": lambda: SqliteSample(SYNTHETIC / "nvprof_torch_input_bound.nvvp", "first"),
    "nvprof-trace": lambda: CsvSample(SYNTHETIC / "nvprof_trace.csv", 400),
    "nvprof-summary": lambda: CsvSample(SYNTHETIC / "nvprof_summary.csv", 400),
    "kineto": _kineto("synthetic/torch_healthy.pt.trace.json.gz"),
    "kineto-graphs": _kineto("synthetic/torch_cuda_graphs.pt.trace.json.gz"),
    "kineto-stacks": _kineto("kineto/stacks_memory.pt.trace.json.gz"),
    "xplane-gpu": lambda: XPlaneSample(SYNTHETIC / "gpu_jax_healthy.xplane.pb"),
    "xplane-keras": lambda: XPlaneSample(SYNTHETIC / "gpu_keras_input_bound.xplane.pb"),
    "xplane-tpu": lambda: XPlaneSample(SYNTHETIC / "tpu_infeed_wait.xplane.pb"),
    "tf-trace-json": _tf_trace_json,
    "folder-nsys": _folder(NSYS),
    "folder-kineto": _folder(SYNTHETIC / "torch_healthy.pt.trace.json.gz"),
    "folder-xplane": _folder(SYNTHETIC / "gpu_keras_input_bound.xplane.pb"),
    "folder-manifest": _manifest_of_folder,
    "run-manifest": _run_manifest,
    "run-description": _run_description,
    "run-status": _run_status,
    "run-samples": _run_samples,
    "stacks": _stacks,
    "report": _saved_report,
}
