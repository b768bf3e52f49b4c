"""The interval: by hand where that can be done, and by how often it is right."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.compare.sides_of import steps
from traceviz.compare.effect import block_length, effect, resampled

PAIRS = 200


def of(*values):
    return np.array(values, np.int64)


def test_the_effect_is_the_difference_of_the_medians():
    found = effect([of(10, 30, 20)], [of(50, 10, 20, 30)])
    assert (found.base_ns, found.new_ns, found.difference_ns, found.ratio, found.speedup) == (20, 25, 5, 0.25, 0.8)
    assert not found.runs


def test_steps_without_spread_have_an_interval_without_width():
    found = effect([of(*[100] * 9)], [of(*[80] * 9)])
    assert found.interval == (-0.2, -0.2)


def test_the_same_seed_gives_the_same_interval_and_another_one_hardly_moves_it():
    generator = np.random.default_rng(1)
    base, new = steps(generator, 60, 1e7, 0.05), steps(generator, 60, 1e7, 0.05)
    first, again, other = (effect([base], [new], seed) for seed in (0, 0, 1))
    assert first == again
    width = first.high_ns - first.low_ns
    assert other.low_ns != first.low_ns
    assert abs(other.low_ns - first.low_ns) < width / 8


def test_runs_give_students_interval_by_hand():
    # medians 100, 104 and 90, 94: means 102 and 92, pooled variance (4 + 4 + 4 + 4) / 2 = 8, t(2) = 4.3027
    found = effect([of(100, 100, 100), of(104)], [of(90), of(94, 94)])
    half = 4.3027 * math.sqrt(8 * (1 / 2 + 1 / 2))
    assert (found.base_ns, found.new_ns, found.runs) == (102, 92, True)
    assert (found.low_ns, found.high_ns) == pytest.approx((-10 - half, -10 + half))


def test_one_run_against_several_borrows_their_spread():
    # squares 8 about 102 with one degree of freedom: t(1) = 12.7062, variance 8 × (1/2 + 1/1)
    found = effect([of(100), of(104)], [of(92)])
    assert found.high_ns - found.low_ns == pytest.approx(2 * 12.7062 * math.sqrt(8 * 1.5))


def test_many_runs_use_the_quantile_beyond_the_table():
    generator = np.random.default_rng(2)
    runs = [[of(round(generator.normal(1e6, 1e4))) for _ in range(30)] for _ in range(2)]
    found = effect(*runs)
    medians = [np.array([run[0] for run in side], float) for side in runs]
    error = math.sqrt((medians[0].var(ddof=1) + medians[1].var(ddof=1)) / 30)
    assert (found.high_ns - found.low_ns) / 2 / error == pytest.approx(2.0017, abs=1e-4)  # t(58) of printed tables


@pytest.mark.parametrize(("alike", "least", "most"), [(0.0, 1, 1), (0.5, 6, 14), (0.9, 25, 75)])
def test_blocks_are_as_long_as_neighbours_are_alike(alike, least, most):
    times = steps(np.random.default_rng(3), 300, 1e7, 0.05, alike)
    assert least <= block_length(times) <= most


def test_equal_steps_have_no_blocks():
    assert block_length(of(*[5] * 50)) == 1


def test_resampling_draws_runs_of_neighbours_as_many_as_there_are_steps():
    times = steps(np.random.default_rng(3), 300, 1e7, 0.05, 0.5)
    length, drawn = block_length(times), np.concatenate(list(resampled(times, np.random.default_rng(0))))
    assert drawn.shape == (2000, 300)
    inside = np.arange(299) % length != length - 1  # not where the next block begins
    assert (np.diff(drawn, axis=1)[:, inside] % 300 == 1).all()
    assert np.bincount(drawn.ravel(), minlength=300).min() > 1500  # every step as often as any other: 2000


def test_a_wide_matrix_is_resampled_in_parts():
    times = steps(np.random.default_rng(3), 5_000, 1e7, 0.05)
    parts = [part.shape for part in resampled(times, np.random.default_rng(0), width=12)]
    assert (len(parts) > 1, sum(rows for rows, _ in parts), parts[0][1]) == (True, 2000, 5_000)


@pytest.mark.parametrize(("count", "alike"), [(30, 0.0), (100, 0.5), (300, 0.8)])
def test_pairs_without_a_difference_are_told_apart_in_one_of_twenty(count, alike):
    generator = np.random.default_rng(count)
    alarms = 0
    for _ in range(PAIRS):
        base, new = (steps(generator, count, 1e7, 0.05, alike) for _ in range(2))
        found = effect([base], [new])
        alarms += not found.low_ns <= 0 <= found.high_ns
    assert alarms <= 0.05 * PAIRS + 3 * math.sqrt(PAIRS * 0.05 * 0.95)  # 19 of 200: three standard deviations


def test_false_alarms_do_occur():
    """The interval is not right because it is endless: over ten of 800 pairs lie outside."""
    generator = np.random.default_rng(4)
    pairs = [effect([steps(generator, 100, 1e7, 0.05)], [steps(generator, 100, 1e7, 0.05)]) for _ in range(4 * PAIRS)]
    assert sum(not found.low_ns <= 0 <= found.high_ns for found in pairs) > 10


@pytest.mark.parametrize(("count", "alike", "power"), [(50, 0.0, 0.85), (100, 0.5, 0.85)])
def test_five_percent_more_among_five_percent_of_noise_are_found(count, alike, power):
    generator = np.random.default_rng(5)
    hits = 0
    for _ in range(PAIRS):
        base, new = (steps(generator, count, median, 0.05, alike) for median in (1e7, 1.05e7))
        hits += effect([base], [new]).low_ns > 0
    assert hits >= power * PAIRS


def test_runs_that_differ_by_themselves_raise_no_alarms():
    """Steps of a run agree to 1 %, runs to 5 %: from the steps of one run, nearly every pair differs."""
    generator, alarms = np.random.default_rng(6), {"all runs": 0, "one run": 0}

    def runs():
        medians = 1e7 * np.exp(0.05 * generator.standard_normal(4))
        return [steps(generator, 50, median, 0.01) for median in medians]

    for _ in range(PAIRS):
        base, new = runs(), runs()
        for name, found in (("all runs", effect(base, new)), ("one run", effect(base[:1], new[:1]))):
            alarms[name] += not found.low_ns <= 0 <= found.high_ns
    assert alarms["all runs"] <= 19
    assert alarms["one run"] > 150
