"""Outliers: only among similar values, and none if nearly all are equal."""

import pytest

from tests.archive.catalogues import catalogue_of
from traceviz.archive.population.outliers import outliers


def outliers_of(*rows):
    frame = outliers(catalogue_of(*rows))
    return list(frame.select("figure", "value", "among").iter_rows())


def of_a_job(values, name="step_median", job="nightly", **others):
    return [{"job": job, name: value, **others} for value in values]


def test_a_slow_run_of_a_job_stands_out():
    assert outliers_of(*of_a_job([100, 101, 102, 103, 104, 105, 106, 200])) == [("step_median", 200.0, "job and tags")]


def test_the_score_is_that_of_iglewicz_and_hoaglin():
    frame = outliers(catalogue_of(*of_a_job([100, 101, 102, 103, 104, 105, 106, 107, 200])))
    assert frame["score"].to_list() == pytest.approx([0.6745 * (200 - 104) / 2])
    assert frame["median"].to_list() == [104.0]
    assert frame["like"].to_list() == [9]


def test_of_7_nobody_says_which_one_is_the_exception():
    assert outliers_of(*of_a_job([100, 101, 102, 103, 104, 105, 900])) == []


def test_runs_that_are_all_but_equal_have_no_outlier():
    assert outliers_of(*of_a_job([1000] * 9 + [1010])) == []


def test_a_share_stands_out_among_zeros():
    assert outliers_of(*of_a_job([0.0] * 9 + [0.6], "input_share")) == [("input_share", 0.6, "job and tags")]
    assert outliers_of(*of_a_job([0.0] * 9 + [0.04], "input_share")) == []


def test_a_count_stands_out_among_zeros():
    rows = of_a_job([0] * 19 + [10**10], "peak_memory")
    frame = outliers(catalogue_of(*rows))
    assert frame["score"].to_list() == pytest.approx([10**10 / (1.2533 * 10**10 / 20)])


def test_times_of_different_jobs_are_not_compared():
    rows = [{"job": f"job{n}", "step_median": 100 if n else 10**9, "framework": "torch", "gpu": "A"} for n in range(12)]
    assert outliers_of(*rows) == []


def test_shares_are_compared_with_those_of_the_same_framework_and_gpu():
    rows = [{"input_share": 0.9 if n == 0 else 0.01, "framework": "torch", "gpu": "A"} for n in range(8)]
    others = [{"input_share": 0.9, "framework": "jax", "gpu": "A"} for n in range(8)]
    assert outliers_of(*rows, *others) == [("input_share", 0.9, "framework, GPU")]


def test_a_framework_that_no_trace_states_is_the_same_on_the_same_gpu():
    rows = [{"input_share": 0.9 if n == 0 else 0.01, "gpu": "A"} for n in range(8)]
    assert outliers_of(*rows, *({"input_share": 0.9, "gpu": "B"} for n in range(8))) == [
        ("input_share", 0.9, "framework, GPU"),
    ]


def test_the_nearest_kin_come_first():
    near = of_a_job([100, 101, 102, 103, 104, 105, 106, 120])
    far = [{"input_share": 0.99 if n == 0 else 0.01, "framework": f"f{n}", "gpu": "A"} for n in range(8)]
    assert [among for _, _, among in outliers_of(*near, *far)] == ["job and tags", "all traces"]


def test_where_few_are_alike_shares_are_compared_with_all():
    rows = [{"input_share": 0.5 if n == 3 else 0.01, "framework": f"f{n}", "gpu": "A"} for n in range(8)]
    assert outliers_of(*rows) == [("input_share", 0.5, "all traces")]


def test_traces_of_other_tags_are_not_alike():
    fast = of_a_job([100, 101, 102, 103, 104, 105, 106, 107], tags=[("batch", "32")])
    slow = of_a_job([200, 201, 202, 203, 204, 205, 206, 207], tags=[("batch", "64")])
    assert outliers_of(*fast, *slow) == []


def test_the_furthest_is_first():
    assert [value for _, value, _ in outliers_of(*of_a_job([100, 101, 102, 103, 104, 105, 106, 107, 500, 300]))] == [
        500.0,
        300.0,
    ]


def test_what_was_not_measured_is_not_compared():
    assert outliers_of(*of_a_job([None] * 9 + [500])) == []
    assert outliers_of() == []
