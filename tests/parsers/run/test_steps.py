"""Ranges of steps that the hooks started and that never arrived."""

import json

import pytest

from tests.analyses.builders import tables
from tests.parsers.run.folders import SECOND, run_folder
from traceviz.analyses.derived.steps.search import training_steps
from traceviz.analyses.derived.view import TraceView
from traceviz.api import open_trace
from traceviz.parsers.run.folder import complete_steps, name_unfinished


def ranges(*named, domain="traceviz", pid=12):
    """Return NVTX ranges of one process, each of 0.9 s, one a second."""
    rows = [
        (number * SECOND, 9 * SECOND // 10, name, {"domain": domain, "range_id": number})
        for number, name in enumerate(named)
    ]
    return tables(nvtx=rows, processes=[(0, "python", {"pid": pid})], threads=[(0, 0, "python", {"tid": pid})])


def names(trace, complete):
    table, count = name_unfinished(trace.arrow("nvtx"), trace.arrow("processes"), complete)
    assert table.schema.equals(trace.arrow("nvtx").schema)
    return table["name"].to_pylist(), count


STEPS = ("step 0", "step 1", "step 2")


@pytest.mark.parametrize(("complete", "unfinished"), [({12: 2}, ["step 2"]), ({12: 3}, []), ({13: 2}, []), ({}, [])])
def test_a_step_that_begins_after_the_last_of_2_complete_ones_is_unfinished(complete, unfinished):
    expected = ["unfinished step" if name in unfinished else name for name in STEPS]
    assert names(ranges(*STEPS), complete) == (expected, len(unfinished))


def test_a_step_that_begins_again_under_its_number_was_abandoned_at_the_end_of_an_epoch():
    renamed = names(ranges("step 0", "step 1", "data loading", "step 1", "step 2"), {})
    assert renamed == (["step 0", "unfinished step", "data loading", "step 1", "step 2"], 1)


def test_steps_of_a_second_loop_that_counts_from_0_again_are_steps():
    assert names(ranges(*STEPS, *STEPS), {12: 6}) == ([*STEPS, *STEPS], 0)


def test_ranges_of_the_program_are_its_own_affair():
    assert names(ranges("step 7", "step 7", domain="mine"), {12: 1}) == (["step 7", "step 7"], 0)


def status(folder, **stated):
    folder.mkdir(parents=True)
    (folder / "status.json").write_text(json.dumps(stated))


def test_of_61_ranges_of_60_steps_60_are_steps_and_a_note_says_so(tmp_path):
    folder = run_folder(tmp_path / "run", {"nsys": ranges(*(f"step {number}" for number in range(61)))})
    status(folder / "raw" / "nvtx" / "pid12", pid=12, state="saved", steps_recorded=60)
    trace = open_trace(folder)
    assert training_steps(TraceView(trace)).frame.height == 60
    (note,) = (note for note in trace.arrow("notes").to_pylist() if note["code"] == "unfinished-steps")
    assert (note["severity"], note["count"]) == ("info", 1)


def test_only_processes_that_ended_in_order_know_their_steps(tmp_path):
    nvtx = tmp_path / "raw" / "nvtx"
    status(nvtx / "pid1", pid=1, state="saved", steps_recorded=9)
    status(nvtx / "pid2", pid=2, state="recording", steps_recorded=8)
    status(nvtx / "pid3", pid="3", state="saved", steps_recorded=8)
    status(nvtx / "pid4", pid=4, state="saved", steps_recorded=None)
    (nvtx / "pid4" / "status.json").with_name("other.json").write_text("[")
    assert complete_steps(tmp_path) == {1: 9}
