"""Each capture opens, holds what the record holds, and has keys and types of real files."""

import gzip
import json
import os
import sqlite3
from pathlib import Path

import pytest

import traceviz
from benchmarks.diagnosis.captures import Capture, write_capture
from benchmarks.diagnosis.knobs import Format, Knob
from benchmarks.diagnosis.record import Kind, Work
from benchmarks.diagnosis.training import train
from benchmarks.diagnosis.worlds import World
from benchmarks.diagnosis.writers.nsys import AGES

TRACES = Path(os.environ.get("TRACEVIZ_TRACES", "/nonexistent"))
PUBLIC = pytest.mark.skipif(
    "TRACEVIZ_TRACES" not in os.environ, reason="TRACEVIZ_TRACES names no folder of public traces"
)
RECORD = train(World(7, steps=4, layers=3, ranks=2, strengths={Knob.SLOW_LOADER: 1.0}, workers=0))


@pytest.mark.parametrize(
    ("format_", "age"),
    [(Format.NSYS, age) for age in range(len(AGES))] + [(name, 2) for name in Format if name != "nsys"],
)
def test_a_capture_opens_with_all_device_work_of_the_record(format_, age, tmp_path):
    paths = write_capture(RECORD, Capture(format_, age=age), 7, tmp_path)
    tables = traceviz.open(*paths)
    copies = [span for span in RECORD.device if span.work.is_copy]

    assert tables.kernels.collect().height == len(RECORD.device) - len(copies)
    assert tables.memcpy.collect().height == len(copies)
    kernel_ns = sum(span.end - span.start for span in RECORD.device if not span.work.is_copy)
    assert tables.kernels.collect()["dur_ns"].sum() == kernel_ns
    assert traceviz.analyze(tables).verdict.cause == "input"


@PUBLIC
@pytest.mark.parametrize("stacks", [False, True])
def test_events_of_kineto_files_have_keys_and_types_of_real_ones(stacks, tmp_path):
    real = _kinds(
        json.loads(gzip.decompress(next((TRACES / "kineto").glob("*Falconsai*")).read_bytes()))["traceEvents"]
    )
    nccl = _kinds(
        json.loads(gzip.decompress(next((TRACES / "kineto").glob("*nccl_data*")).read_bytes()))["traceEvents"]
    )
    for key, kinds in nccl.items():
        for name, types in kinds.items():
            real.setdefault(key, {}).setdefault(name, set()).update(types)
    path = write_capture(RECORD, Capture(Format.KINETO_STACKS if stacks else Format.KINETO), 7, tmp_path)[0]
    written = _kinds(json.loads(path.read_text())["traceEvents"])

    for key, kinds in written.items():
        for name, types in kinds.items():
            assert types <= real[key].get(name, set()), (key, name)


@PUBLIC
@pytest.mark.parametrize(
    ("format_", "file"),
    [
        (Format.NSYS, "nsys/NVIDIA__Fuser__a049892__report1.sqlite"),
        (Format.NVPROF, "nvprof/josiahdavis__profiling-lm__net.sql"),
    ],
)
def test_tables_of_databases_have_columns_and_types_of_real_ones(format_, file, tmp_path):
    # Files leave out tables of what was not recorded.
    others = (
        "nsys/hpcgroup__pipit__perlmutter-cloverleaf-cuda.sqlite",
        "nsys/GindaChen__nsys-ai__mfu_2gpu_before.sqlite",
    )
    real = _columns(TRACES / others[0]) | _columns(TRACES / others[1]) | _columns(TRACES / file)

    for table, columns in _columns(write_capture(RECORD, Capture(format_), 7, tmp_path)[0]).items():
        assert columns <= real[table], table


def test_calls_join_their_device_work_in_each_rank(tmp_path):
    for format_ in (Format.NSYS, Format.KINETO, Format.XPLANE, Format.NVPROF):
        folder = tmp_path / format_
        folder.mkdir()
        tables = traceviz.open(*write_capture(RECORD, Capture(format_), 7, folder))
        calls = set(tables.cuda_api.collect()["correlation_id"].to_list())
        kernels = set(tables.kernels.collect()["correlation_id"].to_list())

        assert kernels <= calls
        assert len(kernels) == sum(not span.work.is_copy for span in RECORD.device)


def test_the_record_has_what_the_tests_above_count():
    assert sum(span.kind is Kind.STEP for span in RECORD.spans) == 4 * 2
    assert sum(span.work is Work.COLLECTIVE for span in RECORD.device) == 4 * 2 * 3


def _kinds(events):
    """Return for each phase and category the types of each key, also of the arguments."""
    kinds = {}
    for event in events:
        key = event["ph"], event.get("cat")
        flat = event | {f"args/{name}": value for name, value in (event.get("args") or {}).items()}
        flat.pop("args", None)
        for name, value in flat.items():
            # Times without a fraction are written as integers or as floats.
            kind = "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__
            kinds.setdefault(key, {}).setdefault(name, set()).add(kind)
    return kinds


def _columns(path):
    connection = sqlite3.connect(path)
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    columns = {
        table: {(row[1], _affinity(row[2])) for row in connection.execute(f"PRAGMA table_info([{table}])")}
        for table in tables
        if not table.startswith("sqlite_")
    }
    connection.close()
    return columns


def _affinity(declared):
    return "INTEGER" if declared.upper() in {"INT", "INTEGER"} else declared.upper()
