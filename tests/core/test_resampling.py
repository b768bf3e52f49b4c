"""Blocks of steps: as long as neighbours are similar, and whole periods."""

from __future__ import annotations

import numpy as np
import pytest

from tests.compare.sides_of import steps, turns
from traceviz.core.resampling import (
    RESAMPLES,
    autocorrelation,
    block_length,
    mean_interval,
    period,
    quantile_interval,
    resample,
)

pytestmark = pytest.mark.process


@pytest.mark.parametrize(("alike", "least", "most"), [(0.0, 1, 3), (0.5, 6, 14), (0.9, 25, 75)])
def test_blocks_are_as_long_as_neighbours_are_alike(alike, least, most):
    times = steps(np.random.default_rng(3), 300, 1e7, 0.05, alike)
    assert least <= block_length(times) <= most


@pytest.mark.parametrize("count", [1, 3, 7, 50])
def test_equal_steps_have_no_blocks_and_no_period(count):
    times = np.full(count, 5)
    assert (block_length(times), period(times)) == (1, 1)


@pytest.mark.parametrize(
    ("every", "count"), [(2, 12), (3, 12), (4, 16), (5, 20), (10, 40), (2, 61), (3, 61), (4, 61), (10, 95), (12, 300)]
)
def test_blocks_hold_whole_periods(every, count):
    """One step in so many is long: the period is found from a dozen steps on, and not its multiples."""
    times = turns(np.random.default_rng(1), count, [3e7] + [1e7] * (every - 1), 0.05)
    assert period(times) == every
    assert block_length(times) in {every, 2 * every}


def test_a_smooth_wave_has_its_period():
    waves = 1e7 * (1 + 0.3 * np.sin(np.arange(120) * 2 * np.pi / 12))
    assert period(waves + steps(np.random.default_rng(2), 120, 1e6, 0.3)) == 12


def test_blocks_of_periods_that_drift_hold_several():
    drift = steps(np.random.default_rng(4), 150, 1e7, 0.3, 0.9).repeat(2)
    times = np.rint(drift * np.tile([1, 5], 150)).astype(np.int64)
    assert period(times) == 2
    assert 30 <= block_length(times) <= 75
    assert block_length(times) % 2 == 0


@pytest.mark.parametrize(("alike", "most"), [(0.0, 4), (0.5, 4), (0.8, 2), (0.99, 2), (-0.5, 40)])
def test_steps_without_a_period_rarely_seem_to_have_one(alike, most):
    generator = np.random.default_rng(5)
    found = sum(period(steps(generator, count, 1e7, 0.05, alike)) > 1 for count in (12, 20, 30, 58, 100) * 40)
    assert found <= most


def test_a_period_needs_to_come_four_times():
    assert [period(np.tile([1, 9, 1], times)) for times in (3, 4)] == [1, 3]


def test_steps_a_period_apart_are_alike_and_those_half_of_it_apart_are_not():
    """By hand, of 1, 3, 1, 3: deviations are 1 and their products 3 of 4 pairs next to each other, 2 two apart."""
    assert autocorrelation(np.tile([1, 3], 2), 2) == pytest.approx([1, -1, 1])


def test_resamples_are_means_of_runs_of_neighbours():
    times = steps(np.random.default_rng(3), 300, 1e7, 0.05, 0.5)
    length = block_length(times)
    drawn = resample(np.stack([times, np.arange(300)], axis=1), np.random.default_rng(0))
    blocks = round(300 / length)
    assert (drawn.means.shape, drawn.freedom) == ((RESAMPLES, 2), blocks - 1)
    assert drawn.seen.tolist() == [times.mean(), 149.5]
    # every block of places 0 to 299 adds up to its first place times its length and the same remainder, or wraps around
    assert drawn.means[:, 1].mean() == pytest.approx(149.5, rel=0.01)
    assert drawn.scale == pytest.approx((blocks / (blocks - 1) * blocks * length / 300) ** 0.5)


def test_resampled_whole_periods_all_have_the_same_mean():
    drawn = resample(np.tile([[8], [232]], (30, 1)), np.random.default_rng(0))
    assert np.unique(drawn.means).tolist() == [120]
    assert drawn.freedom == 29
    assert not drawn.deviations().any()
    assert not drawn.deviations_of_logarithms().any()


def test_a_wide_table_is_resampled_in_parts_with_the_same_result(monkeypatch):
    table = np.random.default_rng(3).integers(1_000, 2_000, (500, 12))
    whole = resample(table, np.random.default_rng(0))
    monkeypatch.setattr("traceviz.core.resampling._CELLS", 500 * 12 * 7)
    parts = resample(table, np.random.default_rng(0))
    assert whole.means.shape == (RESAMPLES, 12)
    assert np.array_equal(whole.means, parts.means)


@pytest.mark.parametrize(
    ("count", "share", "interval"),
    [(5, 0.5, None), (6, 0.5, (1, 6)), (10, 0.5, (2, 9)), (71, 0.95, None), (72, 0.95, (64, 72)), (0, 0.5, None)],
)
def test_an_interval_of_a_quantile_lies_between_ranks_of_the_binomial_distribution(count, share, interval):
    orders = (np.random.default_rng(seed).permutation(np.arange(1, count + 1)) for seed in range(50))
    times = next(order for order in orders if not count or block_length(order) == 1)
    assert quantile_interval(times, share) == interval


def test_an_interval_of_the_mean_holds_it_and_is_wider_for_steps_that_are_alike():
    generator = np.random.default_rng(4)
    apart = 100 + generator.normal(0, 5, 200)
    alike = 100 + np.convolve(generator.normal(0, 5, 209), np.ones(10) / 10**0.5, "valid")
    widths = []
    for times in (apart, alike):
        low, high = mean_interval(times)
        assert low < times.mean() < high
        widths.append(high - low)
    assert 1.0 < widths[0] < 2.0
    assert widths[1] > 2 * widths[0]


def test_seven_steps_have_no_interval_of_their_mean():
    assert mean_interval(np.arange(1, 8)) is None
