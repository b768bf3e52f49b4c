"""Output of rocprof and rocprofv3: CSV, JSON and databases."""

from __future__ import annotations

import gzip
import json
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.conftest import REPOSITORY
from tests.fuzz.cases import Format
from tests.fuzz.mutations import json_text, printed, sqlite_logic
from tests.fuzz.mutations.octets import SPOIL, in_file
from tests.fuzz.oracle import examine
from tests.parsers.rocprof import test_rocprof as texts


def _tables(folder: Path) -> None:
    contents = {
        "kernels_kernel_trace.csv": texts.KERNELS,
        "calls_hip_api_trace.csv": texts.CALLS,
        "copies_memory_copy_trace.csv": texts.COPIES,
        "markers_marker_api_trace.csv": texts.MARKERS,
    }
    for name, content in contents.items():
        (folder / name).write_text(content)


def _documents(folder: Path) -> None:
    path = REPOSITORY / "sample_traces" / "synthetic" / "rocprof_input_bound.json.gz"
    sample = json.loads(gzip.decompress(path.read_bytes()))
    (folder / "results.json").write_text(json.dumps({**sample, "traceEvents": sample["traceEvents"][:40]}))


def _databases(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "results.db")) as db:
        db.execute(
            'CREATE TABLE A ("BeginNs" TEXT, "EndNs" TEXT, "KernelName" TEXT, "gpu-id" TEXT, pid TEXT, tid TEXT)'
        )
        db.execute('CREATE TABLE HIP ("BeginNs" TEXT, "EndNs" TEXT, "Name" TEXT, pid TEXT, tid TEXT)')
        db.execute('CREATE TABLE COPY ("BeginNs" TEXT, "EndNs" TEXT, "Name" TEXT)')
        for n in range(4):
            times = str(1000 * n), str(1000 * n + 400)
            db.execute("INSERT INTO A VALUES (?, ?, ?, ?, ?, ?)", (*times, "gemm(float*).kd", "0", "7", "7"))
            db.execute("INSERT INTO HIP VALUES (?, ?, ?, ?, ?)", (*times, "hipLaunchKernel", "7", "7"))
            db.execute("INSERT INTO COPY VALUES (?, ?, ?)", (*times, "CopyHostToDevice"))
        db.commit()


ROCPROF_CSV = Format("rocprof-csv", _tables, {in_file(printed.change): 8, SPOIL: 1}, examine)
ROCPROF_JSON = Format("rocprof-json", _documents, {in_file(json_text.change): 8, SPOIL: 1}, examine)
ROCPROF_SQLITE = Format(
    "rocprof-sqlite", _databases, {sqlite_logic.change: 8, sqlite_logic.spoil_page: 1, SPOIL: 1}, examine
)
