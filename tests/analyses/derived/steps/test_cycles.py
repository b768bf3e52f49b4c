"""Cycles of names: the repeating unit, with any contents."""

import numpy as np
import pytest

from traceviz.analyses.derived.steps.cycles import find_cycle


def test_a_kernel_that_runs_twice_per_step_does_not_halve_the_step():
    sequence = [0, 1, 1, 2] * 10
    cycle = find_cycle(sequence, [5, 0, 0, 0] * 10)
    assert cycle is not None
    assert cycle.anchors.tolist() == list(range(0, 40, 4))
    assert cycle.likeness == 1.0


@pytest.mark.parametrize("numbering", [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]])
def test_how_names_are_numbered_makes_no_difference_where_nothing_else_decides(numbering):
    sequence = [numbering[name] for name in [0, 1, 2, 3] * 8]
    cycle = find_cycle(sequence, [0] * len(sequence))
    assert cycle is not None
    assert cycle.anchors.tolist() == list(range(0, 32, 4))


def test_layers_inside_steps_lose_against_the_steps():
    sequence = ([9] + [1, 2] * 12 + [8]) * 5
    cycle = find_cycle(sequence, [0] * len(sequence))
    assert cycle is not None
    assert np.diff(cycle.anchors).tolist() == [26] * 4
