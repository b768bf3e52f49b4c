"""Classes that make the difference of two sides, in figures that add up."""

import numpy as np
import pytest

from tests.compare.sides_of import report
from traceviz.compare.attribution import attribute
from traceviz.compare.report.document import classes_table
from traceviz.compare.sides.sides import Side


def side(label, *steps):
    """Return a run whose steps are ``(input_wait, host_compute)``."""
    waits, computes = zip(*steps, strict=True)
    durations = [wait + compute for wait, compute in steps]
    return Side(label, (report(durations, input_wait=waits, host_compute=computes),))


def test_mean_classes_add_up_to_the_mean_step_and_so_do_their_differences():
    # waits of 500, 501 and of 200, 201, 203 on average 500.5 and 604/3; computing 300 and 310
    base = side("base", *[(500, 300), (501, 300)] * 6)
    new = side("new", *[(200, 310), (201, 310), (203, 310)] * 4)
    found = attribute(base, new)
    assert (found.base_ns, found.new_ns, found.difference_ns) == (800, 511, -289)
    changes = {change.key: (change.base_ns, change.new_ns, change.difference_ns) for change in found.classes}
    assert changes == {"input_wait": (500, 201, -299), "host_compute": (300, 310, 10)}
    assert sum(change.difference_ns for change in found.classes) == found.difference_ns
    assert found.is_change
    wait, compute = found.classes
    assert (wait.is_certain, compute.is_certain) == (True, True)
    assert [found.share(change) for change in found.classes] == [pytest.approx(299 / 289), pytest.approx(-10 / 289)]


def test_a_difference_that_chance_makes_is_no_change_and_has_no_shares():
    generator = np.random.default_rng(7)
    base, new = (
        side(label, *[(int(wait), 300) for wait in generator.integers(400, 600, 20)]) for label in ("base", "new")
    )
    found = attribute(base, new)
    wait, compute = found.classes
    assert wait.low_ns < 0 < wait.high_ns
    assert (wait.is_certain, found.is_change) == (False, False)
    assert (compute.low_ns, compute.high_ns) == (0, 0)
    assert found.share(wait) is None


def test_3_steps_are_too_few_for_intervals():
    base, new = (side(label, *[(wait, 50)] * 3) for label, wait in (("base", 100), ("new", 500)))
    found = attribute(base, new)
    assert [(change.low_ns, change.high_ns, change.is_certain) for change in found.classes] == [(None, None, None)] * 2
    assert (found.difference_ns, found.is_change) == (400, False)


def test_amounts_that_may_fall_carry_their_sign_and_what_is_a_gain():
    table = classes_table(None, attribute(*(side(label, *[(100, 50)] * 9) for label in ("base", "new"))))
    signed = {column.name: column.better for column, _ in table if column.signed}
    assert signed == {"difference_ns": "lower", "low_ns": "lower", "high_ns": "lower"}
    assert len(table) == 10
