"""The section of a printed summary: two parts with their own 100 %, and what it does not claim."""

import pytest

from tests.analyses.builders import trace
from traceviz.analyses.capture.totals import TotalsAnalysis
from traceviz.analyses.run import analyze
from traceviz.report import Grid

ROWS = [
    ("kernel", "gemm", 3, 600),
    ("copy", "[CUDA memcpy HtoD]", 2, 200),
    ("memset", "[CUDA memset]", 1, 0),
    ("runtime", "cudaMalloc", 2, 90),
    ("driver", "cuInit", 1, 10),
]


def grids(rows):
    section = TotalsAnalysis().describe(TotalsAnalysis().run(trace(totals=rows, span_ns=0)))
    return {block.title: block for block in section.blocks if isinstance(block, Grid)}


def column(grid, name):
    place = [column.name for column in grid.columns].index(name)
    return [row[place] for row in grid.rows]


def test_device_and_api_have_each_their_own_hundred_percent():
    by_title = grids(ROWS)
    assert list(by_title) == ["GPU activities", "API calls"]
    assert column(by_title["GPU activities"], "share") == [0.75, 0.25, 0.0]
    assert column(by_title["API calls"], "share") == pytest.approx([0.9, 0.1])


def test_rows_are_in_order_of_their_totals_and_unknown_ones_last():
    by_title = grids([("kernel", "a", 1, 5), ("kernel", "b", 1), ("kernel", "c", 1, 9)])
    assert column(by_title["GPU activities"], "name") == ["c", "a", "b"]


def test_migrations_have_bytes_and_no_share():
    rows = [*ROWS, ("unified_memory", "Host To Device", 4, 40, {"bytes": 4096, "device_id": 0})]
    grid = grids(rows)["Unified memory"]
    assert (column(grid, "bytes"), column(grid, "total_ns")) == ([4096], [40])
    assert "share" not in {column.name for column in grid.columns}


def test_a_summary_without_times_has_no_share_and_no_division_by_zero():
    assert column(grids([("kernel", "gemm", 3, 0)])["GPU activities"], "share") == [None]


def test_the_verdict_says_that_there_are_no_events_and_who_is_largest():
    verdict = analyze(trace(totals=ROWS, span_ns=0).tables).verdict
    assert verdict.code == "cannot-judge"
    assert "gemm has 75.0 % of the time of GPU activities" in verdict.sentence
    assert "Mark the steps" not in verdict.sentence


def test_a_summary_is_never_said_to_have_taken_no_time_or_to_lack_steps():
    report = analyze(trace(totals=ROWS, span_ns=0).tables)
    assert next(fact.value for fact in report.run if fact.key == "span_ns") is None
    assert report.fact("capture", "span_ns") is None
    reasons = {skip.slug: skip.reason for skip in report.skipped}
    assert reasons["steps"] == "the file is a summary without events"


def test_totals_beside_events_leave_the_verdict_to_the_events():
    verdict = analyze(trace(totals=ROWS, kernels=[(0, 50, "gemm")]).tables).verdict
    assert "summary" not in verdict.sentence
