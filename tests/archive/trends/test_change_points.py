"""Change points: found if they exist, rarely found if not, and the same ones each time."""

import numpy as np
import pytest

from traceviz.archive.trends.change_points import Search, change_points

QUICK = Search(permutations=199)


def starts(values, allowed=None, search=None):
    return [change.start for change in change_points(np.asarray(values, dtype=float), allowed, search)]


def test_a_step_is_found_where_it_is():
    assert starts([10, 11, 10, 12, 11, 20, 21, 20, 22, 21]) == [5]


def test_2_steps_are_found_in_order():
    generator = np.random.default_rng(0)
    levels = np.repeat([10.0, 20.0, 15.0], 12)
    assert starts(levels + generator.normal(0, 0.5, levels.size)) == [12, 24]


@pytest.mark.parametrize("count", [8, 10, 20])
def test_a_level_that_comes_and_goes_is_found(count):
    noise = np.random.default_rng(1).normal(0, 0.5, 3 * count)
    assert starts(np.repeat([120.0, 100.0, 120.0], count) + noise) == [count, 2 * count]
    assert starts(np.repeat([100.0, 150.0, 100.0], count) + noise) == [count, 2 * count]


def test_in_several_series_each_is_asked_for_more():
    """Bonferroni: of 10 series without a change, one has a change found no more often than of a single one."""
    search = Search().among(10)
    assert (search.level, search.fewest, Search().fewest) == (pytest.approx(0.005), 11, 8)
    assert search.permutations >= 20 / search.level - 1
    generator = np.random.default_rng(9)
    quick = Search(permutations=199).among(10)
    false = sum(bool(starts(generator.normal(size=14), search=quick)) for _ in range(200))
    assert false <= 4  # 1 expected, and 3 standard deviations


def test_values_that_are_all_equal_have_no_change():
    assert starts([5.0] * 40) == []


def test_1_outlier_is_no_change():
    values = [10.0, 10.2, 9.9, 10.1, 10.0, 9.8, 90.0, 10.1, 9.9, 10.0, 10.2, 9.7]
    assert starts(values) == []


@pytest.mark.parametrize(("count", "detected"), [(7, []), (8, [4])])
def test_7_values_are_too_few_and_8_are_enough(count, detected):
    assert starts([1, 2, 3, 4, 11, 12, 13, 14][8 - count :]) == detected


def test_a_change_needs_3_values_on_each_side():
    steady = [10, 11, 10, 12, 11, 10, 11, 12, 10, 11, 12, 10, 11, 10, 12, 11]
    assert 16 not in starts([*steady, 30, 31])
    assert starts([*steady, 30, 31, 32]) == [16]


def test_a_change_begins_only_where_it_may():
    values = [10, 11, 10, 12, 11, 20, 21, 20, 22, 21]
    allowed = np.zeros(10, dtype=bool)
    allowed[6] = True
    assert starts(values, allowed) == [6]
    assert starts(values, np.zeros(10, dtype=bool)) == []


def test_the_same_seed_finds_the_same():
    generator = np.random.default_rng(4)
    values = generator.lognormal(0, 0.05, 30)
    values[15:] *= 1.06
    assert change_points(values) == change_points(values)


def test_the_order_of_equal_scales_does_not_matter():
    values = np.array([10, 11, 10, 12, 11, 20, 21, 20, 22, 21.0])
    assert starts(values) == starts(values * 1e9) == starts(np.log(values))
    assert starts(values[::-1]) == [5]


@pytest.mark.parametrize("noise", ["normal", "heavy"])
@pytest.mark.parametrize("count", [12, 40])
def test_series_without_a_change_have_one_in_5_of_100_at_most(noise, count):
    generator = np.random.default_rng(7)
    draw = {"normal": lambda: generator.normal(size=count), "heavy": lambda: generator.standard_t(2, count)}[noise]
    false = sum(bool(starts(draw(), search=QUICK)) for _ in range(200))
    assert false <= 20  # 10 expected, and 3 standard deviations


def test_10_percent_within_5_percent_of_noise_are_found_with_10_runs_on_each_side():
    generator = np.random.default_rng(8)
    shift = np.repeat([1.0, 1.1], 10)
    detected = [starts(shift * generator.lognormal(0, 0.05, 20), search=QUICK) for _ in range(100)]
    assert sum(bool(one) for one in detected) >= 80
    assert sum(any(abs(start - 10) <= 2 for start in one) for one in detected) >= 70


def test_p_values_are_shares_of_random_orders():
    (change,) = change_points(np.repeat([1.0, 2.0], 10) + np.tile([0.0, 0.1], 10))
    assert change.p_value == pytest.approx(1 / 1000)
