"""Traces of several processes whose correlation ids repeat: each process has the launches that it has alone."""

from __future__ import annotations

import gzip
import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest

import traceviz
from traceviz.api import open_trace
from traceviz.trace import schema
from traceviz.trace.tables import TraceTables

SAMPLES = Path(traceviz.__file__).resolve().parents[1] / "sample_traces" / "synthetic"
SHIFT_NS = 37_000
"""The second process does everything so much later: less than most of its kernels wait."""

Launch = tuple[str, int, int, str, str | None]
Double = Callable[[Path, Path], Path]


def launches(trace: TraceTables, process: int, shift: int = 0) -> list[Launch]:
    """Work of a process with the call that launched it: table, its start, the call's start and name, the operation."""
    calls = trace.scan("cuda_api").filter(pl.col("process_id") == process).collect()
    calls = calls.unique("correlation_id", keep="first", maintain_order=True)
    calls = calls.select("correlation_id", pl.col("start_ns").alias("call_ns"), pl.col("name").alias("call"))
    found: list[Launch] = []
    for table in schema.DEVICE_WORK:
        if table in trace:
            work = trace.scan(table).filter(pl.col("process_id") == process).collect()
            rows = work.join(calls, on="correlation_id", how="left").select("start_ns", "call_ns", "call", "op")
            found += [(table, start - shift, called - shift, call, op) for start, called, call, op in rows.iter_rows()]
    return sorted(found, key=repr)


def doubled_kineto(sample: Path, folder: Path) -> Path:
    document = json.loads(gzip.decompress(sample.read_bytes()))
    events = document["traceEvents"]
    again = []
    for event in json.loads(json.dumps(events)):
        event["ts"] = event["ts"] + SHIFT_NS / 1000
        event["pid"] = event["pid"] + 1 if isinstance(event["pid"], int) else event["pid"]
        if "device" in event.get("args", {}):
            event["args"]["device"] += 1
        again.append(event)
    document["deviceProperties"].append({**document["deviceProperties"][0], "id": 1})
    document["traceEvents"] = [*events, *again]
    path = folder / "merged.pt.trace.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def doubled_nsys(sample: Path, folder: Path) -> Path:
    path = folder / "two_processes.sqlite"
    shutil.copy(sample, path)
    with closing(sqlite3.connect(path)) as database:
        names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in names:
            columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
            moved = {column: f"{column} + {SHIFT_NS}" for column in ("start", "end") if column in columns}
            moved |= {
                column: f"{column} + {1 << 24}"
                for column in ("globalPid", "globalTid", "endGlobalTid")
                if column in columns
            }
            if not {"globalPid", "globalTid"} & set(columns):
                continue
            moved |= {column: f"{column} + 1" for column in ("deviceId", "pid") if column in columns}
            shown = ", ".join(moved.get(column, f'"{column}"') for column in columns)
            database.execute(f"INSERT INTO {table} SELECT {shown} FROM {table}")
        database.commit()
    return path


def doubled_nvprof(sample: Path, folder: Path) -> Path:
    path = folder / "two_processes.nvvp"
    shutil.copy(sample, path)
    with closing(sqlite3.connect(path)) as database:
        for table in ("RUNTIME", "DRIVER", "KERNEL", "CONCURRENT_KERNEL", "MEMCPY", "MEMSET"):
            name = f"CUPTI_ACTIVITY_KIND_{table}"
            columns = [row[1] for row in database.execute(f"PRAGMA table_info({name})")][1:]
            moved = {column: f"{column} + {SHIFT_NS}" for column in ("start", "end") if column in columns}
            moved |= {column: f"{column} + 1" for column in ("deviceId", "processId") if column in columns}
            shown = ", ".join(moved.get(column, f'"{column}"') for column in columns)
            listed = ", ".join(f'"{column}"' for column in columns)
            database.execute(f"INSERT INTO {name} ({listed}) SELECT {shown} FROM {name}")
        database.commit()
    return path


def doubled_xplane(sample: Path, folder: Path) -> Path:
    run = folder / "plugins" / "profile" / "run"
    run.mkdir(parents=True)
    for host in ("first", "second"):
        shutil.copy(sample, run / f"{host}.xplane.pb")
    return folder


READERS: list[tuple[str, str, Double, int]] = [
    ("kineto", "torch_healthy.pt.trace.json.gz", doubled_kineto, SHIFT_NS),
    ("kineto", "torch_cuda_graphs.pt.trace.json.gz", doubled_kineto, SHIFT_NS),
    ("nsys", "healthy.sqlite", doubled_nsys, SHIFT_NS),
    ("nvprof", "nvprof_torch_input_bound.nvvp", doubled_nvprof, SHIFT_NS),
    ("xplane", "gpu_jax_healthy.xplane.pb", doubled_xplane, 0),
]


@pytest.mark.parametrize(("reader", "sample", "double", "shift"), READERS)
def test_each_process_has_the_launches_that_it_has_alone(tmp_path, reader, sample, double, shift):
    alone = open_trace(SAMPLES / sample)
    both = open_trace(double(SAMPLES / sample, tmp_path))
    expected = launches(alone, 0)
    assert len(expected) >= 50
    assert both.rows("processes") == 2, reader
    assert launches(both, 0) == expected
    assert launches(both, 1, shift) == expected
    owned = both.scan("kernels").select("process_id", "device_id").unique().collect()
    assert sorted(owned.iter_rows()) == [(0, 0), (1, 1)]
