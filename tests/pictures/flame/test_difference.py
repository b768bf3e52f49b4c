"""The difference of two flame graphs: by path, per step, with nodes that only one side has."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.pictures.flame.trees import checked, made, paths, times
from traceviz.pictures.flame import folded
from traceviz.pictures.flame.difference import difference, differences
from traceviz.pictures.flame.folding import OTHER, Bounds

INPUT, COMPUTE = ("input_wait", "input wait"), ("host_compute", "other host time")


def both(flame):
    """Return the base and new by path."""
    pairs = zip(flame.base.sum(axis=1).tolist(), flame.times.sum(axis=1).tolist(), strict=True)
    return dict(zip(paths(flame), pairs, strict=True))


def test_time_is_per_step_so_that_runs_of_different_length_compare():
    base = made([("train", 1000), ("train > load", 600), ("train > log", 100)], steps=10)
    new = made([("train", 1000), ("train > load", 200), ("train > eval", 200)], steps=20)
    found = difference(base, new)
    assert both(found) == {
        "train": (100, 50),
        "train > load": (60, 10),
        "train > log": (10, 0),
        "train > eval": (0, 10),
    }
    assert found.whole == "one step on average: 20 steady steps, and 10 steady steps of the base"
    assert found.steps == 1


def test_without_steps_on_a_side_the_sides_are_compared_as_they_are():
    found = difference(made([("train", 1000)], steps=10), made([("train", 70)]))
    assert (both(found), found.steps) == ({"train": (1000, 70)}, 0)


def test_a_name_in_another_place_is_another_node():
    base = made([("a", 10), ("a > f", 10), ("b", 5)])
    new = made([("a", 4), ("b", 11), ("b > f", 11)])
    assert both(difference(base, new)) == {"a": (10, 4), "a > f": (10, 0), "b": (5, 11), "b > f": (0, 11)}


def test_classes_of_both_sides_are_columns_in_their_order():
    base = made([("a", (7, 3))], classes=(INPUT, COMPUTE))
    new = made([("a", (2,))], classes=(COMPUTE,))
    found = difference(base, new)
    assert found.classes == (INPUT, COMPUTE)
    assert (found.base.tolist(), found.times.tolist()) == ([[7, 3]], [[0, 2]])


def test_nodes_that_are_small_on_both_sides_are_one():
    base = made([("a", 1000), ("b", 2), ("c", 1)])
    new = made([("a", 1000), ("b", 1), ("d", 3)])
    assert both(difference(base, new, Bounds(least=0.01))) == {"a": (1000, 1000), OTHER: (3, 4)}


def test_graphs_that_only_one_side_has_are_left_out():
    assert differences([made([("a", 1)])], []) == ()
    assert [flame.key for flame in differences([made([("a", 1)])], [made([("a", 2)])])] == ["operators-host"]


def test_folded_stacks_have_the_time_of_their_own():
    flame = made([("train", 100), ("train > load; all", 60), ("train > load; all > open\nfile", 60), ("idle", 0)])
    assert folded(flame) == "train 40\ntrain;load: all;open file 60\n"


def test_folded_stacks_of_one_class():
    flame = made([("a", (7, 3)), ("a > b", (0, 3))], classes=(INPUT, COMPUTE))
    assert (folded(flame, "input_wait"), folded(flame, "host_compute")) == ("a 7\n", "a;b 3\n")
    with pytest.raises(ValueError, match="is not in list"):
        folded(flame, "copy_h2d")


@st.composite
def sides(draw):
    """Return a small tree of two levels with whole numbers."""
    rows = []
    for outer in draw(st.lists(st.sampled_from("abc"), unique=True, min_size=1)):
        inner = {name: draw(st.integers(0, 50)) for name in draw(st.lists(st.sampled_from("xyz"), unique=True))}
        rows.append((outer, sum(inner.values()) + draw(st.integers(0, 50))))
        rows += [(f"{outer} > {name}", value) for name, value in inner.items()]
    return made(rows, steps=draw(st.integers(0, 4)))


@given(base=sides(), new=sides(), least=st.sampled_from([0.0, 0.1, 0.5]))
@settings(max_examples=150, deadline=None)
def test_no_time_is_lost_by_folding_or_division(base, new, least):
    found = difference(base, new, Bounds(least=least))
    assert found.times.shape == found.base.shape
    divisor = (base.steps, new.steps) if base.steps and new.steps else (1, 1)
    for side, steps, columns in ((base, divisor[0], found.base), (new, divisor[1], found.times)):
        tops = side.times[side.parents < 0].sum(axis=1)
        assert int(columns[found.parents < 0].sum()) == int(((tops + steps // 2) // steps).sum())
    assert (found.times >= 0).all()
    assert (found.base >= 0).all()


@given(side=sides())
@settings(max_examples=100, deadline=None)
def test_a_graph_does_not_differ_from_itself(side):
    found = checked(difference(side, side, Bounds(least=0.0))) if side.steps <= 1 else difference(side, side)
    assert np.array_equal(found.times, found.base)


@given(side=sides())
@settings(max_examples=100, deadline=None)
def test_folded_stacks_add_up_to_the_outermost_nodes(side):
    total = sum(int(line.rpartition(" ")[2]) for line in folded(side).splitlines())
    assert total == sum(value for path, value in times(side).items() if " > " not in path)
