"""Values in one line, and names that complete."""

from __future__ import annotations

import pytest

import traceviz
from tests.conftest import REPOSITORY
from traceviz.collectors.base import Problem
from traceviz.collectors.collect import Outcome
from traceviz.core.errors import UsageError
from traceviz.notebook.magics import Recorded
from traceviz.report import Column, Fact, Grid, Report, Section, Verdict
from traceviz.report.verdicts import VerdictCode

SAMPLE = REPOSITORY / "sample_traces/synthetic/input_bound.sqlite"


def report() -> Report:
    grid = Grid((Column("name", "Name"), Column("dur_ns", "Time", "ns")), (("a", 3), ("b", None)), title="All")
    empty = Section("words", "Words", ())
    return Report(
        (Fact("source", "trace", "x" * 500),),
        Verdict(VerdictCode.NONE, "It runs."),
        (Section("k", "K", (grid,)), empty),
    )


def test_a_report_is_one_line_of_bounded_length() -> None:
    assert repr(report()) == f"Report('{'x' * 100}', 2 sections, 0 findings)"


def test_the_package_lists_its_public_names_and_none_of_its_own_tools() -> None:
    names = [name for name in dir(traceviz) if not name.startswith("_")]
    assert set(names) == set(traceviz.__all__) - {"__version__"}
    assert {"analyze", "open", "Archive", "collect"} <= set(names)


def test_a_path_or_a_list_of_paths_is_analysed_as_its_tables_are() -> None:
    expected = traceviz.analyze(traceviz.open(SAMPLE), sections=["kernels"])
    for trace in (SAMPLE, str(SAMPLE), [SAMPLE]):
        assert traceviz.analyze(trace, sections=["kernels"]).rows("kernels") == expected.rows("kernels")
    assert len(expected.rows("kernels")) == 14


def test_what_is_no_trace_is_refused_with_what_would_be_one() -> None:
    with pytest.raises(UsageError, match="type int cannot be analysed"):
        traceviz.analyze(3)


def test_a_table_of_a_report_is_a_frame_in_base_units() -> None:
    assert report().to_polars("k").rows() == [("a", 3), ("b", None)]
    frame = report().to_pandas("k", title="All")
    assert frame["dur_ns"].sum() == 3
    assert frame.attrs["units"] == {"name": "text", "dur_ns": "ns"}


def test_every_table_of_a_report_becomes_a_frame() -> None:
    made = traceviz.analyze(SAMPLE)
    grids = [grid for section in made.sections for grid in made.grids(section.slug)]
    assert len(grids) > 20
    for grid in grids:
        frame = grid.to_polars()
        assert (frame.height, frame.width) == (len(grid.rows), len(grid.columns))


@pytest.mark.parametrize(
    ("slug", "title", "said"),
    [
        ("kernel", None, "no section 'kernel'"),
        ("words", None, "Section words has no table"),
        ("k", "None", "no table of section k 'None'"),
    ],
)
def test_a_table_that_is_not_there_is_named_with_those_that_are(slug: str, title: str | None, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        report().grid(slug, title)


def test_only_what_a_notebook_asks_for_is_drawn() -> None:
    value = report().section("k")
    assert set(value._repr_mimebundle_(include={"text/plain"})) == {"text/plain"}
    assert set(value._repr_mimebundle_(exclude={"text/html"})) == {"text/plain"}
    assert set(value._repr_mimebundle_()) == {"text/html", "text/plain"}


def test_what_collect_recorded_says_where_it_is_and_what_went_wrong(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = Outcome(
        tmp_path / "a run", 1, "failed", verdict=("It waits.",), problems=(Problem("x", "<b>No</b> samples.", "Try."),)
    )
    assert repr(outcome) == f"Outcome('{tmp_path / 'a run'}', failed, exit code 1)"
    assert outcome._repr_mimebundle_()["text/plain"].splitlines() == [
        "It waits.",
        "The program failed, exit code 1; the run is in 'a run'.",
        "<b>No</b> samples. Try.",
    ]
    assert "&lt;b&gt;No&lt;/b&gt; samples." in outcome._repr_html_()


def test_a_cell_without_a_report_says_where_its_recording_is(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    recorded = Recorded(tmp_path / "run", "finished", None, ("Nothing was recorded.",))
    said = ["Recorded into run: traceviz report run, or traceviz.analyze('run').", "Nothing was recorded."]
    assert recorded._repr_mimebundle_()["text/plain"].splitlines() == said
    assert recorded._repr_html_().startswith('<div class="tv-fragment">')
