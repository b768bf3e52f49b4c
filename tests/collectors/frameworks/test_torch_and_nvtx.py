"""The torch and nvtx collectors without a profiler: naming marks, comparing counts, calls in the main thread."""

from __future__ import annotations

import gzip
import io
import json
import sqlite3
import threading
from contextlib import closing

import polars as pl
import pytest

from traceviz.collectors.base import Plan
from traceviz.collectors.frameworks.nvtx import NvtxCollector, arrived_ranges
from traceviz.collectors.frameworks.profilers import TorchCollector
from traceviz.collectors.inject.traceviz_inject.profilers import nvtx_client, torch


def plan(folder, *names: str) -> Plan:
    return Plan(folder, ("python", "train.py"), names)


def named(text: bytes, steps: list[int | None]) -> bytes:
    target = io.BytesIO()
    torch.copy_named(io.BytesIO(text), target, steps)
    return target.getvalue()


def test_marks_become_the_steps_that_were_completed():
    text = b'"traceviz mark 0"\n"traceviz mark 1"\n"traceviz mark 2"\n'
    assert named(text, [7, None, 8]) == b'"ProfilerStep#7"\n"no complete step"\n"ProfilerStep#8"\n'


def test_a_mark_across_two_pieces_is_named():
    padding = b"x" * (torch._PIECE - 9)
    assert named(padding + b"traceviz mark 11\n", [None] * 11 + [4]) == padding + b"ProfilerStep#4\n"


def test_a_function_for_the_main_thread_runs_there_and_its_error_comes_back():
    ran_in, raised = [], []

    def function():
        ran_in.append(threading.current_thread())
        raise KeyError("7")

    def ask():
        try:
            torch.in_main_thread(function, anyway=False)
        except KeyError as error:
            raised.append(error.args[0])

    asking = threading.Thread(target=ask)
    asking.start()
    while asking.is_alive():
        asking.join(0.01)
    assert (ran_in, raised) == ([threading.main_thread()], ["7"])


def test_a_trace_is_compressed_once_the_program_has_ended(tmp_path):
    own = plan(tmp_path, "torch").raw("torch") / "pid7"
    own.mkdir(parents=True)
    (own / "pid7.pt.trace.json").write_text('{"traceEvents": []}')
    (source,) = TorchCollector().harvest(plan(tmp_path, "torch")).sources
    assert source.name == "pid7.pt.trace.json.gz"
    assert [path.name for path in own.iterdir()] == [source.name]
    assert gzip.decompress(source.read_bytes()) == b'{"traceEvents": []}'


def test_a_trace_that_cannot_be_compressed_is_kept_as_it_is(tmp_path, monkeypatch):
    own = plan(tmp_path, "torch").raw("torch") / "pid7"
    own.mkdir(parents=True)
    (own / "pid7.pt.trace.json").write_text("{}")

    def full(*_, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(gzip, "open", full)
    (source,) = TorchCollector().harvest(plan(tmp_path, "torch")).sources
    assert [source, source.read_text()] == [own / "pid7.pt.trace.json", "{}"]


@pytest.mark.parametrize(("inherited", "level"), [({}, "99"), ({"KINETO_LOG_LEVEL": "1"}, None)])
def test_the_profiler_is_quiet_unless_the_user_chose(tmp_path, inherited, level):
    assert TorchCollector().environment(plan(tmp_path, "torch"), inherited).get("KINETO_LOG_LEVEL") == level


def test_no_tool_is_said_and_not_guessed():
    with pytest.raises(nvtx_client.NvtxError, match="no profiler records NVTX"):
        nvtx_client.open_domain("traceviz", {})
    with pytest.raises(nvtx_client.NvtxError, match="cannot be used"):
        nvtx_client.open_domain("traceviz", {nvtx_client.INJECTION: "/nowhere/lib.so"})


def status(folder, pid: int, **facts) -> None:
    own = folder / "raw/nvtx" / f"pid{pid}"
    own.mkdir(parents=True)
    (own / "status.json").write_text(json.dumps({"pid": pid, **facts}))


def export(folder, ranges: int, domain: str = "traceviz") -> None:
    """An export with a domain of its own that has ``ranges`` push/pop ranges, and two more without a domain."""
    path = folder / "raw/nsys/report.sqlite"
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE StringIds (id INTEGER, value TEXT)")
        database.execute("CREATE TABLE NVTX_EVENTS (eventType INTEGER, domainId INTEGER, text TEXT, textId INTEGER)")
        database.execute("INSERT INTO StringIds VALUES (9, ?)", (domain,))
        rows = [(75, 3, None, 9), *[(59, 3, "step", None)] * ranges, (59, 0, "own", None), (60, 0, "own", None)]
        database.executemany("INSERT INTO NVTX_EVENTS VALUES (?, ?, ?, ?)", rows)


def test_ranges_that_arrived_are_counted_in_our_domain_only(tmp_path):
    export(tmp_path, 40)
    status(
        tmp_path, 12, state="saved", emitted=40, ranges={"step": 40}, program_nvtx="0.2.13", program_nvtx_mended=True
    )
    harvest = NvtxCollector().harvest(plan(tmp_path, "nvtx"))
    assert harvest.problems == ()
    assert (harvest.facts["emitted"], harvest.facts["arrived"], harvest.facts["ranges"]) == (40, 40, {"step": 40})
    assert (harvest.facts["program_nvtx"], harvest.facts["program_nvtx_mended"]) == ("0.2.13", True)


def test_ranges_of_which_none_arrived_are_a_problem(tmp_path):
    export(tmp_path, 5, domain="other")
    status(tmp_path, 12, state="saved", emitted=40)
    status(tmp_path, 13, state="saved", emitted=2)
    (problem,) = NvtxCollector().harvest(plan(tmp_path, "nvtx")).problems
    assert problem.code == "nvtx-lost"
    assert "42 NVTX ranges" in problem.message


def test_a_parquet_export_is_asked_too(tmp_path):
    events = {"eventType": [75, 59, 60, 59], "domainId": [1, 1, 1, 2], "text": [None] * 4, "textId": [5, 6, 6, 6]}
    pl.DataFrame(events, schema_overrides={"text": pl.String}).write_parquet(tmp_path / "NVTX_EVENTS.parquet")
    pl.DataFrame({"id": [5, 6], "value": ["traceviz", "step"]}).write_parquet(tmp_path / "StringIds.parquet")
    assert arrived_ranges(tmp_path) == 2


def test_a_report_that_cannot_be_asked_is_neither_a_loss_nor_none(tmp_path):
    status(tmp_path, 12, state="saved", emitted=40)
    (tmp_path / "raw/nsys").mkdir(parents=True)
    (tmp_path / "raw/nsys/report.sqlite").write_bytes(b"no database at all, but long enough to look like one" * 40)
    harvest = NvtxCollector().harvest(plan(tmp_path, "nvtx"))
    assert (harvest.facts["arrived"], harvest.problems) == (None, ())
