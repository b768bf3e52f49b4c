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
from traceviz.analyses.registry import PROPERTIES, SHARED, UNREAD, Entry, Shared, entries
from traceviz.report import Skipped

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
    named |= {key for text in sources for key in re.findall(r'pl\.col\("key"\) == "([^".]+)"', text)}  # no settings
    assert len(named) >= 6
    assert {*named, *SETTING_KEYS, *LINK_KEYS, RECORDED_STAGE} == PROPERTIES


def test_a_shared_result_may_fail_if_no_analysis_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = tables_of(SAMPLES / TRACES[0])
    alone = api.to_text(run.analyze(tables), "json")
    asked = []

    def fail(_: Shared, trace: object) -> None:
        asked.append(trace)
        raise ZeroDivisionError("7 / 0")

    monkeypatch.setattr(run, "LARGE_ROWS", 0)
    monkeypatch.setattr(run, "cores", lambda: 4)
    monkeypatch.setattr(Shared, "compute", fail)
    assert api.to_text(run.analyze(tables), "json") == alone
    assert len(asked) == len(SHARED)


@pytest.fixture
def order(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Starts and ends of work in two threads, by its name; ends are negative: ``-steps``."""
    noted: list[str] = []
    keys = {shared.home: key for key, shared in SHARED.items()}

    def outcome(trace: TraceView, entry: Entry) -> Skipped:
        noted.extend((entry.slug, f"-{entry.slug}"))
        return Skipped(entry.slug, "not run here")

    def compute(shared: Shared, trace: TraceView) -> None:
        noted.extend((keys[shared.home], f"-{keys[shared.home]}"))

    monkeypatch.setattr(run, "LARGE_ROWS", 0)
    monkeypatch.setattr(run, "cores", lambda: 2)
    monkeypatch.setattr(run, "_outcome", outcome)
    monkeypatch.setattr(Shared, "compute", compute)
    return noted


@pytest.mark.parametrize(
    "sections", [None, ("kernels", "gpu_efficiency", "host_waits"), ("host_waits", "device_use", "os_calls")]
)
def test_nothing_starts_before_what_it_waits_for(order: list[str], sections: tuple[str, ...] | None) -> None:
    run.analyze(tables_of(SAMPLES / TRACES[0]), sections=sections)
    chosen = {entry.slug: entry for entry in entries(sections)}
    assert {name for name in order if name in chosen} == set(chosen)
    before = [(name, key) for name, one in {**SHARED, **chosen}.items() if name in order for key in one.waits_for]
    assert len(before) >= 4
    assert all(order.index(f"-{key}") < order.index(name) for name, key in before)


def test_steps_come_first_and_causes_before_the_38_analyses_but_those_that_take_longer(order: list[str]) -> None:
    run.analyze(tables_of(SAMPLES / TRACES[0]))
    started = [name for name in order if not name.startswith("-")]
    assert started[0] == "training_steps"
    assert len(started) == len(SHARED) + len(entries())
    cost = {entry.slug: entry.cost for entry in entries()}
    early = [name for name in started[: started.index("causes")] if name in cost]
    late = [name for name in started[started.index("causes") :] if name in cost]
    assert len(early) <= 4
    assert min(cost[name] for name in early) >= 8
    assert late[-1] not in {"input_pipeline", "host_waits"}


def test_of_one_section_nothing_is_computed_before(order: list[str]) -> None:
    run.analyze(tables_of(SAMPLES / TRACES[0]), sections=["host_waits"])
    assert order == ["host_waits", "-host_waits"]


@pytest.mark.parametrize("key", SHARED)
def test_a_shared_result_is_kept_for_the_analyses_that_wait_for_it(key: str) -> None:
    trace = TraceView(tables_of(SAMPLES / TRACES[0]))
    SHARED[key].compute(trace)
    assert trace.kept._done
    assert any(key in one.waits_for for one in (*entries(), *SHARED.values()))
