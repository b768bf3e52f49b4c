"""Keys, columns, stats and types of written captures are those of real files of the same kind."""

import gzip
import json
import os
import sqlite3
import struct
from pathlib import Path

import pytest

from benchmarks.diagnosis.captures import KINETO, Capture, write_capture
from benchmarks.diagnosis.knobs import Format, Knob
from benchmarks.diagnosis.training import train
from benchmarks.diagnosis.worlds import World

RECORD = train(World(7, steps=4, layers=3, ranks=2, strengths={Knob.SLOW_LOADER: 1.0}, workers=0))


def real(*names):
    """Return public files; folders that are not given here are left out."""
    folders = {"traces": "TRACEVIZ_TRACES", "cases": "TRACEVIZ_CASES", "cases2": "TRACEVIZ_CASES2"}
    found = []
    for name in names:
        folder, _, pattern = name.partition("/")
        if folders[folder] in os.environ:
            found += sorted(Path(os.environ[folders[folder]]).glob(pattern))
    if not found:
        pytest.skip("no folder of public traces is given (TRACEVIZ_TRACES, TRACEVIZ_CASES2)")
    return found


# JSON


CUDA = ("traces/kineto/*Falconsai*", "traces/kineto/*nccl_data*")
ROCM = ("traces/kineto/*mi250*", "cases2/kineto/xdit*", "cases2/kineto/sglang*")
MONITOR = (*CUDA, "cases2/made/cupti_monitor_export.json")
REFERENCES = {Format.KINETO_ROCM: (*ROCM, *CUDA), Format.CUPTI_MONITOR: MONITOR}


@pytest.mark.parametrize("format_", KINETO)
@pytest.mark.parametrize("age", [0, 2])
def test_events_of_kineto_files_have_keys_and_types_of_real_ones(format_, age, tmp_path):
    known = {}
    for path in real(*REFERENCES.get(format_, CUDA)):
        for key, kinds in _kinds(_document(path)["traceEvents"]).items():
            for name, types in kinds.items():
                known.setdefault(key, {}).setdefault(name, set()).update(types)
    path = write_capture(RECORD, Capture(format_, age=age), 7, tmp_path)[0]

    for key, kinds in _kinds(_document(path)["traceEvents"]).items():
        for name, types in kinds.items():
            if format_ is Format.CUPTI_MONITOR and name in ONLY_IN_SOURCES:
                continue
            assert types <= known[key].get(name, set()), (key, name)


ONLY_IN_SOURCES = {"args/priority", "args/channel_type"}
"""Arguments that no public file has: those of ``torch/profiler/_cupti/monitor_trace.py``."""


@pytest.mark.parametrize(
    ("format_", "references"), [(Format.KINETO, CUDA), (Format.KINETO_STACKS, CUDA), (Format.KINETO_ROCM, ROCM)]
)
def test_events_of_kineto_files_have_all_keys_that_real_ones_always_have(format_, references, tmp_path):
    always = {}
    for path in real(*references):
        for key, keys in _always(_document(path)["traceEvents"]).items():
            always[key] = always.get(key, keys) & keys
    written = _always(_document(write_capture(RECORD, Capture(format_, age=0), 7, tmp_path)[0])["traceEvents"])

    assert {("X", "cpu_op"), ("X", "kernel"), ("X", "cuda_runtime"), ("X", "gpu_memcpy")} <= written.keys()
    for key, keys in written.items():
        assert always[key] <= keys, key


def test_events_of_tensorflow_files_have_keys_and_types_of_real_ones(tmp_path):
    known = _kinds(_document(real("cases2/xplane/*.trace.json.gz")[0])["traceEvents"])
    written = _kinds(_document(write_capture(RECORD, Capture(Format.TRACE_JSON), 7, tmp_path)[0])["traceEvents"])

    for key, kinds in written.items():
        for name, types in kinds.items():
            if name.startswith("args/") and key[0] == "X":  # the file is of a TPU: other arguments, all texts
                assert types == {"str"}, name
            else:
                assert types <= known[key].get(name, set()), (key, name)
        common = {name for name in known[key] if not name.startswith("args/")}
        assert common <= kinds.keys(), key


def _document(path):
    content = path.read_bytes()
    return json.loads(gzip.decompress(content) if path.suffix == ".gz" else content)


def _flat(event):
    flat = event | {f"args/{name}": value for name, value in (event.get("args") or {}).items()}
    flat.pop("args", None)
    return flat


def _kinds(events):
    """Return for each phase and category the types of each key, also of the arguments."""
    kinds = {}
    for event in events:
        for name, value in _flat(event).items():
            # Times without a fraction are written as integers or as floats.
            kind = "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__
            kinds.setdefault((event.get("ph"), event.get("cat")), {}).setdefault(name, set()).add(kind)
    return kinds


def _always(events):
    """Return for each phase and category the keys of all its events."""
    always = {}
    for event in events:
        key, keys = (event.get("ph"), event.get("cat")), set(_flat(event))
        always[key] = always.get(key, keys) & keys
    return always


# SQLite


NSYS = ("traces/nsys/NVIDIA__Fuser__*.sqlite", "traces/nsys/hpcgroup*.sqlite", "traces/nsys/*mfu_2gpu_before.sqlite")
NVPROF = ("traces/nvprof/josiahdavis__profiling-lm__net.sql",)


@pytest.mark.parametrize(
    ("format_", "references"), [(Format.NSYS, NSYS), (Format.NVPROF, NVPROF)], ids=["nsys", "nvprof"]
)
def test_tables_of_databases_have_columns_and_types_of_real_ones(format_, references, tmp_path):
    files = [_columns(path) for path in real(*references)]
    known = {table: set().union(*(file.get(table, set()) for file in files)) for file in files for table in file}
    always = {
        table: set.intersection(*(file[table] for file in files if table in file)) for file in files for table in file
    }

    for table, columns in _columns(write_capture(RECORD, Capture(format_), 7, tmp_path)[0]).items():
        assert columns <= known[table], table
        assert always[table] <= columns, table


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


# XPlane


XPLANE = ("traces/xplane/*.pb", "cases/xplane/*.pb")


@pytest.mark.parametrize(
    ("format_", "plane"),
    [
        (Format.XPLANE, "/device:GPU"),
        (Format.XPLANE, "/host:CPU"),
        (Format.XPLANE, "Task Environment"),
        (Format.XPLANE_TPU, "/device:TPU"),
        (Format.XPLANE_TPU, "/host:CPU"),
    ],
)
def test_stats_of_xplane_files_have_types_of_real_ones(format_, plane, tmp_path):
    files = [file for file in map(_stats, real(*XPLANE)) if plane in file]
    known, always = {}, {}
    for file in files:
        for place, stats in file[plane].items():
            for name, types in stats["types"].items():
                known.setdefault(place, {}).setdefault(name, set()).update(types)
            always[place] = always.get(place, stats["always"]) & stats["always"]
    written = _stats(write_capture(RECORD, Capture(format_), 7, tmp_path)[0])[plane]

    for place, stats in written.items():
        if place == "Steps":  # no public file of a TPU has steps: those of GPUs have this stat
            assert stats["types"] == {"group_id": {"int64"}}
            continue
        for name, types in stats["types"].items():
            if name in STEP_STATS:  # no public file holds annotated steps: these are TraceMe's
                assert types == {"int64"}
            else:
                assert types <= known[place].get(name, set()), (place, name)
        if place != "event":  # events of the host have none in common
            assert always[place] <= stats["always"], place


STEP_STATS = {"step_num", "_r"}
TYPES = {2: "double", 3: "uint64", 4: "int64", 5: "text", 6: "bytes", 7: "text"}
"""Types of stats by field; a text is in the stat, or in the plane and referred to."""
LINES = {"XLA Modules", "XLA Ops", "Async XLA Ops", "Steps"}


def _stats(path):
    """Return for each kind of plane and place in it the types of stats, and the stats that are always there."""
    planes = {}
    for _, plane in _fields(path.read_bytes(), 1):
        name = next(_fields(plane, 2))[1].decode()
        kind = name.rpartition(":")[0] if name.startswith("/device") else name
        if name.startswith("/device:TPU") and "SparseCore" in name:
            continue
        entries = [dict(_fields(entry)) for _, entry in _fields(plane, 5)]
        names = {entry.get(1, 0): dict(_fields(entry[2])).get(2, b"").decode() for entry in entries}
        places = planes.setdefault(kind, {})

        def note(place, stats, names=names, places=places):
            found = {}
            for stat in stats:
                values = [(field, value) for field, value in _fields(stat) if field != 1]
                number = dict(_fields(stat)).get(1, 0)
                found[names[number]] = TYPES[values[0][0]] if values else "int64"
            if found and "kernel_details" not in found and "memcpy_details" not in found and place == "device event":
                return
            seen = places.setdefault(place, {"types": {}, "always": set(found)})
            for stat, type_ in found.items():
                seen["types"].setdefault(stat, set()).add(type_)
            seen["always"] &= set(found)

        note("plane", [stat for _, stat in _fields(plane, 6)])
        for _, line in _fields(plane, 3):
            title = next((value.decode() for _, value in _fields(line, 2)), "")
            place = title if title in LINES and "TPU" in kind else "device event" if "GPU" in kind else "event"
            for _, event in _fields(line, 4):
                note(place, [stat for _, stat in _fields(event, 4)])
        for _, entry in _fields(plane, 4):
            own = [stat for _, stat in _fields(dict(_fields(entry))[2], 5)]
            if own:
                note("name", own)
    return planes


def _fields(content, wanted=None):
    """Yield the number and the value of each field of a protobuf message."""
    at = 0
    while at < len(content):
        tag, at = _varint(content, at)
        field, wire = tag >> 3, tag & 7
        if wire == 0:
            value, at = _varint(content, at)
        elif wire == 1:
            value, at = struct.unpack_from("<d", content, at)[0], at + 8
        else:
            assert wire == 2, wire
            length, at = _varint(content, at)
            value, at = content[at : at + length], at + length
        if wanted in {None, field}:
            yield field, value


def _varint(content, at):
    value = shift = 0
    while True:
        byte = content[at]
        at, value, shift = at + 1, value | (byte & 0x7F) << shift, shift + 7
        if byte < 0x80:
            return value, at
