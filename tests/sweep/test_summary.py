"""Text in the table at the end of a sweep, besides figures."""

from dataclasses import replace

from tests.compare.sides_of import report
from traceviz.compare.sides.measures import BUSY
from traceviz.compare.sides.sides import Side
from traceviz.report import Note, Severity
from traceviz.sweep.summary import busy_in_words

NOTE = Note(BUSY, Severity.WARNING, "Other programs used 1.9 of 2 cores.", None)


def side(label, *busy):
    """Return a side of runs, some of them on a busy machine."""
    return Side(label, tuple(replace(report([1, 1]), notes=(NOTE,) * one) for one in busy))


def test_a_busy_machine_is_reported_with_repeats_too():
    sides = (side("a=1", 1, 0, 1), side("a=2", 0, 0, 0), side("a=3", 0, 1, 0))
    assert busy_in_words(sides) == (
        "Other programs used the machine during 3 of 9 runs: a=1 (2), a=3. "
        "Times of these runs are longer than they would be alone."
    )


def test_a_quiet_machine_is_not_mentioned():
    assert busy_in_words((side("a=1", 0, 0), side("a=2", 0))) == ""
