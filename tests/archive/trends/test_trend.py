"""Trends: which changes count, how large they are, and for better or worse."""

import numpy as np
import pytest

from tests.archive.catalogues import catalogue_of, nightly
from traceviz.archive.population.observations import figure
from traceviz.archive.trends.trend import Direction, TrendOptions, shift, trend

GENERATOR = np.random.default_rng(11)
NOISE = 1 + np.round(GENERATOR.normal(0, 0.01, 24), 4)
STEADY = 2e8 * NOISE
SLOWER = STEADY * np.repeat([1.0, 1.1], 12)


def only(rows, metric="step_median", **options):
    (trajectory,) = trend(catalogue_of(*rows), metric, **options).groups
    return trajectory


def test_longer_steps_are_a_regression_with_an_interval_around_it():
    trajectory = only(nightly(SLOWER))
    (change,) = trajectory.changes
    assert (trajectory.direction, change.start) == (Direction.REGRESSION, 12)
    assert change.shift.low < 0.1 < change.shift.high
    assert change.shift.change == pytest.approx(0.1, abs=0.02)
    assert change.shift.high - change.shift.low < 0.04
    assert [start for start, _ in trajectory.levels] == [0, 12]


def test_shorter_steps_are_an_improvement():
    assert only(nightly(SLOWER[::-1])).direction is Direction.IMPROVEMENT


def test_nothing_changes_in_a_steady_series():
    trajectory = only(nightly(STEADY))
    assert (trajectory.direction, trajectory.changes) == (Direction.NO_CHANGE, ())
    assert 0.005 < trajectory.detectable < 0.03


def test_busier_devices_are_an_improvement_in_points():
    trajectory = only(nightly(np.repeat([0.5, 0.6], 12) + NOISE / 100, "device_busy"), "device_busy")
    assert trajectory.direction is Direction.IMPROVEMENT
    assert trajectory.last.shift.change == pytest.approx(0.1, abs=0.001)


def test_a_figure_without_a_better_only_changes_unless_it_is_said():
    rows = nightly(np.repeat([0.5, 0.6], 12) + NOISE / 100, "host_cpu")
    assert only(rows, "host_cpu").direction is Direction.CHANGE
    assert only(rows, "host_cpu", options=TrendOptions(better="lower")).direction is Direction.REGRESSION


def test_the_last_change_says_what_the_series_is():
    values = np.r_[STEADY, STEADY * 1.2, STEADY * 0.9]
    trajectory = only(nightly(values))
    assert [change.direction for change in trajectory.changes] == [Direction.REGRESSION, Direction.IMPROVEMENT]
    assert trajectory.direction is Direction.IMPROVEMENT


def levels(*values, runs=10):
    return np.repeat(values, runs) * 1e6 * (1 + 0.005 * np.random.default_rng(3).normal(size=len(values) * runs))


@pytest.mark.parametrize(
    ("values", "worse", "by"),
    [
        ((100, 150, 145), Direction.REGRESSION, 0.45),
        ((100, 104, 108, 112), Direction.REGRESSION, 0.12),
        ((150, 100, 104), Direction.REGRESSION, 0.04),
        ((100, 150, 100), Direction.IMPROVEMENT, None),
        ((150, 100), Direction.IMPROVEMENT, None),
    ],
)
def test_the_last_level_is_judged_against_the_best_before_it(values, worse, by):
    trajectory = only(nightly(levels(*values)))
    assert trajectory.direction is worse
    assert by is None or trajectory.loss.change == pytest.approx(by, abs=0.01)
    assert trajectory.is_worse_by(0.03) is (by is not None)
    assert not trajectory.is_worse_by(0.5)


def test_groups_share_the_chance_of_being_wrong():
    rows = [row for name in "abcdefghij" for row in nightly(SLOWER[:10], gpu=name)]
    (trajectory, *_) = trend(catalogue_of(*rows), "step_median", per="gpu").groups
    assert trajectory.direction is Direction.UNKNOWN
    assert trajectory.why == "10 runs of it, and 11 are needed to tell a change from chance in one of 10 groups"


def test_runs_of_several_programs_are_said_to_be():
    rows = [*nightly(STEADY, framework="JAX", gpu="A"), *nightly(STEADY, framework="PyTorch", gpu="A")]
    assert trend(catalogue_of(*rows), "step_median").mixed == (("framework", 2),)
    assert trend(catalogue_of(*rows), "step_median", per="framework").mixed == ()
    assert trend(catalogue_of(*rows), "step_median", by="framework").mixed == ()


@pytest.mark.parametrize(("least", "count"), [(0.05, 1), (0.2, 0)])
def test_changes_smaller_than_the_least_do_not_count(least, count):
    assert len(only(nightly(SLOWER), options=TrendOptions(min_effect=least)).changes) == count


@pytest.mark.parametrize(("limit", "is_worse"), [(0.05, True), (0.15, False)])
def test_a_regression_is_held_against_a_limit(limit, is_worse):
    assert only(nightly(SLOWER)).is_worse_by(limit) is is_worse


def test_an_improvement_breaks_no_limit():
    assert not only(nightly(SLOWER[::-1])).is_worse_by(0.0)


def test_7_runs_cannot_be_judged():
    trajectory = only(nightly(STEADY[:7]))
    assert trajectory.direction is Direction.UNKNOWN
    assert "7 runs of it, and 8 are needed" in trajectory.why


def test_runs_of_a_single_version_cannot_be_judged():
    rows = [{"step_median": int(value), "tags": [("v", "1")]} for value in STEADY]
    assert "nothing comes before or after" in only(rows, by="v").why


def test_the_worst_group_is_first():
    fine, slow = nightly(STEADY, framework="jax"), nightly(SLOWER, framework="torch")
    trajectory = trend(catalogue_of(*fine, *slow), "step_median", per="framework")
    assert [(one.group, one.direction.value) for one in trajectory.groups] == [
        ("torch", "regression"),
        ("jax", "no change"),
    ]


def test_rows_without_a_value_are_counted():
    assert trend(catalogue_of(*nightly(STEADY), {}, {}), "step_median").left_out == 2


def test_a_rise_from_zero_is_sure_and_has_no_ratio():
    trajectory = only(
        nightly(np.repeat([0, 3], 12) + (np.arange(24) % 3 == 0) * np.repeat([0, 1], 12), "findings_error"),
        "findings_error",
    )
    assert trajectory.direction is Direction.REGRESSION
    assert (trajectory.last.shift.change, trajectory.last.shift.low) == (None, None)
    assert trajectory.is_worse_by(0.5)


def test_times_differ_by_ratio_and_shares_by_points():
    before, after = np.array([0.1, 0.2, 0.3]), np.array([0.2, 0.3, 0.4])
    assert shift(before, after, figure("input_share")).change == pytest.approx(0.1)
    geometric = shift(before, after, figure("step_median"))
    assert geometric.change == pytest.approx((0.2 * 0.3 * 0.4 / (0.1 * 0.2 * 0.3)) ** (1 / 3) - 1)


def test_the_interval_is_welchs():
    before, after = np.array([1.0, 2.0, 3.0, 4.0]), np.array([3.0, 5.0, 4.0, 6.0])
    trajectory = shift(before, after, figure("input_share"))
    half = 2.4469 * np.sqrt(before.var(ddof=1) / 4 + after.var(ddof=1) / 4)  # equal variances: 6 degrees of freedom
    assert (trajectory.low, trajectory.high) == pytest.approx((2 - half, 2 + half), rel=1e-3)


@pytest.mark.slow
def test_1_series_in_20_without_a_change_is_called_one_at_most():
    generator = np.random.default_rng(12)
    runs = [nightly(2e8 * generator.lognormal(0, 0.05, 20), framework=str(group)) for group in range(60)]
    trajectory = trend(catalogue_of(*(row for one in runs for row in one)), "step_median", per="framework")
    assert sum(bool(one.changes) for one in trajectory.groups) <= 8
