"""Traces of every format with the same texts in every column, field and name that can hold one.

Each builder takes a folder, the texts, and the texts that may also be names of kernels, functions and programs. A
user whose name is the word of a kernel is not looked for, so the names of users stand in kernels only where their shape
gives them away.
"""

import gzip
import json
import sqlite3

import pyarrow as pa
import pyarrow.parquet as pq

from tests.parsers.kineto.files import complete, trace
from tests.parsers.nsys.database import to_parquet
from tests.parsers.nvprof.database import EPOCH, owner, write
from tests.parsers.run.folders import manifest
from tests.parsers.run.stack_files import described, process, sample
from tests.parsers.run.stack_files import write as write_stacks
from tests.parsers.xplane.files import Name, Ref, event, line, plane, space
from tests.scrub.leaky_database import OWN, build
from traceviz.parsers.run.samples import PART_SCHEMA
from traceviz.scrub.formats import nsys_policy
from traceviz.trace import schema
from traceviz.trace.tables import TraceTables, save

_OWNERS = {"globalTid": OWN + 7, "globalPid": OWN}
_VOCABULARY = {("kernels", "name"), ("cuda_api", "name"), ("os_calls", "name"), ("processes", "name")}
_CLOSED = {("run", "format"): "nsys", ("run", "framework"): "torch", ("notes", "severity"): "info"}
"""Columns whose texts are those of a closed set, which is checked elsewhere."""
_FIRST = 1_000
_SPAN_NS = 10**9


def kineto(folder, texts, names):
    """Return a trace of PyTorch: names of events, arguments and their keys, texts in lists, members of the header."""
    events = [complete(name, 10 * at, 5, category="kernel") for at, name in enumerate(names)]
    for at, text in enumerate(texts):
        args = {"note": text, "shapes": [text, 1], "inner": {"deep": text}, text: 1, "Call stack": f"{text};f"}
        events.append(complete(text, 10 * at, 5, category="user_annotation", args=args))
        events.append({"ph": "M", "name": "process_labels", "pid": 1, "tid": 0, "ts": 0, "args": {"labels": text}})
    (folder / "t.pt.trace.json").write_bytes(
        trace(events, header={"INFO": list(texts), "more": {"a": {"b": list(texts)}}})
    )
    return folder / "t.pt.trace.json"


def tensorflow_json(folder, texts, names):
    """Return a ``trace.json.gz`` of TensorFlow or JAX."""
    process_names = [("process_name", "/host:CPU"), ("thread_name", "python")]
    events = [{"ph": "M", "pid": 1, "tid": 1, "name": name, "args": {"name": value}} for name, value in process_names]
    for at, text in enumerate((*texts, *names)):
        args = {"long_name": text, "tf_op": text}
        events.append({"ph": "X", "pid": 1, "tid": 1, "ts": 10 * at, "dur": 5, "name": text, "args": args})
    content = {"displayTimeUnit": "ns", "metadata": {"highres-ticks": True}, "traceEvents": [*events, {}]}
    (folder / "t.trace.json.gz").write_bytes(gzip.compress(json.dumps(content).encode()))
    return folder / "t.trace.json.gz"


def xplane(folder, texts, names):
    """Return an XPlane file: names of planes, lines and events, texts of stats in place and by reference, messages."""
    events = [event(text, 10_000 * at, 5_000, {"note": text, "more": Ref(f"{text} ")}) for at, text in enumerate(texts)]
    lines = [line(9 + at, event("x", 0, 1), name=text, display_name=text) for at, text in enumerate(texts)]
    described_names = {text: Name(text, {"source": text, "about": text}) for text in texts}
    others = [plane(text, stats={"device_type": text, "vendor": text}) for text in texts]
    host = plane("/host:CPU", line(1, *events, name="python3"), *lines, names=described_names)
    device = plane("/device:GPU:0", line(3, *(event(name, 0, 9) for name in names), name="XLA Ops"), plane_id=3)
    (folder / "t.xplane.pb").write_bytes(space(host, device, *others, errors=texts, warnings=texts, hostnames=["box"]))
    return folder / "t.xplane.pb"


def nvprof(folder, texts, names):
    """Return a database of nvprof: a string for each column of records that refers to one."""
    strings = {1: "_Z4gemmv"} | {_FIRST + at: text for at, text in enumerate(dict.fromkeys((*texts, *names)))}
    kernels = [
        {"start": EPOCH, "end": EPOCH + 9, "correlationId": at, "name": at} for at in strings if strings[at] in names
    ]
    markers = [
        {"flags": 1, "timestamp": EPOCH, "id": at, "objectKind": 2, "objectId": owner(thread=9), "name": at}
        for at in strings
    ]
    return write(folder, names=strings, CONCURRENT_KERNEL=kernels, MARKER=markers)


def nsys_database(folder, texts, names):
    """Return an export of Nsight Systems: every text of every table, and every column that refers to a string."""
    path = build(folder / "t.sqlite")
    with sqlite3.connect(path) as db:
        ids = {text: _FIRST + at for at, text in enumerate(dict.fromkeys((*texts, *names)))}
        db.executemany("INSERT INTO StringIds VALUES (?, ?)", [(number, text) for text, number in ids.items()])
        for (table,) in db.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name != 'StringIds'"
        ).fetchall():
            columns = db.execute(f"PRAGMA table_info({table})").fetchall()
            is_program = table in {"PROCESSES", "ThreadNames"}
            for at, text in enumerate(names if is_program else texts):
                row = [
                    _cell(table, name, kind, text, (ids[names[at % len(names)]], ids[text], at))
                    for _, name, kind, *_ in columns
                ]
                db.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
    return path


def _cell(table, column, kind, text, numbers):
    of_kernel, number, at = numbers
    if column in _OWNERS:
        return _OWNERS[column]
    if kind == "BLOB":
        return text.encode()
    if kind == "TEXT":
        return f"{text}" if column != "jsonText" else json.dumps({"a": text})
    if nsys_policy.is_vocabulary(table, column):
        return of_kernel
    if nsys_policy.refers_to_name(table, column):
        return number
    return 1 if (table, column) == ("SAMPLING_CALLCHAINS", "id") else _FIRST + at


def nsys_parquet(folder, texts, names):
    """Return the same as a folder of Parquet files, with names in place of their numbers."""
    return to_parquet(nsys_database(folder, texts, names), folder / "export", inline_names=True)


_PROCESSES = 3
"""Processes with events: a report takes longer with each, and each text is in each column of text anyway."""
_DESCRIBING = {"processes", "threads", "devices"}
"""Tables with a row for each process, thread and device."""


def tables_of(texts, names):
    """Return tables in which every column of text has all texts."""
    filled = {}
    for name, table in schema.TABLES.items():
        columns = {}
        for column in table.columns:
            here = names if (name, column.name) in _VOCABULARY else texts
            values = [here[at % len(here)] for at in range(len(texts))]
            if (name, column.name) in _CLOSED:
                values = [_CLOSED[name, column.name]] * len(texts)
            if column.type in (schema.TEXT, schema.NAME):
                columns[column.name] = pa.array(values, pa.string()).cast(column.type)
            elif column.type == pa.bool_():
                columns[column.name] = pa.array([False] * len(texts))
            else:
                first = _SPAN_NS if name == "run" else 0
                numbers = range(first, first + len(texts))
                if column.name == "process_id" and name not in _DESCRIBING:
                    numbers = [at % _PROCESSES for at in range(len(texts))]
                columns[column.name] = pa.array(numbers).cast(column.type)
        filled[name] = pa.table(columns, schema=table.arrow)
    filled["run"] = filled["run"].slice(0, 1)
    return TraceTables(filled)


def tables_folder(folder, texts, names):
    """Return a traceviz folder, with texts in its manifest."""
    save(tables_of(texts, names), folder / "tables", provenance={"source": {"path": texts[0]}, "log": list(texts)})
    return folder / "tables"


def run_folder(folder, texts, names):
    """Return a run folder: its manifest, notes of collectors, stacks, samples of resources and a trace of PyTorch."""
    run = folder / "run"
    for name in ("torch/4711", "resources", "stacks/4711"):
        (run / "raw" / name).mkdir(parents=True)
    kineto(run / "raw/torch/4711", texts, names)
    (run / "raw/torch/4711/status.json").write_text(json.dumps({"pid": 4711, "state": "saved", "note": list(texts)}))
    lines = "".join(json.dumps({"code": "slow", "message": text}) + "\n" for text in texts)
    (run / "raw/torch/4711/problems.jsonl").write_text(lines)
    described_resources = {
        "kind": "traceviz.resources",
        "version": 1,
        "state": "ended",
        "settings": {"machine.cpu": texts[0]},
    }
    (run / "raw/resources/resources.json").write_text(json.dumps({**described_resources, "rate_hz": 10}))
    count = len(texts)
    samples = {"unix_ns": [1] * count, "pid": [1] * count, "gpu": [None] * count, "metric": texts, "unit": texts}
    table = pa.table({**samples, "value": [0.5] * count}).select(PART_SCHEMA.names)
    pq.write_table(table.cast(PART_SCHEMA), run / "raw/resources/part-00001.parquet")
    write_stacks(run / "raw/stacks/4711/stacks.jsonl", _stacks(texts))
    sources = {"torch": "raw/torch/4711/t.pt.trace.json", "resources": "raw/resources", "stacks": "raw/stacks/4711"}
    collectors = [{"name": name, "state": "recorded", "sources": [place]} for name, place in sources.items()]
    problems = [{"code": "x", "message": text} for text in texts]
    stated = manifest(
        collectors=collectors, name=texts[0], problems=problems, tags={f"t{at}": text for at, text in enumerate(texts)}
    )
    (run / "manifest.json").write_text(json.dumps(stated))
    return run


def _stacks(texts):
    lines = [process(4711, name=texts[0]), *described()]
    for at, text in enumerate(texts, 100):
        lines += [["frame", at, text, text, 7, "library"], ["stack", at, 0, at], ["thread", at, at, text, False]]
        lines += [["phase", "saving", text, None, 2_100, 50, 12], ["metric", text, 0.5, 3, None, 2_120, "keras"]]
        lines.append(["samples", [sample(2_000 + at, 1, at)]])
    return [*lines, ["end", 9_000]]


BUILDERS = {
    builder.__name__: builder
    for builder in (*(kineto, tensorflow_json, xplane, nvprof, nsys_database, nsys_parquet, tables_folder, run_folder),)
}
