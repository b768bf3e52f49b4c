"""The interval: calculated by hand if possible, and by how often it is right."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.compare.sides_of import steps, turns
from traceviz.compare.effect import effect, mean_differences
from traceviz.core import resampling

pytestmark = pytest.mark.process

PAIRS = 200
SLOW = pytest.mark.slow


def alarm_limit(pairs):
    """Return alarms among pairs of equals: one of twenty, and three standard deviations more."""
    return 0.05 * pairs + 3 * math.sqrt(pairs * 0.05 * 0.95)


def of(*values):
    return np.array(values, np.int64)


def test_the_effect_is_the_difference_of_the_means_with_the_medians_beside_it():
    measured = effect([of(10, 30, 20)], [of(10, 62, 20, 8)])
    assert (measured.base_ns, measured.new_ns, measured.difference_ns, measured.ratio, measured.speedup) == (
        20,
        25,
        5,
        0.25,
        0.8,
    )
    assert (measured.base_median_ns, measured.new_median_ns, measured.median_ratio) == (20, 15, -0.25)
    assert not measured.runs


def test_steps_that_take_turns_are_as_fast_as_their_mean_whatever_the_median_is():
    """Loaders that hand out two batches at once: as recorded, every other step waited for 232 ms."""
    steady, alternating = of(*[153, 155] * 29), of(*[8, 232] * 28, 9, 8)
    measured = effect([steady], [alternating])
    assert (measured.base_ns, measured.new_ns) == (154, pytest.approx((28 * 240 + 17) / 58))
    assert (measured.base_median_ns, measured.new_median_ns) == (154, 8.5)
    assert measured.interval == pytest.approx((measured.ratio, measured.ratio), abs=0.06)
    assert measured.high_ns < 0


def test_steps_without_spread_have_an_interval_without_width():
    measured = effect([of(*[100] * 9)], [of(*[80] * 9)])
    assert measured.interval == pytest.approx((-0.2, -0.2))


def test_the_same_seed_gives_the_same_interval_and_another_one_hardly_moves_it():
    generator = np.random.default_rng(1)
    base, new = steps(generator, 60, 1e7, 0.05), steps(generator, 60, 1e7, 0.05)
    first, again, other = (effect([base], [new], seed) for seed in (0, 0, 1))
    assert first == again
    width = first.high_ns - first.low_ns
    assert other.low_ns != first.low_ns
    assert abs(other.low_ns - first.low_ns) < width / 8


def test_runs_give_welchs_interval_of_the_ratio_by_hand():
    # means 100, 104 and 50, 52: both sides scatter equally, so 2 degrees of freedom, t(2) = 4.3027; the variance of
    # the logarithms is ln(1.04)² / 2 on each side, and that of both means ln(1.04)² / 2
    measured = effect([of(100, 100, 100), of(104)], [of(50), of(52, 52)])
    factor = math.exp(4.3027 * math.log(1.04) / math.sqrt(2))
    root = math.sqrt(1.04)
    assert (measured.base_ns, measured.new_ns, measured.runs) == (
        pytest.approx(100 * root),
        pytest.approx(50 * root),
        True,
    )
    assert measured.interval == pytest.approx((0.5 / factor - 1, 0.5 * factor - 1))
    assert measured.speedup_interval == pytest.approx((2 / factor, 2 * factor))


def test_one_run_against_several_borrows_their_spread():
    # one degree of freedom: t(1) = 12.7062, variance ln(1.04)² / 2 × (1/2 + 1/1)
    measured = effect([of(100), of(104)], [of(51)])
    ratio, factor = 51 / math.sqrt(100 * 104), math.exp(12.7062 * math.log(1.04) * math.sqrt(0.5 * 1.5))
    assert measured.interval == pytest.approx((ratio / factor - 1, ratio * factor - 1))


def test_many_runs_use_the_quantile_beyond_the_table():
    generator = np.random.default_rng(2)
    runs = [[of(round(generator.normal(1e6, 1e4))) for _ in range(30)] for _ in range(2)]
    measured = effect(*runs)
    logs = [np.log([run[0] for run in side]) for side in runs]
    error = math.sqrt((logs[0].var(ddof=1) + logs[1].var(ddof=1)) / 30)
    low, high = np.log1p(measured.interval)
    assert (high - low) / 2 / error == pytest.approx(2.0025, abs=1e-3)  # t(55) is 2.0040, t(58) is 2.0017


@pytest.mark.parametrize(("few", "many"), [(2, 6), (3, 9)])
def test_few_runs_that_scatter_ten_times_as_much_as_many_raise_few_alarms(few, many):
    """With the variance pooled, four of ten pairs of equals would be called different."""
    generator, alarms = np.random.default_rng(7), 0
    for _ in range(1000):
        sides = [
            [of(round(1e9 * math.exp(noise))) for noise in spread * generator.standard_normal(runs)]
            for runs, spread in ((few, 0.1), (many, 0.01))
        ]
        measured = effect(*sides)
        alarms += not measured.low_ns <= 0 <= measured.high_ns
    assert 10 < alarms < 130


@pytest.mark.parametrize("runs", [2, 4])
def test_runs_that_a_busy_machine_makes_slower_by_the_same_share_are_told_apart_as_stated(runs):
    """A base four times as long scatters four times as much; relative to its length, both scatter equally."""
    generator, alarms, gains = np.random.default_rng(8), 0, 0
    for _ in range(1000):
        base, equal, faster = (
            [of(round(median * math.exp(noise))) for noise in 0.15 * generator.standard_normal(runs)]
            for median in (4e7, 4e7, 1e7)
        )
        no_change, gain = effect(base, equal), effect(base, faster)
        alarms += not no_change.low_ns <= 0 <= no_change.high_ns
        gains += gain.high_ns < 0
    assert 5 < alarms <= 71  # three standard deviations above one of twenty
    assert gains > 900 if runs > 2 else gains > 600


def test_one_run_of_ten_on_a_busy_machine_does_not_make_the_others_faster():
    """The arithmetic mean of the base is 109, and the interval of its logarithm would be all below zero."""
    base, new = [of(10)] * 9 + [of(1000)], [of(time) for time in (16, 17) * 5]
    measured = effect(base, new)
    assert measured.base_ns == pytest.approx(10 * 100**0.1)  # 15.8
    assert measured.interval[0] < 0 < measured.interval[1]


def test_an_interval_never_tells_of_more_than_all_of_a_step():
    generator = np.random.default_rng(9)
    base, new = steps(generator, 20, 3.5e8, 0.5, 0.6), steps(generator, 20, 1e8, 0.9, 0.6)
    there, back = effect([base], [new]), effect([new], [base])
    assert -1 < there.interval[0] < there.interval[1] < 0
    # the sides exchanged, except for the chance of resampling
    assert back.speedup_interval == pytest.approx([1 / end for end in reversed(there.speedup_interval)], rel=0.2)


def test_a_recording_and_its_copies_do_not_differ_by_chance():
    times = steps(np.random.default_rng(10), 12, 1e7, 0.5)
    table = np.stack([times, times // 3, times - times // 3], axis=1)
    shuffled = np.random.default_rng(11).permutation(12)
    assert effect([times], [times[shuffled]]).interval == (0, 0)
    assert effect([times, times // 2], [times, times // 2]).interval == (0, 0)
    assert effect([times, times // 2], [times // 2, times]).interval == (0, 0)
    assert not mean_differences([table], [table[shuffled]]).any()
    other = effect([times], [times + np.eye(12, dtype=np.int64)[0]])  # a nanosecond longer in one of twelve steps
    assert other.low_ns < -1e5 < 1e5 < other.high_ns


def test_the_means_of_several_runs_are_told_apart_between_runs():
    # means 100, 104 and 90, 94 of 5 steps each: error of the difference is the square root of 4 + 4, t(2) = 4.3027
    sides = [[np.full((5, 1), mean, np.int64) for mean in means] for means in ((100, 104), (90, 94))]
    low, high = mean_differences(*sides)
    half = 4.3027 * math.sqrt(8)
    assert (low[0], high[0]) == pytest.approx((-10 - half, -10 + half))


def test_runs_of_other_lengths_raise_no_more_alarms_than_equal_ones():
    """A mean over all steps is nearly that of the longest of five runs, and scatters as one run does."""
    generator, alarms = np.random.default_rng(13), 0
    for _ in range(PAIRS):
        sides = [
            [np.full((count, 1), 1e6 * (1 + 0.05 * generator.standard_normal())) for count in (1000, 10, 10, 10, 10)]
            for _ in range(2)
        ]
        low, high = mean_differences(*sides)
        alarms += not low[0] <= 0 <= high[0]
    assert alarms <= 19  # with the interval of equal runs 62


def test_of_very_many_steps_some_are_drawn_and_their_scatter_is_scaled_to_all(monkeypatch):
    monkeypatch.setattr(resampling, "ENOUGH", 1_000)
    generator = np.random.default_rng(12)
    base, new = (np.rint(generator.normal(1e9, 1e7, 4_000)).astype(np.int64) for _ in range(2))
    assert resampling.resample(base.reshape(-1, 1), generator).freedom == 999
    measured = effect([base], [new])
    assert (measured.high_ns - measured.low_ns) / 2 == pytest.approx(1.96 * 1e7 * math.sqrt(2 / 4_000), rel=0.1)
    means = mean_differences([base.reshape(-1, 1)], [new.reshape(-1, 1)])
    assert (means[1, 0] - means[0, 0]) / 2 == pytest.approx(1.96 * 1e7 * math.sqrt(2 / 4_000), rel=0.1)


@pytest.mark.parametrize(
    ("count", "alike", "pairs"),
    [
        (30, 0.0, PAIRS // 2),
        pytest.param(30, 0.0, PAIRS, marks=SLOW),
        (100, 0.5, PAIRS // 4),
        pytest.param(100, 0.5, PAIRS, marks=SLOW),
        pytest.param(300, 0.8, PAIRS, marks=SLOW),
    ],
)
def test_pairs_without_a_difference_are_told_apart_in_one_of_twenty(count, alike, pairs):
    generator = np.random.default_rng(count)
    alarms = 0
    for _ in range(pairs):
        base, new = (steps(generator, count, 1e7, 0.05, alike) for _ in range(2))
        measured = effect([base], [new])
        alarms += not measured.low_ns <= 0 <= measured.high_ns
    assert alarms <= alarm_limit(pairs)


@pytest.mark.parametrize(
    ("medians", "count", "pairs"),
    [
        ((8e6, 2.32e8), 58, PAIRS // 4),
        pytest.param((8e6, 2.32e8), 12, PAIRS, marks=SLOW),
        pytest.param((8e6, 2.32e8), 58, 2 * PAIRS, marks=SLOW),
        pytest.param((1e7, 1e7, 1e7, 3e7), 59, PAIRS, marks=SLOW),
        pytest.param((*[1e7] * 9, 3e7), 100, PAIRS, marks=SLOW),
    ],
)
def test_steps_that_take_turns_are_told_apart_in_one_of_twenty_and_8_percent_of_them_are_found(medians, count, pairs):
    """Drawn one by one, they would have an interval of 30 % to either side, and nothing would be found."""
    generator = np.random.default_rng(count)
    alarms = hits = 0
    for _ in range(pairs):
        base, new = (turns(generator, count, medians, 0.05) for _ in range(2))
        equal, slower = effect([base], [new]), effect([base], [np.rint(new * 1.08)])
        alarms += not equal.low_ns <= 0 <= equal.high_ns
        hits += slower.low_ns > 0
    assert alarms <= alarm_limit(pairs)
    assert hits >= (0.75 if count > 20 else 0.5) * pairs


@pytest.mark.parametrize("pairs", [PAIRS // 2, pytest.param(2 * PAIRS, marks=SLOW)])
def test_a_dozen_steps_whose_neighbours_are_alike_raise_few_alarms(pairs):
    """Without what few steps hide of their correlation, every tenth of these pairs would be called different."""
    generator, alarms = np.random.default_rng(14), 0
    for _ in range(pairs):
        base, new = (steps(generator, 12, 1e7, 0.05, 0.5) for _ in range(2))
        measured = effect([base], [new])
        alarms += not measured.low_ns <= 0 <= measured.high_ns
    assert alarms <= 0.07 * pairs


@pytest.mark.parametrize(
    ("count", "alike", "pairs"),
    [
        (50, 0.0, PAIRS // 4),
        pytest.param(50, 0.0, PAIRS, marks=SLOW),
        pytest.param(100, 0.5, PAIRS, marks=SLOW),
    ],
)
def test_five_percent_more_among_five_percent_of_noise_are_found(count, alike, pairs):
    generator = np.random.default_rng(5)
    hits = 0
    for _ in range(pairs):
        base, new = (steps(generator, count, median, 0.05, alike) for median in (1e7, 1.05e7))
        hits += effect([base], [new]).low_ns > 0
    assert hits >= 0.85 * pairs
