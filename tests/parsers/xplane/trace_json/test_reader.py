"""Trace JSON of TensorFlow's and JAX's profiler: one test per trait, each from a few literal events."""

import gzip
import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceviz.core.errors import DamagedTraceError, UsageError
from traceviz.parsers.base import HEAD_BYTES, Match, ReadRequest
from traceviz.parsers.registry import identify, read_head
from traceviz.parsers.xplane.decode.raw import Space
from traceviz.parsers.xplane.readers import TensorFlowTraceReader
from traceviz.parsers.xplane.trace_json import planes as tf_trace_planes
from traceviz.trace.tables import TraceTables

READER = TensorFlowTraceReader()


def process(pid: int, name: str) -> dict:
    return {"ph": "M", "pid": pid, "name": "process_name", "args": {"name": name}}


def thread(pid: int, tid: int, name: str) -> dict:
    return {"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": name}}


def event(pid: int, tid: int, ts: float, dur: float, name: str, **args: str) -> dict:
    return {"ph": "X", "pid": pid, "tid": tid, "ts": ts, "dur": dur, "name": name, "args": args}


HOST = (process(701, "/host:CPU"), thread(701, 7, "python3"))
GPU = (process(1, "/device:GPU:0"), thread(1, 13, "Stream #13(Compute)"), thread(1, 14, "Stream #14(MemcpyH2D)"))


def text_of(*events: dict) -> str:
    """Return a file as the profiler writes it, with the empty event that ends the list."""
    head = '{"displayTimeUnit":"ns","metadata":{"highres-ticks":true},\n"traceEvents":[\n'
    return head + ",\n".join(json.dumps(one) for one in events) + ",\n{}]}\n"


def written(folder: Path, *events: dict, name: str = "host1.trace.json.gz") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    raw = text_of(*events).encode()
    path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    return path


def read(path: Path, **options) -> TraceTables:
    return TraceTables(dict(READER.read(path, ReadRequest(**options))))


def rows(tables: TraceTables, table: str, *columns: str) -> list[tuple]:
    return tables.scan(table).select(*columns).collect().rows()


def notes(tables: TraceTables) -> dict[str, str]:
    return dict(rows(tables, "notes", "code", "message"))


# --- what is read ----------------------------------------------------------------------------------------------------


def test_a_kernel_has_its_launch_shape_stream_correlation_and_op(tmp_path):
    args = {"correlation_id": "42", "kernel_details": "regs:16 shm:48 grid:3,2,1 block:64,1,1"}
    path = written(tmp_path, *GPU, event(1, 13, 300161.722, 5.984, "gemm", annotation="a/MatMul:MatMul", **args))
    columns = ("start_ns", "dur_ns", "name", "stream", "correlation_id", "op", "grid_x", "grid_y", "block_x")
    kernels = rows(read(path), "kernels", *columns, "registers_per_thread", "dynamic_shared_bytes")
    assert kernels == [(0, 5984, "gemm", 13, 42, "a/MatMul:MatMul", 3, 2, 64, 16, 48)]


def test_a_copy_has_its_direction_and_bytes(tmp_path):
    args = {"memcpy_details": "size:802816 dest:0 async:1", "correlation_id": "1"}
    path = written(tmp_path, *GPU, event(1, 14, 1, 2.08, "MemcpyH2D", **args))
    assert rows(read(path), "memcpy", "kind", "bytes", "dur_ns", "stream") == [("h2d", 802816, 2080, 14)]


def test_lines_that_the_viewer_derives_are_not_kernels(tmp_path):
    derived = (thread(1, 3735928562, "TensorFlow Ops"), event(1, 3735928562, 5, 9, "MatMul", long_name="a:MatMul"))
    path = written(tmp_path, *GPU, event(1, 13, 5, 9, "gemm"), *derived)
    assert rows(read(path), "kernels", "name") == [("gemm",)]


def test_the_long_name_is_the_name_and_decides_what_an_operation_is(tmp_path):
    path = written(
        tmp_path,
        *HOST,
        event(701, 7, 1, 8, "IteratorGetNext", long_name="IteratorGetNext:IteratorGetNext"),
        event(701, 7, 2, 3, "Iterator::Map", long_name="Iterator::Root::Map", id="-3877662985711006711"),
        event(701, 7, 10, 3, "Relu", long_name="model/relu:Relu"),
    )
    trace = read(path)
    assert rows(trace, "host_ops", "name", "category", "depth", "parent_id") == [
        ("IteratorGetNext:IteratorGetNext", "input", 0, None),
        ("Iterator::Root::Map", "pipeline", 1, 0),
        ("model/relu:Relu", "op", 0, None),
    ]
    assert rows(trace, "op_args", "op_id", "key", "integer") == [(1, "id", -3877662985711006711)]


def test_arguments_are_texts_in_the_file_and_get_their_types_back(tmp_path):
    args = {
        "big": "18446744073709551615",
        "small": "-7",
        "share": "0.25",
        "shape": "(float[2])",
        "name": "12",
        "e": "1e3",
    }
    path = written(tmp_path, *HOST, {**event(701, 7, 0, 1, "op"), "args": args})
    found = {
        key: (whole, real, text)
        for key, whole, real, text in rows(read(path), "op_args", "key", "integer", "real", "text")
    }
    assert found == {
        "big": (-1, None, None),  # the 64 bits of the unsigned number
        "small": (-7, None, None),
        "share": (None, 0.25, None),
        "shape": (None, None, "(float[2])"),
        "name": (None, None, "12"),  # the name of a node, though it looks like a number
        "e": (None, 1000.0, None),
    }


def test_an_annotated_step_is_a_step_even_without_groups(tmp_path):
    path = written(tmp_path, *HOST, *(event(701, 7, 10 * n, 9.5, "train", step_num=str(n)) for n in range(3)))
    assert rows(read(path), "steps", "step", "start_ns", "dur_ns", "marker") == [
        (0, 0, 9500, "train"),
        (1, 10_000, 9500, "train"),
        (2, 20_000, 9500, "train"),
    ]


def test_groups_in_the_file_are_kept_and_a_marker_shown_as_its_step_gets_its_name_back(tmp_path):
    path = written(
        tmp_path,
        *HOST,
        *GPU,
        event(701, 7, 0, 9, "train 5", group_id="0", step_name="train 5", step_num="5"),
        event(1, 13, 2, 3, "gemm", group_id="0", correlation_id="1"),
        event(1, 13, 12, 3, "gemm", correlation_id="2", group_id="1"),
    )
    trace = read(path)
    assert rows(trace, "steps", "step", "marker", "name", "group_id") == [(5, "train", "train 5", 0)]
    assert rows(trace, "kernels", "group_id") == [(0,), (1,)]


def test_instants_have_no_duration(tmp_path):
    instant = {"ph": "i", "pid": 701, "tid": 7, "ts": 3.5, "name": "mark", "s": "t"}
    shown = event(701, 7, 4, 1e-06, "end: dot")  # the viewer makes instants one picosecond long
    path = written(tmp_path, *HOST, event(701, 7, 1, 1, "op"), instant, shown)
    assert rows(read(path), "host_ops", "name", "start_ns", "dur_ns") == [
        ("op", 0, 1000),
        ("mark", 2500, 0),
        ("end: dot", 3000, 0),
    ]


def test_ops_of_a_tpu_have_short_names_and_categories(tmp_path):
    path = written(
        tmp_path,
        process(3, "/device:TPU:0"),
        thread(3, 3, "XLA Ops"),
        thread(3, 2, "XLA Modules"),
        thread(3, 3735928570, "Host Offload Ops row 0"),
        event(3, 2, 1, 9, "jit_f(77)", run_id="4"),
        event(
            3, 3, 2, 3, "copy-start.2", long_name="%copy-start.2 = f32[5]", hlo_category="copy-start", program_id="77"
        ),
        event(3, 3735928570, 2, 3, "copy-start.2"),
    )
    trace = read(path)
    assert rows(trace, "kernels", "name", "category", "module", "dur_ns") == [
        ("copy-start.2", "copy-start", "jit_f(77)", 3000)
    ]
    assert rows(trace, "device_ops", "name", "kind", "run_id") == [("jit_f(77)", "module", 4)]
    assert "unknown-lines" not in notes(trace)


def test_hosts_whose_names_precede_the_planes_are_processes_of_their_own(tmp_path):
    planes = (process(1, "worker-0 /host:CPU"), process(2, "worker-1 /host:CPU"))
    path = written(tmp_path, *planes, event(1, 7, 0, 1, "a"), event(2, 7, 5, 1, "b"))
    trace = read(path)
    assert rows(trace, "host_ops", "process_id", "name") == [(0, "a"), (1, "b")]
    assert rows(trace, "processes", "rank") == [(0,), (1,)]


def test_other_phases_are_counted_and_left_out(tmp_path):
    counters = [{"ph": "C", "pid": 701, "ts": n, "name": "memory", "args": {"b": 1}} for n in range(3)]
    trace = read(written(tmp_path, *HOST, event(701, 7, 0, 1, "op"), *counters))
    assert trace.rows("host_ops") == 1
    assert notes(trace)["unread-events"] == "3 events of phase C are not read."


# --- before TensorFlow 2.2 -------------------------------------------------------------------------------------------


def test_old_streams_are_processes_and_their_labels_name_kernels_and_copies(tmp_path):
    path = written(
        tmp_path,
        process(0, "/device:GPU:0/stream:13"),
        process(1, "/device:GPU:0/stream:14<MemcpyH2D>"),
        process(2, "/device:GPU:0/stream:all"),
        process(3, "/host:CPU"),
        thread(3, 9, "python3"),
        event(
            0,
            0,
            10,
            4,
            "Conv2D",
            **{"long name": "net/conv:Conv2D", "label": "implicit_gemm regs:32 shm:0 grid:2,1,1 block:8,1,1"},
            annotation="net/conv:Conv2D",
        ),
        event(
            0,
            1,
            12,
            4,
            "Relu",
            **{"long name": "net/relu:Relu@@void relu<float>::f()"},
            label="regs:8 shm:0 grid:1,1,1 block:1,1,1",
        ),
        event(1, 0, 20, 2, "MemcpyH2D", label="MemcpyH2D bytes:64 aync"),
        event(2, 0, 10, 4, "Conv2D", label="implicit_gemm regs:32 shm:0 grid:2,1,1 block:8,1,1"),
        event(3, 9, 5, 30, "Prefetch", **{"long name": "Iterator::Model::Prefetch"}, label="id=1,parent_id=2"),
    )
    trace = read(path)
    assert rows(trace, "kernels", "name", "op", "stream", "registers_per_thread", "start_ns") == [
        ("implicit_gemm", "net/conv:Conv2D", 13, 32, 5000),
        ("void relu<float>::f()", "net/relu:Relu", 13, 8, 7000),
    ]
    assert rows(trace, "memcpy", "kind", "bytes", "stream") == [("h2d", 64, 14)]
    assert trace.rows("devices") == 1
    assert rows(trace, "host_ops", "name", "category") == [("Iterator::Model::Prefetch", "pipeline")]
    assert sorted(rows(trace, "op_args", "key", "integer")) == [("id", 1), ("parent_id", 2)]


# --- times -----------------------------------------------------------------------------------------------------------


def planes_of(path: Path) -> Space:
    from traceviz.parsers.xplane.trace_json.decode import decode

    return tf_trace_planes.spaces_of(decode(path))[""]


@pytest.mark.parametrize(
    ("written_as", "picoseconds"),
    [
        ("0", 0),
        ("1", 1_000_000),
        ("1.5", 1_500_000),
        ("97562857.116672", 97_562_857_116_672),
        ("9007199254.740993", 9_007_199_254_740_993),  # one more than a float can hold
        ("1e-06", 0),  # how an instant is shown
        ("2e-06", 2),
        ("8e-05", 80),
        ("1.25E+3", 1_250_000_000),
        ("0.1234567", 123_456),  # nothing is shorter than a picosecond
        ("-0.5", -500_000),
    ],
)
def test_microseconds_are_read_as_decimals(tmp_path, written_as, picoseconds):
    path = written(tmp_path, *HOST, event(701, 7, 0, 12345, "op"), name="t.trace.json")
    path.write_text(path.read_text().replace("12345", written_as))
    assert planes_of(path).planes[0].events.dur_ps.tolist() == [picoseconds]


@given(st.integers(0, 2**62))
def test_any_number_of_picoseconds_survives(picoseconds):
    from msgspec import Raw

    text = f"{picoseconds // 10**6}.{picoseconds % 10**6:06}".encode()
    assert tf_trace_planes.picoseconds([Raw(text)]).tolist() == [picoseconds]


def test_times_of_day_do_not_overflow(tmp_path):
    path = written(tmp_path, *HOST, event(701, 7, 0, 1, "a"), event(701, 7, 0, 2, "b"), name="t.trace.json")
    text = (
        path.read_text()
        .replace('"ts": 0', '"ts": 1695835535000000.001', 1)
        .replace('"ts": 0', '"ts": 1695835535000002')
    )
    path.write_text(text)
    assert rows(read(path), "host_ops", "start_ns", "dur_ns") == [(0, 1000), (1999, 2000)]


# --- files that are not whole ----------------------------------------------------------------------------------------


def test_a_file_that_was_cut_off_is_read_up_to_the_cut(tmp_path):
    path = written(
        tmp_path, *HOST, *(event(701, 7, n, 1, f"op{n} }},{{", k="v}") for n in range(5)), name="t.trace.json"
    )
    raw = path.read_bytes()
    path.write_bytes(raw[: raw.index(b"op3") + 6])
    trace = read(path)
    assert rows(trace, "host_ops", "name") == [("op0 },{",), ("op1 },{",), ("op2 },{",)]
    assert "breaks off" in notes(trace)["damaged"]


@pytest.mark.parametrize("name", ["t.trace.json", "t.trace.json.gz"])
def test_a_file_cut_anywhere_is_read_or_refused_with_words(tmp_path, name):
    path = written(tmp_path, *HOST, *(event(701, 7, n, 1, f"op{n}", k="v") for n in range(6)), name=name)
    raw = path.read_bytes()
    counts = []
    for length in range(1, len(raw), 7):
        path.write_bytes(raw[:length])
        try:
            counts.append(read(path).rows("host_ops"))
        except DamagedTraceError:
            counts.append(0)
    assert counts == sorted(counts)
    assert counts[0] == 0
    assert counts[-1] >= 5


def test_garbage_in_the_middle_of_gzip_keeps_what_comes_before(tmp_path):
    many = [event(701, 7, n, 1, f"op{n * 7919 % 10007}", k=str(n * 104729 % 10007)) for n in range(3000)]
    path = written(tmp_path, *HOST, *many)
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2 : len(raw) // 2 + 64] = bytes(64)
    path.write_bytes(raw)
    trace = read(path)
    assert 100 < trace.rows("host_ops") < 3000
    assert "damaged" in notes(trace)


def test_a_text_longer_than_allowed_is_refused_with_the_flag_that_raises_the_limit(tmp_path):
    path = written(tmp_path, *HOST, *(event(701, 7, n, 1, f"op{n}", k="v") for n in range(100)))
    with pytest.raises(DamagedTraceError, match=r"more than 2\.00 kB of text .* --max-size"):
        read(path, max_size=2_000)
    assert read(path, max_size=1_000_000).rows("host_ops") == 100


def test_names_that_are_not_utf8_are_read_with_replacements(tmp_path):
    path = written(tmp_path, *HOST, event(701, 7, 0, 1, "caf#"), name="t.trace.json")
    path.write_bytes(path.read_bytes().replace(b"caf#", b"caf\xe9"))
    assert rows(read(path), "host_ops", "name") == [("caf\ufffd",)]


def test_a_full_file_says_that_later_events_are_missing(tmp_path, monkeypatch):
    path = written(tmp_path, *HOST, *(event(701, 7, n, 1, "op") for n in range(4)))
    assert "events-capped" not in notes(read(path))
    monkeypatch.setattr(tf_trace_planes, "CAPS", (4,))
    assert "at most 4 events" in notes(read(path))["events-capped"]


def test_a_file_without_events_says_so(tmp_path):
    with pytest.raises(DamagedTraceError, match="holds no events"):
        read(written(tmp_path, *HOST))


def test_an_event_that_no_profiler_writes_is_named(tmp_path):
    path = written(tmp_path, *HOST, {**event(701, 7, 0, 1, "a"), "pid": [1]})
    with pytest.raises(DamagedTraceError, match=r"Expected `int`, got `array` - at `\$\.traceEvents\[2\]\.pid`"):
        read(path)


# --- which files are ours --------------------------------------------------------------------------------------------


def sniffed(text: str | bytes) -> Match:
    raw = text if isinstance(text, bytes) else text.encode()
    return READER.sniff(raw[:HEAD_BYTES], Path("x.json"))


def test_the_profilers_json_is_recognised_whether_compressed_or_not():
    text = text_of(*HOST, *(event(701, 7, n, 1, f"op{n * 7919}") for n in range(9000)))
    assert len(gzip.compress(text.encode())) > HEAD_BYTES
    assert [sniffed(text), sniffed(gzip.compress(text.encode()))] == [Match.YES, Match.YES]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        '{"traceEvents":[{"ph":"M","pid":1,"name":"process_name","args":{"name":"python"}}]}',
        '{"schemaVersion":1,"deviceProperties":[],"traceEvents":[{"args":{"name":"/device:GPU:0"}}]}',
        '{"traceEvents":[{"ph":"X","cat":"kernel","name":"/device:GPU:0","ts":1,"dur":2}]}',
        '{"displayTimeUnit":"ns","metadata":{"highres-ticks":true},"traceEvents":[]}',
        "SQLite format 3\0",
    ],
)
def test_json_of_other_programs_is_not_ours(text):
    assert sniffed(text) == sniffed(gzip.compress(text.encode())) == Match.NO


@given(st.binary(max_size=200))
def test_sniffing_survives_any_bytes(raw):
    assert sniffed(raw) == sniffed(b"\x1f\x8b" + raw) == Match.NO


def test_a_log_folder_with_nothing_but_trace_json_is_ours(tmp_path):
    run = tmp_path / "logs/train/plugins/profile/2020_03_01_10_00_00"
    written(run, *HOST, event(701, 7, 0, 1, "op"))
    assert identify(tmp_path / "logs").format == identify(run).format == "tf-trace-json"
    assert read(tmp_path / "logs").rows("host_ops") == 1
    assert READER.sniff(b"", tmp_path / "empty") == Match.NO


def test_beside_an_xplane_file_the_json_is_left_alone(tmp_path):
    run = tmp_path / "plugins/profile/2020_03_01_10_00_00"
    written(run, *HOST, event(701, 7, 0, 1, "op"))
    (run / "host1.xplane.pb").write_bytes(b"\n\x0b\x12\x09/host:CPU")
    assert READER.sniff(b"", tmp_path) == Match.NO


def test_the_newest_run_is_read_unless_another_is_named(tmp_path):
    for day, name in ((1, "old"), (2, "new")):
        written(tmp_path / f"plugins/profile/2020_03_0{day}_10_00_00", *HOST, event(701, 7, 0, 1, name))
    newest = read(tmp_path)
    assert rows(newest, "host_ops", "name") == [("new",)]
    assert "2020_03_01_10_00_00" in notes(newest)["run-chosen"]
    assert rows(read(tmp_path, run="2020_03_01_10_00_00"), "host_ops", "name") == [("old",)]
    with pytest.raises(UsageError, match=r"no run 'x'.*2020_03_01"):
        read(tmp_path, run="x")


def test_hosts_of_a_run_are_ranks_and_their_names_stay_private(tmp_path):
    run = tmp_path / "plugins/profile/2020_03_01_10_00_00"
    for host in ("node-b17", "node-a17"):
        written(run, *HOST, event(701, 7, 0, 1, host[5]), name=f"{host}.trace.json.gz")
    trace = read(tmp_path)
    assert rows(trace, "host_ops", "process_id", "name") == [(0, "a"), (1, "b")]
    assert not [name for name in trace if "node-" in str(trace.arrow(name).to_pydict())]
    assert "node-a17" in read(tmp_path, keep_private=True).run_facts()["host"]


# --- public traces ---------------------------------------------------------------------------------------------------


def test_traces_of_pytorch_are_not_ours(public_traces):
    files = sorted((public_traces / "kineto").glob("*.json.gz"))
    assert len(files) >= 10
    assert {READER.sniff(read_head(file), file) for file in files} == {Match.NO}


def test_the_json_of_a_public_capture_has_its_kernels_to_the_nanosecond(public_traces, tmp_path):
    """The JSON is made here from the columns of the XPlane file, as the profiler does: in decimal microseconds."""
    from traceviz.parsers.xplane.decode.scan import read_space

    capture = next((public_traces / "xplane").glob("*instance-ecbm.xplane.pb"))
    plane = next(plane for plane in read_space(capture.read_bytes()).planes if plane.name == "/device:GPU:0")
    events = [process(1, plane.name), *(thread(1, line.id, line.name) for line in plane.lines)]
    starts = plane.start_ps(0).tolist()
    for line in plane.lines:
        for place in range(line.events.start, line.events.stop):
            name = plane.names[plane.events.name[place]]
            events.append(event(1, line.id, starts[place] / 1e6, int(plane.events.dur_ps[place]) / 1e6, name))
    kernels = read(written(tmp_path, *events)).kernels
    assert kernels.select(pl.len(), pl.col("dur_ns").sum()).collect().row(0) == (116, 5_673_352)


def test_a_folder_of_traces_of_pytorch_is_none_of_ours(tmp_path):
    trace = {"schemaVersion": 1, "traceEvents": [{**event(1, 1, 1, 3, "aten::mm"), "cat": "cpu_op"}]}
    (tmp_path / "worker.1.pt.trace.json.gz").write_bytes(gzip.compress(json.dumps(trace).encode()))
    assert READER.sniff(b"", tmp_path) == Match.NO
    written(tmp_path, *HOST, event(701, 7, 0, 3, "a"))
    assert READER.sniff(b"", tmp_path) == Match.YES


def raw_event(**members: str) -> str:
    """Return an event as text, whose members are JSON."""
    known = {"ph": '"X"', "pid": "701", "tid": "7", "ts": "1", "dur": "2", "name": '"a"', **members}
    return "{" + ",".join(f'"{key}":{value}' for key, value in known.items()) + "}"


def refused(folder: Path, content: bytes) -> DamagedTraceError:
    path = folder / "host1.trace.json"
    path.write_bytes(b'{"traceEvents":[' + content + b"]}")
    with pytest.raises(DamagedTraceError) as raised:
        read(path)
    return raised.value


def test_arguments_that_lie_a_million_deep_are_an_error(tmp_path):
    deep = "[" * 10**6 + "]" * 10**6
    error = refused(tmp_path, raw_event(args=f'{{"a":{deep}}}').encode())
    assert error.what.endswith("holds JSON that lies too deep in itself.")


@pytest.mark.parametrize("member", ["ts", "dur"])
@pytest.mark.parametrize(
    ("value", "shown"),
    [("true", "true"), ("1e", "1e"), ("1e999999999", "1e999999999"), ('"5"', '"5"'), ("1" * 10**6, "1" * 40)],
)
def test_a_time_that_is_no_number_of_microseconds_is_shown(tmp_path, member, value, shown):
    if value == "1e":  # the decoder sees what is no JSON at all
        assert "holds no event that can be read" in refused(tmp_path, raw_event(**{member: value}).encode()).what
        return
    error = refused(tmp_path, raw_event(**{member: value}).encode())
    assert error.what == f"The trace holds a time that is no number of microseconds: {shown}."


def test_a_time_whose_bytes_are_no_text_is_an_error(tmp_path):
    error = refused(tmp_path, raw_event(ts='"?"').encode().replace(b"?", b"\x80"))
    assert error.what == 'The trace holds a time that is no number of microseconds: "\ufffd".'


@pytest.mark.parametrize("member", ["pid", "tid"])
@pytest.mark.parametrize(("value", "is_read"), [(2**63 - 1, True), (2**63, False), (-(2**63), True), (2**64, False)])
def test_numbers_of_processes_and_threads_have_64_bits(tmp_path, member, value, is_read):
    content = raw_event(**{member: str(value)}).encode()
    if not is_read:
        assert refused(tmp_path, content).what.endswith("holds an event that no profiler writes.")
        return
    path = tmp_path / "host1.trace.json"
    path.write_bytes(b'{"traceEvents":[' + content + b"]}")
    assert read(path).rows("run") == 1


def test_a_device_whose_number_has_5000_digits_is_read(tmp_path):
    events = (process(1, "/device:GPU:" + "9" * 5000), process(2, f"/device:GPU:0/stream:{'9' * 5000}"))
    assert read(written(tmp_path, *events, event(1, 1, 1.0, 1.0, "a"), event(2, 0, 1.0, 1.0, "b"))).rows("run") == 1


@pytest.mark.parametrize("wrong", [1e17, -1e17, 31 * 86_400 * 1e6])
def test_1_event_of_another_month_is_left_out_and_3_stay_where_they_are(tmp_path, wrong):
    lane = [process(1, "/host:CPU"), thread(1, 2, "main")]
    good = [event(1, 2, at, 5, name) for at, name in ((100, "a"), (110, "b"), (120, "c"))]
    tables = read(written(tmp_path, *lane, event(1, 2, wrong, 5, "far"), *good))
    assert rows(tables, "host_ops", "name", "start_ns") == [("a", 0), ("b", 10_000), ("c", 20_000)]
    assert rows(tables, "run", "span_ns") == [(25_000,)]
    assert "times-out-of-range" in notes(tables)
