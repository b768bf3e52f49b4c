"""Lanes of traces in Chrome's format that no known profiler wrote."""

import pytest

from tests.analyses.builders import trace
from traceviz.analyses.program.lanes import LanesAnalysis
from traceviz.analyses.run import analyze
from traceviz.report import Grid, Skipped

ANALYSIS = LanesAnalysis()
CHROME = {"producer": "Chrome trace format"}


def of(rows, **literals):
    """Return a trace of 1000 ns with events ``(lane, start, dur, name)``."""
    host_ops = [(start, dur, name, "annotation", {"thread_id": lane}) for lane, start, dur, name in rows]
    return trace(host_ops=host_ops, run=CHROME, span_ns=1_000, **literals)


def test_the_busiest_lane_is_named_with_its_largest_event_and_not_the_one_with_most_events():
    rows = [(0, i * 100, 10, "load weights") for i in range(10)] + [(1, 0, 800, "matmul tile"), (1, 800, 50, "relu")]
    (finding,) = ANALYSIS.judge(ANALYSIS.run(of(rows, threads=[(0, 0, "DMA"), (1, 0, "MAC unit")])))
    assert (
        finding.message
        == "The busiest lane, MAC unit, works in 85.0 % of the captured time, most of all in matmul tile (80.0 %). "
        "For 14.0 % of the captured time, no lane works."
    )
    assert finding.cost_ns == 0


@pytest.mark.parametrize(("dur", "codes"), [(199, []), (200, ["TV608"])])
def test_an_event_is_named_from_a_fifth_of_the_time_on(dur, codes):
    assert [finding.code for finding in ANALYSIS.judge(ANALYSIS.run(of([(0, 0, dur, "solve")])))] == codes


def test_processes_are_named_where_there_are_several():
    rows = [(0, 0, 10, "a"), (1, 0, 20, "b")]
    view = of(rows, processes=[(0, "HOST"), (1, "DEVICE")], threads=[(0, 0, "main"), (1, 1, None)])
    assert ANALYSIS.run(view).lanes["lane"].to_list() == ["DEVICE / thread 0", "HOST / main"]


def test_a_lane_is_busy_for_as_long_as_its_events_last_without_counting_any_twice():
    result = ANALYSIS.run(of([(0, 0, 500, "outer"), (0, 100, 300, "inner"), (0, 200, 50, "outer")]))
    assert result.lanes["busy_ns"].to_list() == [500]
    assert result.events.select("name", "self_ns").rows() == [("inner", 250), ("outer", 250)]


def test_the_sentence_says_that_another_program_wrote_the_trace():
    report = analyze(of([(0, 0, 600, "solve"), (1, 0, 300, "wait")]).tables)
    assert report.verdict.sentence.startswith(
        "Events of an unknown program: 2 lanes in the format of Chrome's trace viewer. "
    )
    assert [finding.code for finding in report.findings] == ["TV608"]
    assert "cpu_steps" not in {section.slug for section in report.sections}


def test_events_with_names_of_their_own_are_not_all_listed():
    rows = [(0, i * 10, 5, f"task {i}") for i in range(2_000)] + [(0, 20_000, 10_000, "merge")]
    host_ops = [(start, dur, name, "annotation", {"thread_id": lane}) for lane, start, dur, name in rows]
    section = ANALYSIS.describe(ANALYSIS.run(trace(host_ops=host_ops, run=CHROME)))
    lanes, events = (block for block in section.blocks if isinstance(block, Grid))
    assert [row[1] for row in events.rows] == ["merge"]
    assert lanes.rows[0][1:3] == (2_001, 20_000)


def test_traces_of_profilers_have_no_lanes():
    assert isinstance(ANALYSIS.run(trace(host_ops=[(0, 10, "aten::mm", "op")])), Skipped)


WORKERS = [(number, 0, f"rank {number}, compute") for number in range(4)]


@pytest.mark.parametrize(
    ("busy", "longest"),
    [
        (
            (900, 400, 380, 390),
            "rank 0, compute works longest: in 90.0 % of the captured time; 3 other lanes of its kind",
        ),
        ((410, 400, 380, 390), "The busiest lane, rank 0, compute, works in 41.0 %"),
        ((900, 400, 10, 200), "The busiest lane, rank 0, compute, works in 90.0 %"),  # they have no norm
        ((900, 10, 10, 10), "The busiest lane, rank 0, compute, works in 90.0 %"),  # the others hardly work
    ],
)
def test_a_lane_that_works_longer_than_others_of_its_kind_is_named(busy, longest):
    rows = [(number, 0, dur, "backward-compute") for number, dur in enumerate(busy)]
    assert ANALYSIS.run(of(rows, threads=WORKERS)).sentence.startswith(longest)


def test_nothing_is_recorded_where_no_lane_works():
    result = ANALYSIS.run(of([(0, 0, 500, "a"), (1, 300, 400, "b")]))
    assert result.idle_ns == 300
    assert result.sentence.endswith("For 30.0 % of the captured time, no lane works.")
    assert "No lane" not in ANALYSIS.run(of([(0, 0, 500, "a"), (1, 300, 680, "b")])).sentence


def test_training_on_many_lanes_is_that_of_workers_and_on_one_that_of_a_program():
    job = of([(number, 0, 500, "backward") for number in range(3)])
    assert analyze(job.tables).fact("capture", "kind") == "events of an unknown program"
    assert analyze(of([(0, 0, 500, "backward"), (1, 0, 20, "log")]).tables).fact("capture", "kind") == "CPU only"
