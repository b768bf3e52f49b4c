"""Parts of the times of all sides, and their own precision: for pictures that show sides next to each other."""

import pytest

from tests.compare.sections_of import parts, run, side
from tests.compare.sides_of import side as timed
from traceviz.compare.compare import compare
from traceviz.compare.report.document import document
from traceviz.report import CLASSES_OF_SIDES, PARTS_OF_SIDES


def steps(input_wait, host_compute, count=8):
    return run(count, input_wait=[input_wait] * count, host_compute=[host_compute] * count)


def grid_of(report, title):
    return next(grid for grid in report.grids("effect") if grid.title == title)


def rows_of(report, title=""):
    grid = grid_of(report, title)
    return [dict(zip([column.name for column in grid.columns], row, strict=True)) for row in grid.rows]


def test_classes_of_3_sides_are_means_per_step_and_machines_only_read_them():
    sides = side("a", steps(600, 400)), side("b", steps(0, 400), steps(200, 400)), side("c", run(8))
    report = document(compare(sides))
    assert grid_of(report, CLASSES_OF_SIDES).audience == "machine"
    assert grid_of(report, CLASSES_OF_SIDES).rows == (
        ("a", "input_wait", "input_wait", 600),
        ("a", "host_compute", "host_compute", 400),
        ("b", "input_wait", "input_wait", 100),
        ("b", "host_compute", "host_compute", 400),
        ("c", "input_wait", "input_wait", None),
        ("c", "host_compute", "host_compute", 1000),
    )


def test_parts_of_runs_are_those_of_the_sides_that_tell_them():
    sides = side("a", run(8, parts(imports=2, steps=8))), side("b", run(8))
    assert grid_of(document(compare(sides)), PARTS_OF_SIDES).rows == (
        ("a", "imports", "imports", 2),
        ("a", "steps", "steps", 8),
    )


def test_each_side_has_an_interval_of_its_own_and_one_of_its_speedup():
    sides = (timed(name, [most - place for place in range(8)]) for name, most in (("a", 1000), ("b", 500)))
    base, new = rows_of(document(compare(tuple(sides))))
    assert base["low_ns"] < base["mean_ns"] == 996.5 < base["high_ns"]
    assert base["high_ns"] - base["low_ns"] < 8
    assert new["speedup"] == pytest.approx(996.5 / 496.5)
    assert new["speedup_low"] < new["speedup"] < new["speedup_high"]
    assert base["speedup_low"] is None


def test_what_cannot_be_judged_has_no_speedup_to_be_exact_about():
    (_, new) = rows_of(document(compare((side("a", run(2)), side("b", run(2))))))
    assert (new["speedup"], new["speedup_low"], new["speedup_high"]) == (None, None, None)
