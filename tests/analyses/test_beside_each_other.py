"""Analyses in threads give the report that they give one after the other."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest

from tests.support.reports import tables_of
from traceviz import api
from traceviz.analyses import run
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.input.recorded_stages import RECORDED_STAGE
from traceviz.analyses.input.tfdata_settings import SETTING_KEYS
from traceviz.analyses.input.tfdata_tree import LINK_KEYS
from traceviz.analyses.registry import PROPERTIES, UNREAD, entries
from traceviz.trace.tables import TraceTables

SAMPLES = Path(__file__).resolve().parents[2] / "sample_traces"
TRACES = ("synthetic/input_bound.sqlite", "synthetic/two_ranks.sqlite")


@pytest.mark.parametrize("name", TRACES)
def test_the_report_is_the_same_in_1_thread_and_in_4(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = tables_of(SAMPLES / name)
    alone = api.to_text(run.analyze(tables), "json")
    monkeypatch.setattr(run, "LARGE_ROWS", 0)
    monkeypatch.setattr(run, "cores", lambda: 4)
    assert api.to_text(run.analyze(tables), "json") == alone


def test_an_analysis_that_fails_in_a_thread_fails_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = tables_of(SAMPLES / TRACES[0])

    def fail(*_: object) -> None:
        raise ZeroDivisionError("7 / 0")

    monkeypatch.setattr(run, "LARGE_ROWS", 0)
    monkeypatch.setattr(run, "cores", lambda: 4)
    monkeypatch.setattr("traceviz.analyses.launch.launch.LaunchAnalysis.run", fail)
    with pytest.raises(ZeroDivisionError, match="7 / 0"):
        run.analyze(tables)


def test_columns_that_no_analysis_reads_change_no_figure() -> None:
    tables = tables_of(SAMPLES / TRACES[0])
    without = {
        name: tables.arrow(name).drop_columns([c for c in columns if c in tables.arrow(name).column_names])
        for name, columns in UNREAD.items()
        if name in tables
    }
    assert "status" in tables.arrow("cuda_api").column_names
    assert api.to_text(run.analyze(tables.replace(without)), "json") == api.to_text(run.analyze(tables), "json")


@pytest.mark.parametrize(
    ("name", "unread"),
    [("synthetic/torch_input_bound_workers.pt.trace.json.gz", 1), ("synthetic/gpu_keras_input_bound.xplane.pb", 0)],
)
def test_properties_of_operations_that_no_analysis_reads_change_no_figure(name: str, unread: int) -> None:
    tables = tables_of(SAMPLES / name)
    keys = set(tables.arrow("op_args")["key"].to_pylist())
    assert len(keys - PROPERTIES) >= unread
    read = pl.from_arrow(tables.arrow("op_args")).filter(pl.col("key").cast(pl.String).is_in(list(PROPERTIES)))
    without = tables.replace({"op_args": read.to_arrow().cast(tables.arrow("op_args").schema)})
    assert api.to_text(run.analyze(without), "json") == api.to_text(run.analyze(tables), "json")


def test_every_property_that_an_analysis_names_is_among_those_that_are_read() -> None:
    sources = [path.read_text() for path in Path(run.__file__).parent.rglob("*.py")]
    named = {key for text in sources for key in re.findall(r'argument\(\s*trace,\s*"([^"]+)"', text)}
    named |= {key for text in sources for key in re.findall(r'pl\.col\("key"\) == "([^"]+)"', text)}
    assert len(named) >= 6
    assert {*named, *SETTING_KEYS, *LINK_KEYS, RECORDED_STAGE} == PROPERTIES


def test_what_is_computed_ahead_may_fail_if_no_analysis_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = tables_of(SAMPLES / TRACES[0])
    alone = api.to_text(run.analyze(tables), "json")
    asked = []

    def fail(trace: object) -> None:
        asked.append(trace)
        raise ZeroDivisionError("7 / 0")

    monkeypatch.setattr(run, "LARGE_ROWS", 0)
    monkeypatch.setattr(run, "cores", lambda: 4)
    monkeypatch.setattr(run, "_SHARED", (fail,))
    assert api.to_text(run.analyze(tables), "json") == alone
    assert len(asked) == 1


@pytest.mark.parametrize(("absent", "leader"), [((), "device_use"), (("kernels",), "host_waits")])
def test_causes_of_idle_time_are_sought_first_and_who_only_needs_them_comes_last(absent, leader) -> None:
    tables = tables_of(SAMPLES / TRACES[0])
    view = TraceView(TraceTables({name: tables.arrow(name) for name in tables if name not in absent}))
    chosen = entries()
    turns = [entry.slug for entry in run._turns(view, chosen)]
    assert sorted(turns) == sorted(entry.slug for entry in chosen)
    assert (turns[0], turns[-1]) == (leader, "host_time")
    assert turns.index("operators") < turns.index("steps") < turns.index("cpu_steps")
    alone = entries(["steps"])
    assert [entry.slug for entry in run._turns(view, alone)] == ["steps"]
