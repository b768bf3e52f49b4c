"""Folders of PyTorch's profiler: which files are one run, which run is read, and how files are recognised."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.kineto import files as k
from traceviz import api
from traceviz.core.errors import UnknownFormatError, UsageError
from traceviz.parsers.base import HEAD_BYTES, Match, ReadRequest
from traceviz.parsers.kineto.readers import KinetoReader
from traceviz.parsers.registry import identify
from traceviz.parsers.xplane.readers import TensorFlowTraceReader
from traceviz.trace.tables import TraceTables


def ranked(rank: int, world: int = 2, *, name: str = "k", start: float = 1.7e15) -> bytes:
    header = {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": world}}
    events = [k.runtime("cudaLaunchKernel", start, 1, correlation=1), k.kernel(name, start + 10, 5, correlation=1)]
    return k.trace(events, header)


def alone(name: str) -> bytes:
    return k.trace([k.kernel(name, 1.7e15, 5)])


def fill(folder: Path, files: Mapping[str, bytes]) -> Path:
    for name, data in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(k.compressed(data) if name.endswith(".gz") else data)
    return folder


def read(folder: Path, run: str | None = None) -> TraceTables:
    return TraceTables(dict(identify(folder).read(folder, ReadRequest(run=run))))


def kernel_names(trace: TraceTables) -> list[str]:
    return sorted(trace.arrow("kernels")["name"].to_pylist())


def ranks(trace: TraceTables) -> list[int | None]:
    return trace.arrow("processes")["rank"].to_pylist()


def choices(trace: TraceTables) -> list[str]:
    return [row["message"] for row in trace.arrow("notes").to_pylist() if row["code"] == "run-chosen"]


# Folders


def test_files_of_ranks_are_read_together(tmp_path):
    names = {"host_11.1700000000001.pt.trace.json": ranked(0), "host_12.1700000000002.pt.trace.json.gz": ranked(1)}
    trace = read(fill(tmp_path, names))
    assert (ranks(trace), trace.rows("kernels"), choices(trace)) == ([0, 1], 2, [])


def test_names_state_the_ranks_where_the_files_do_not(tmp_path):
    trace = read(fill(tmp_path, {f"rank{n}.json": alone(f"k{n}") for n in (2, 10)}))
    assert (ranks(trace), kernel_names(trace)) == ([2, 10], ["k10", "k2"])


def test_jobs_of_different_size_in_one_folder_are_different_runs(tmp_path):
    files = {"rank0.json": ranked(0, 8, name="k8"), "rank1.json": ranked(1, 2, name="k2"), "rank2.json": alone("k")}
    folder = fill(tmp_path, files)
    for age, name in enumerate(files):
        os.utime(folder / name, (1.7e9 - age, 1.7e9 - age))
    trace = read(folder)
    assert (ranks(trace), kernel_names(trace)) == ([0], ["k8"])
    assert choices(trace) == ["Run rank0.json was read, the newest. Others: rank1.json, rank2.json (--run NAME)."]
    assert kernel_names(read(folder, run="rank1.json")) == ["k2"]


def test_a_rank_that_states_no_size_belongs_to_the_only_job(tmp_path):
    trace = read(fill(tmp_path, {"rank0.json": ranked(0, 2, name="k0"), "rank1.json": alone("k1")}))
    assert (ranks(trace), kernel_names(trace)) == ([0, 1], ["k0", "k1"])


def test_newest_span_of_every_rank_is_read_and_the_others_are_named(tmp_path):
    names = {
        f"host_{rank}.{time + rank}.pt.trace.json": ranked(rank, name=f"k{time}") for rank in (0, 1) for time in TIMES
    }
    trace = read(fill(tmp_path, names))
    assert (ranks(trace), kernel_names(trace)) == ([0, 1], ["k1700000020000"] * 2)
    assert choices(trace) == [
        (
            "The same program wrote 3 recordings, one per cycle of torch.profiler.schedule(repeat=...). "
            "Run 1700000020000 was read, the newest. Others: 1700000010000, 1700000000000 (--run NAME)."
        )
    ]


TIMES = (1_700_000_000_000, 1_700_000_010_000, 1_700_000_020_000)


@pytest.mark.parametrize("name", ["1700000010000", "1700000010001", "host_1.1700000010001.pt.trace.json"])
def test_run_is_chosen_by_the_time_or_file_of_any_rank(tmp_path, name):
    names = {
        f"host_{rank}.{time + rank}.pt.trace.json": ranked(rank, name=f"k{time}") for rank in (0, 1) for time in TIMES
    }
    trace = read(fill(tmp_path, names), run=name)
    assert (ranks(trace), kernel_names(trace)) == ([0, 1], ["k1700000010000"] * 2)


def test_a_cycle_of_a_program_is_a_warning_and_another_program_is_none(tmp_path):
    names = {f"host_7.{time}.pt.trace.json": alone(f"k{time}") for time in TIMES}
    severities = [row["severity"] for row in read(fill(tmp_path / "a", names)).arrow("notes").to_pylist()]
    assert severities.count("warning") == 1
    others = {f"host_{pid}.{time}.pt.trace.json": alone("k") for pid, time in enumerate(TIMES)}
    assert choices(read(fill(tmp_path / "b", others)))[0].startswith("Run 1700000020000 was read, the newest. ")


def test_files_without_ranks_are_runs_of_their_own(tmp_path):
    names = {
        "host_7.1700000000000.pt.trace.json": alone("old"),
        "host_9.1700000005000000000.pt.trace.json": alone("new"),
    }
    trace = read(fill(tmp_path, names))
    assert kernel_names(trace) == ["new"]
    assert kernel_names(read(tmp_path, run="1700000000000")) == ["old"]


def test_files_without_times_in_their_names_are_as_old_as_they_are(tmp_path):
    fill(tmp_path, {"a.json": alone("a"), "b.json": alone("b")})
    os.utime(tmp_path / "a.json", (2e9, 2e9))
    os.utime(tmp_path / "b.json", (1e9, 1e9))
    trace = read(tmp_path)
    assert kernel_names(trace) == ["a"]
    assert choices(trace) == ["Run a.json was read, the newest. Others: b.json (--run NAME)."]


def test_single_program_of_rank_0_is_no_job(tmp_path):
    files = {f"host_{n}.170000000{n}000.pt.trace.json": ranked(0, world=1, name=f"k{n}") for n in (1, 2)}
    assert kernel_names(read(fill(tmp_path, files))) == ["k2"]


def test_log_folder_with_folders_of_runs_reads_the_newest(tmp_path):
    files = {"a/host.1700000000000.pt.trace.json": alone("old"), "b/host.1700000009000.pt.trace.json": alone("new")}
    trace = read(fill(tmp_path, files))
    assert kernel_names(trace) == ["new"]
    assert kernel_names(read(tmp_path, run="a/1700000000000")) == ["old"]


def test_run_that_is_not_there_is_answered_with_those_that_are(tmp_path):
    fill(tmp_path, {"host.1700000000000.pt.trace.json": alone("k")})
    with pytest.raises(UsageError, match=r"There is no run 'x'\. Known: 1700000000000"):
        read(tmp_path, run="x")


@pytest.mark.parametrize("other", ["manifest.json", "host.xplane.pb", "report.sqlite"])
def test_folder_of_another_format_is_left_to_its_reader(tmp_path, other):
    fill(tmp_path, {"host.1700000000000.pt.trace.json": alone("k"), other: b"x"})
    assert KinetoReader().sniff(b"", tmp_path) == Match.NO


def test_folder_without_traces_is_not_ours(tmp_path):
    fill(tmp_path, {"settings.json": b"{}", "rows.json": b"[1, 2]", "broken.json.gz": b"", "notes.txt": b"x"})
    assert KinetoReader().sniff(b"", tmp_path) == Match.NO
    with pytest.raises(UnknownFormatError, match="holds no trace"):
        list(KinetoReader().read(tmp_path, ReadRequest()))


# Files


def sniffed(data: bytes, path: Path | None = None) -> Match:
    return KinetoReader().sniff(data[:HEAD_BYTES], path or Path("trace.json"))


CHROME = {"ph": "X", "name": "task", "pid": 1, "tid": 2, "ts": 0, "dur": 10}
TENSORFLOW = {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/device:GPU:0"}}


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (k.trace([k.op("a", 0, 1)]), Match.YES),
        (k.compressed(k.trace([k.op("a", 0, 1)])), Match.YES),
        (b"\xef\xbb\xbf \n" + k.trace([k.op("a", 0, 1)]), Match.YES),
        (k.bare([k.op("a", 0, 1, category="Operator")]), Match.YES),
        (k.bare([CHROME]), Match.MAYBE),
        (json.dumps({"traceEvents": [CHROME]}).encode(), Match.MAYBE),
        (json.dumps({"displayTimeUnit": "ns", "traceEvents": [TENSORFLOW]}).encode(), Match.NO),
        (b'{"a": 1}', Match.NO),
        (b"[1, 2, 3]", Match.NO),
        (b"\x1f\x8b broken", Match.NO),
        (b"SQLite format 3\0", Match.NO),
    ],
)
def test_traces_are_told_by_their_content(data, match):
    assert sniffed(data) == match


@pytest.mark.parametrize("pack", [bytes, k.compressed])
def test_long_list_of_devices_before_the_events_is_looked_through(tmp_path, pack):
    header = {"user": "x" * 100_000, "deviceProperties": [k.gpu(n) for n in range(100)]}
    file = tmp_path / "long.json"
    file.write_bytes(pack(k.trace([k.op("a", 0, 1)], header)))
    assert sniffed(file.read_bytes(), file) == Match.YES


def test_traces_of_tensorflow_and_of_pytorch_go_to_one_reader_each(tmp_path):
    events = [TENSORFLOW, {"ph": "X", "pid": 1, "tid": 2, "name": "x", "ts": 0, "dur": 1}]
    theirs = json.dumps({"displayTimeUnit": "ns", "metadata": {}, "traceEvents": events}).encode()
    files = fill(tmp_path, {"tf.trace.json.gz": theirs, "torch.trace.json.gz": k.trace([k.op("a", 0, 1)])})
    assert identify(files / "tf.trace.json.gz").format == TensorFlowTraceReader.format
    assert identify(files / "torch.trace.json.gz").format == KinetoReader.format


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"a": 1}', "It is JSON, but no trace"),
        (b"[]", "It is JSON, but no trace"),
        (k.compressed(b'{"a": 1}'), "It is JSON, but no trace"),
        (b'{"schema": "1.1.1-chakra.0.0.4", "nodes": []}', "It is an execution trace of PyTorch"),
        (k.compressed(b"hello"), "It is a gzip file of something else"),
    ],
)
def test_json_that_is_no_trace_is_described(tmp_path, data, message):
    file = tmp_path / "x.json"
    file.write_bytes(data)
    with pytest.raises(UnknownFormatError, match=message):
        identify(file)


@given(st.binary(max_size=200))
def test_any_bytes_are_answered(data):
    for head in (data, b"{" + data, b'{"traceEvents": [' + data, gzip.compress(data)):
        assert sniffed(head) in set(Match)


def test_the_first_sentence_says_that_the_newest_of_several_recordings_was_read(tmp_path):
    cycles = fill(tmp_path, {f"host_11.170000000000{n}.pt.trace.json": alone(f"k{n}") for n in range(3)})
    words = "The folder has several recordings; this report is about the newest."
    assert api.report_on(cycles).verdict.sentence.endswith(words)
    assert words not in api.report_on(cycles / "host_11.1700000000001.pt.trace.json").verdict.sentence
