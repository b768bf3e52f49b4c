"""Stages of the input pipeline of two sides: what steps waited in each."""

from __future__ import annotations

import pytest

from tests.compare.changes.sections import input_section, times_by_name
from tests.compare.sections_of import run, side
from traceviz.compare.changes.events import Status
from traceviz.compare.changes.input_stages import compare_stages


def test_stages_are_told_by_what_steps_waited_in_each():
    slow = input_section(0.6, ("one process", "DataLoader", 1200), ("copy", "exposed", 20))
    fast = input_section(0.1, ("many processes", "DataLoader", 200), ("copy", "exposed", 40))
    base, new = (
        side(name, run(steps, stages, input_wait=[500] * steps, host_compute=[500] * steps))
        for name, steps, stages in (("base", 2, slow), ("new", 4, fast))
    )
    compared = compare_stages(base, new)
    assert times_by_name(compared.changes) == {
        "one process": (Status.GONE, 600, 0),
        "many processes": (Status.NEW, 0, 50),
        "copy": (Status.SAME, 10, 10),
    }
    assert (compared.base_share, compared.new_share) == (0.6, 0.1)


def test_a_side_without_steps_waits_for_nothing_per_step():
    slow = input_section(0.6, ("one process", "DataLoader", 1200))
    base, new = (
        side(name, run(steps, slow, input_wait=[500] * steps, host_compute=[500] * steps))
        for name, steps in (("base", 2), ("new", 0))
    )
    for pair, without in (((base, new), "new"), ((new, base), "new"), ((new, new), "new and new")):
        compared = compare_stages(*pair)
        assert compared.why_not == f"no steady steps in {without}, and so nothing per step"
        assert compared.changes == ()


@pytest.mark.parametrize(
    ("verdict", "classes"),
    [
        ("cannot judge", ("input_wait", "host_compute")),
        ("not judged", ("input_wait", "host_compute")),
        ("possibly input-bound", ("input_wait", "host_compute")),
        ("not input-bound", ("host_blocked", "host_compute")),  # its time is in these, but was not recorded
    ],
)
def test_a_wait_for_input_that_cannot_be_judged_is_not_none(verdict, classes):
    base = side("base", run(2, input_section(0.6), input_wait=[600] * 2, host_compute=[400] * 2))
    new = side("new", run(2, input_section(0.0, verdict=verdict), **{key: [500] * 2 for key in classes}))
    assert compare_stages(base, new).why_not == "the wait for input cannot be told in new"
