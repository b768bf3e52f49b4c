"""Ends of runs that did not end by themselves, in the words of a cell."""

import pytest

from tests.compare.tables.studies import run
from traceviz.compare.compare import compare
from traceviz.compare.effect import Outcome
from traceviz.compare.report.document import document
from traceviz.compare.sides.basis import cell, counts, failure, sentence
from traceviz.compare.sides.by_tags import sides_by
from traceviz.compare.sides.sides import Side

CRASH = ("failed", "out of memory")


@pytest.mark.parametrize(
    ("ending", "words"),
    [
        (("failed", "out of memory"), "crashed: out of memory"),
        (("failed", ""), "crashed"),
        (("timed-out", "timed out after 60 s"), "timed out after 60 s"),
        (("timed-out", ""), "timed out"),
        (("failed", "exit code 1: ValueError"), "crashed: ValueError"),
        (("killed", "SIGKILL"), "killed (SIGKILL)"),
        (("killed", "signal 9 (SIGKILL)"), "killed (SIGKILL)"),
        (("killed", ""), "killed"),
        (("interrupted", ""), "interrupted"),
        (("finished", ""), ""),
        (("", ""), ""),
    ],
)
def test_1_ending_in_few_words(ending, words):
    assert failure(run(ending=ending)) == words


def test_the_ways_of_4_runs_are_counted_the_most_frequent_first():
    crash, kill = ("failed", "out of memory"), ("killed", "SIGKILL")
    side = Side("vgg", tuple(run(1, ending=ending) for ending in (kill, crash, crash, ("finished", ""))))
    assert counts(side) == "2 of 4 runs crashed: out of memory, 1 of 4 runs was killed (SIGKILL)"
    assert (cell(side), sentence(side)) == ("", "")
    stopped = Side("vgg", side.reports[:3])
    assert cell(stopped) == "crashed: out of memory; killed (SIGKILL)"
    assert sentence(Side("vgg", side.reports[:1])) == "vgg was killed (SIGKILL)"


def test_a_side_that_crashed_is_said_to_have_crashed_and_not_to_do_other_work():
    settings = ((8, ("finished", "")), (9, ("finished", "")), (0, CRASH))
    comparison = compare([Side(f"batch={n}", (run(n, batch=n, ending=how),)) for n, how in settings])
    crashed = comparison.pairs[1].judgement
    assert (crashed.outcome, crashed.why) == (Outcome.UNKNOWN, "batch=0 crashed: out of memory")
    verdicts = {row["side"]: row["verdict"] for row in document(comparison).rows("effect")}
    assert verdicts == {"batch=8": "base", "batch=9": "cannot judge", "batch=0": "crashed: out of memory"}


def test_the_smallest_side_is_no_base_where_it_crashed():
    runs = [run(0, batch=4, ending=CRASH), run(9, batch=8), run(9, batch=16)]
    sides, _ = sides_by([(str(number), report) for number, report in enumerate(runs)], ["batch"])
    assert [side.label for side in sides] == ["batch=8", "batch=4", "batch=16"]
    assert sides[0].why_base == "the smallest that did not fail"
