"""Tables in files: they are read in pieces, results are released soon, and the report is the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.reports import tables_of
from traceviz.analyses.run import analyze
from traceviz.api import to_text
from traceviz.trace.tables import load, save

SAMPLES = Path(__file__).parents[2] / "sample_traces" / "synthetic"


@pytest.mark.parametrize(
    "name",
    [
        "healthy.sqlite",
        "pageable_copies_driver.sqlite",
        "two_ranks.sqlite",
        "torch_cuda_graphs.pt.trace.json.gz",
        "gpu_keras_input_bound.xplane.pb",
    ],
)
def test_a_report_of_tables_in_files_is_that_of_tables_in_memory(tmp_path, monkeypatch, name):
    tables = tables_of(SAMPLES / name)
    save(tables, tmp_path / "folder")
    in_memory = to_text(analyze(tables), "json")
    monkeypatch.setattr("traceviz.trace.tables.PIECE", 100)
    monkeypatch.setattr("traceviz.analyses.derived.view.LARGE_RESULT", 1)
    monkeypatch.setattr("traceviz.analyses.derived.frames._BLOCK", 7)
    assert to_text(analyze(load(tmp_path / "folder")), "json") == in_memory


def test_a_report_is_the_same_where_results_of_a_large_trace_are_let_go_of(monkeypatch):
    tables = tables_of(SAMPLES / "pageable_copies.sqlite")
    kept = to_text(analyze(tables), "json")
    monkeypatch.setattr("traceviz.analyses.derived.view.LARGE_TRACE", 1)
    monkeypatch.setattr("traceviz.analyses.derived.view.LARGE_SHARE", 0)
    monkeypatch.setattr("traceviz.analyses.run.LARGE_ROWS", 1)
    assert to_text(analyze(tables), "json") == kept
