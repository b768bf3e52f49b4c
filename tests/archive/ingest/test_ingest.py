"""One trace: what is private goes, what is wrong is its own affair, and what is written is whole."""

from __future__ import annotations

import errno
import json
import threading
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from tests.archive.made_sources import INPUT_BOUND
from traceviz.analyses.run import analyze
from traceviz.archive.catalogue.segments import stored_rows
from traceviz.archive.ingest import ingest as ingesting
from traceviz.archive.ingest.ingest import (
    Ingested,
    IngestOptions,
    error_text,
    ingest,
    quarantine,
    report_on,
    within_query,
)
from traceviz.archive.sources.hashes import Item
from traceviz.archive.storage.layout import create, manifest_of, trace_parts
from traceviz.archive.storage.store import Store
from traceviz.core.errors import DamagedTraceError, MissingToolError, OutputError, UnknownFormatError
from traceviz.core.process.interrupts import Stopped
from traceviz.parsers.base import ReadRequest
from traceviz.parsers.registry import identify
from traceviz.trace.tables import TraceTables

SAMPLE = Path(__file__).parents[3] / "sample_traces" / "synthetic" / "input_bound.sqlite"


def test_a_function_is_called_once_and_may_ask_polars_for_a_sum_of_6() -> None:
    calls: list[int] = []

    def add_up() -> int:
        calls.append(threading.get_ident())
        return int(pl.DataFrame({"x": [1, 2, 3]}).select(pl.col("x").sum()).item())

    assert within_query(add_up) == 6
    assert calls == [threading.get_ident()]  # signals are raised in the main thread only


@pytest.mark.parametrize("error", [DamagedTraceError("What happened 7 times."), KeyError(7), Stopped(15)])
def test_an_error_is_raised_as_the_1_that_it_was(error: BaseException) -> None:
    def fail() -> int:
        raise error

    with pytest.raises(type(error)) as raised:
        within_query(fail)
    assert raised.value is error


def test_the_report_of_a_small_trace_is_that_of_1_thread() -> None:
    tables = TraceTables(dict(identify(SAMPLE).tables(SAMPLE, ReadRequest())))
    report = report_on(tables)
    assert report == analyze(tables)
    assert report.verdict is not None


OPTIONS = IngestOptions(now_ns=1)


@pytest.fixture
def store(tmp_path):
    store = Store.at(tmp_path / "archive")
    create(store)
    return store


def item_of(path):
    return Item(str(path), path.name)


def add(path, store, options=OPTIONS):
    return ingest(item_of(path), store, options)


@pytest.fixture
def private_run(tmp_path):
    """A recording of PyTorch's profiler that contains a user, a host, a path and an address, and tags."""
    events = [
        {"ph": "X", "cat": "cpu_op", "name": name, "pid": 7, "tid": 7, "ts": 10.0 * number, "dur": 5.0}
        for number, name in enumerate(["aten::mm", "load /home/adalovelace/data/faces.bin", "mail ada@example.org"])
    ]
    path = tmp_path / "build-host-7.pt.trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events, "traceName": "/home/adalovelace/x.json"}))
    return path


def raw_bytes(store, tmp_path):
    """Return every byte of an archive, with all columns of its tables as they read."""
    import pyarrow.parquet as pq

    files = [path for path in (tmp_path / "archive").rglob("*") if path.is_file()]
    tables = [str(pq.read_table(path).to_pydict()).encode() for path in files if path.suffix == ".parquet"]
    return b"".join([*(path.read_bytes() for path in files), *tables])


def test_what_is_private_is_nowhere_in_the_archive_unless_it_is_kept(store, tmp_path, private_run):
    ingested = add(private_run, store)
    assert ingested.outcome == "added"
    data = raw_bytes(store, tmp_path)
    for secret in (b"adalovelace", b"ada@example.org"):
        assert secret not in data
    assert b"aten::mm" in data
    assert sum(ingested.removed.values()) >= 2
    store.remove("traces")
    assert add(private_run, store, IngestOptions(keep_private=True)).removed == {}
    assert b"/home/adalovelace/data/faces.bin" in raw_bytes(store, tmp_path)


def test_what_is_private_in_the_error_of_a_trace_is_removed(store, tmp_path):
    path = tmp_path / "home" / "x.pt.trace.json"
    path.parent.mkdir()
    path.write_bytes(b'{"schemaVersion": 1, "traceEvents": [ {"ph": "X", ')
    (row,) = add(path, store).rows.to_pylist()
    assert row["state"] == "quarantined"
    assert str(tmp_path) not in row["error"]
    assert row["error"].startswith("damaged: x.pt.trace.json")


def test_a_trace_is_written_with_the_sums_of_its_files_and_is_known_afterwards(store, samples):
    first = add(samples / "synthetic" / INPUT_BOUND, store)
    (row,) = first.rows.to_pylist()
    manifest = manifest_of(store, "nsys", row["trace_id"])
    names = set(store.names(*trace_parts("nsys", row["trace_id"])))
    assert set(manifest["files"]) == names - {"manifest.json"}
    assert manifest["source_sha256"] == row["source_sha256"]
    assert row["trace_id"] == row["source_sha256"][:16]
    assert stored_rows(store, "nsys", row["trace_id"]) is not None
    second = add(samples / "synthetic" / INPUT_BOUND, store, IngestOptions(now_ns=99, job="other"))
    assert second.outcome == "known"
    assert second.rows == first.rows


def test_a_folder_of_traceviz_keeps_the_format_of_its_trace(store, samples, tmp_path):
    import traceviz

    folder = traceviz.convert(samples / "synthetic" / INPUT_BOUND, tmp_path / "converted")
    ingested = ingest(Item(str(folder), folder.name, "folder"), store, OPTIONS)
    assert ingested.rows["format"].to_pylist() == ["nsys"]


MORE_MEMORY = "Free some memory, or use a machine that has more."
CHECK = "Check that it is there, whole, and may be read."


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (UnknownFormatError("what", "why", "fix"), "unknown-format: what why fix"),
        (DamagedTraceError("what"), "damaged: what"),
        (MissingToolError("what"), "missing-tool: what"),
        (
            MemoryError(),
            f"out-of-memory: It cannot be read. It needs more memory than there is. {MORE_MEMORY}",
        ),
        (PermissionError(13, "Permission denied"), f"unreadable: It cannot be read. Permission denied. {CHECK}"),
        (KeyError("ts"), "defect: KeyError at an unknown place: 'ts'"),
    ],
)
def test_an_error_is_a_code_and_what_happened(error, text):
    assert error_text(error) == text


@pytest.mark.parametrize("error", [DamagedTraceError("cut"), MemoryError(), KeyError("x"), RecursionError("deep")])
def test_whatever_a_reader_raises_is_the_affair_of_that_trace(store, samples, monkeypatch, error):
    def fails(*_):
        raise error

    monkeypatch.setattr(ingesting, "_hold_tables", fails)
    ingested = add(samples / "synthetic" / INPUT_BOUND, store)
    assert (ingested.outcome, len(ingested.rows)) == ("quarantined", 1)
    assert store.names("traces", "format=nsys") == []
    assert store.names("work") == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_no_room_is_no_fault_of_the_trace(store, samples, monkeypatch, number):
    def fails(*_):
        raise OSError(number, "no room")

    monkeypatch.setattr(ingesting, "_hold_tables", fails)
    with pytest.raises(OutputError, match="no room to write a trace"):
        add(samples / "synthetic" / INPUT_BOUND, store)
    assert store.names("work") == []


def test_a_secret_that_would_stay_keeps_that_trace_out_and_nothing_is_left(store, samples, monkeypatch):
    def leaks(*_):
        raise OutputError("A secret of the source would have stayed in the output, in kernels.name.")

    monkeypatch.setattr(ingesting.scrub, "scrub_tables", leaks)
    ingested = add(samples / "synthetic" / INPUT_BOUND, store)
    assert ingested.outcome == "quarantined"
    assert "A secret of the source" in ingested.rows["error"][0].as_py()
    assert store.names("traces", "format=nsys") == []


def test_what_is_gone_before_it_is_read_is_refused(store, tmp_path):
    ingested = ingest(item_of(tmp_path / "gone.sqlite"), store, OPTIONS)
    assert ingested.outcome == "refused"
    assert ingested.refused.name == "gone.sqlite"
    assert len(ingested.rows) == 0


def test_a_trace_that_killed_its_reader_is_taken_down_without_reading_it(samples, monkeypatch):
    monkeypatch.setattr(ingesting, "_hold_tables", None)
    path = samples / "synthetic" / INPUT_BOUND
    ingested = quarantine((item_of(path), "worker-died: SIGSEGV"), OPTIONS)
    (row,) = ingested.rows.to_pylist()
    assert (ingested.outcome, row["error"], row["source"]) == ("quarantined", "worker-died: SIGSEGV", INPUT_BOUND)


def test_what_could_not_be_read_before_is_not_tried_again(store, tmp_path, monkeypatch):
    path = tmp_path / "x.sqlite"
    path.write_bytes(b"nothing")
    trace_id = add(path, store).rows["trace_id"][0].as_py()
    monkeypatch.setattr(ingesting, "identify", None)
    ingested = add(path, store, IngestOptions(quarantined=frozenset({trace_id})))
    assert ingested.outcome == "known-quarantined"
    assert isinstance(ingested, Ingested)


@pytest.mark.parametrize("keep_private", [False, True])
def test_tables_that_wait_on_disk_are_the_same_as_those_held_in_memory(samples, tmp_path, monkeypatch, keep_private):
    path = samples / "synthetic" / INPUT_BOUND
    options = replace(OPTIONS, keep_private=keep_private)
    files = []
    for most, name in ((ingesting.MOST_HELD, "held"), (0, "waiting")):
        monkeypatch.setattr(ingesting, "MOST_HELD", most)
        assert add(path, Store.at(tmp_path / name), options).outcome == "added"
        (folder,) = (tmp_path / name / "traces" / "format=nsys").iterdir()
        files.append({file.name: file.read_bytes() for file in folder.iterdir()})
    held, waiting = ((json.loads(one.pop("manifest.json")), one) for one in files)
    assert held == waiting
    assert held[0]["tables"]["notes"] == 0
    assert "notes.parquet" not in held[1]
    assert len(held[1]) == 14
