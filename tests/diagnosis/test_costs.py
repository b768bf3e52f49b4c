import pytest

from benchmarks.diagnosis.costs import GREATEST_OUTLIER, OUTLIERS, Costs


def test_costs_without_a_spread_are_their_means():
    costs = Costs(1, 0)

    assert [costs.draw("use", 1_000.4) for _ in range(3)] == [1_000] * 3
    assert costs.draw("use", 0) == 0


def test_draws_of_another_use_change_nothing_and_each_run_draws_the_same():
    first, second = Costs(1, 0.2), Costs(1, 0.2)
    alone = [first.draw("kernel", 1_000_000) for _ in range(50)]
    mixed = []
    for _ in range(50):
        second.draw("other", 1_000_000)
        mixed.append(second.draw("kernel", 1_000_000))

    assert mixed == alone
    assert [Costs(2, 0.2).draw("kernel", 1_000_000)] != alone[:1]
    assert [Costs(1, 0.2).draw("kernel", 2_000_000)] == [pytest.approx(2 * alone[0], abs=1)]


def test_a_small_share_of_draws_are_large_outliers():
    costs = Costs(3, 0.05)
    draws = [costs.draw("use", 1_000_000) / 1_000_000 for _ in range(20_000)]
    large = [draw for draw in draws if draw > 1.6]

    assert len(large) / len(draws) == pytest.approx(OUTLIERS, rel=0.15)
    # By the Pareto distribution, a part of 4 ** -1.5 = 1 / 8 is more than 4 times the least outlier.
    assert sum(draw > 8 for draw in large) / len(large) == pytest.approx(1 / 8, rel=0.25)
    assert max(large) < 1.3 * GREATEST_OUTLIER


def test_a_use_can_have_a_spread_and_a_share_of_outliers_of_its_own():
    costs = Costs(3, 0.25)
    draws = [costs.draw("kernel", 1_000_000, spread=0.01, outliers=0) for _ in range(500)]

    assert 950_000 < min(draws) < max(draws) < 1_050_000
