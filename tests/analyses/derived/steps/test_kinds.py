"""Distinguishing steps of two kinds from steps that merely scatter."""

import numpy as np
import pytest

from tests.analyses.builders import trace
from traceviz.analyses.derived.steps.kinds import TwoKinds, two_kinds
from traceviz.analyses.steps.steps import StepAnalysis
from traceviz.report import Prose


def texts(view):
    section = StepAnalysis().describe(StepAnalysis().run(view))
    return [block.text for block in section.blocks if isinstance(block, Prose)]


def test_steps_that_wait_every_other_time_are_two_kinds_whose_mean_is_said():
    ends = np.cumsum([8_000_000, 232_000_000] * 6 + [9_000_000])
    view = trace(nvtx=[(int(end), 7_000_000, f"batch {i}") for i, end in enumerate(ends)])
    (text,) = texts(view)
    assert text.startswith("Steps come in two kinds: 6 of about 8.00 ms and 6 of about 232 ms.")
    assert StepAnalysis().run(view).mean_ns == pytest.approx((6 * 232e6 + 5 * 8e6 + 9e6) / 12)


@pytest.mark.parametrize(
    ("durations", "kinds"),
    [
        ([10, 11, 12, 30, 31, 32], TwoKinds(3, 11.0, 3, 31.0)),
        ([10, 11, 12, 19, 20, 21], None),  # not twice as long
        ([10, 11, 12, 31, 32], None),  # two are no kind
        ([10] * 20 + [40] * 4, None),  # fewer than a fifth are outliers
        ([10] * 16 + [40] * 4, TwoKinds(16, 10.0, 4, 40.0)),
        ([10] * 8, None),
        ([5], None),
    ],
)
def test_each_kind_needs_3_steps_a_fifth_of_all_and_twice_the_time(durations, kinds):
    assert two_kinds(np.array(durations)) == kinds


@pytest.mark.parametrize("spread", [0.02, 0.3, 1.0])
def test_steps_that_scatter_around_one_duration_are_of_one_kind(spread):
    generator = np.random.default_rng(7)
    found = [two_kinds(np.rint(1e6 * np.exp(spread * generator.standard_normal(60)))) for _ in range(200)]
    assert found.count(None) == 200
