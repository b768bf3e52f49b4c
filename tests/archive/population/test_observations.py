"""Observations: one for each run, in the order that was asked for."""

import pytest

from tests.archive.catalogues import DAY_NS, START_NS, catalogue_of, nightly
from traceviz.archive.population.observations import FIGURES, date, figure, natural, observations, tag_names, with_runs
from traceviz.core.errors import UsageError


def keys(rows, *args):
    return observations(rows, "step_median", *args)["key"].to_list()


def test_runs_are_in_the_order_of_their_dates():
    rows = catalogue_of(*reversed(nightly([1, 2, 3])))
    observed = observations(rows, "step_median")
    assert observed["value"].to_list() == [1.0, 2.0, 3.0]
    assert observed["key"].to_list() == ["2026-01-01", "2026-01-02", "2026-01-03"]


def test_2_runs_of_a_day_are_told_apart_by_the_hour():
    rows = catalogue_of(*nightly([1, 2]), {"step_median": 3, "recorded_ns": START_NS + 3_600_000_000_000})
    assert keys(rows) == ["2026-01-01 00:00", "2026-01-01 01:00", "2026-01-02 00:00"]


def test_tags_are_in_natural_order():
    rows = catalogue_of(*({"step_median": 1, "tags": [("version", f"v{n}")]} for n in (10, 9, 2)))
    assert keys(rows, "version") == ["v2", "v9", "v10"]


def test_runs_of_1_value_share_a_place():
    rows = catalogue_of(*({"step_median": n, "tags": [("version", "v1" if n < 3 else "v2")]} for n in range(5)))
    assert observations(rows, "step_median", "version")["place"].to_list() == [0, 0, 0, 1, 1]


def test_ranks_that_ran_together_are_1_run_with_the_mean_of_their_values():
    together = [
        {"job": "j", "rank": n, "step_median": 10 * n, "recorded_ns": START_NS + n, "span_ns": 100} for n in (1, 3)
    ]
    observed = observations(catalogue_of(*together), "step_median")
    assert observed.select("value", "traces", "rows").row(0) == (20.0, 2, 2)


def test_a_job_that_ran_again_is_another_run():
    again = [{"job": "j", "recorded_ns": START_NS + n * DAY_NS, "span_ns": 1000} for n in (0, 0, 1, 1, 2)]
    runs = with_runs(catalogue_of(*again))["run"]
    assert runs.to_list() == ["j 1", "j 1", "j 2", "j 2", "j 3"]


def test_traces_without_a_job_are_runs_of_their_own():
    assert with_runs(catalogue_of(*nightly([1, 1])))["run"].n_unique() == 2


def test_ranks_of_1_trace_are_1_run():
    rows = catalogue_of(*({"trace_id": "a", "rank": n, "step_median": n} for n in (2, 4)))
    observed = observations(rows.with_columns(recorded_ns=START_NS), "step_median")
    assert observed["value"].to_list() == [3.0]


def test_what_was_not_measured_is_left_out_and_so_is_what_cannot_be_asked():
    rows = catalogue_of(
        *nightly([1, 2]), {"recorded_ns": START_NS}, {"step_median": 4, "state": "removed", "recorded_ns": 1}
    )
    assert observations(rows, "step_median")["value"].to_list() == [1.0, 2.0]


def test_groups_are_told_apart():
    rows = catalogue_of(*nightly([1, 2], framework="torch"), *nightly([5], framework="jax"))
    assert observations(rows, "step_median", "date", "framework")["group"].to_list() == ["jax", "torch", "torch"]


def test_a_tag_that_is_called_date_can_be_meant():
    rows = catalogue_of({"step_median": 1, "tags": [("date", "monday")]})
    assert keys(rows, "tag:date") == ["monday"]


@pytest.mark.parametrize(
    ("options", "says"), [(("stepmedian",), "step_median"), (("step_median", "versio"), "version")]
)
def test_what_does_not_exist_is_an_error_with_what_may_be_meant(options, says):
    rows = catalogue_of({"step_median": 1, "tags": [("version", "1")]})
    with pytest.raises(UsageError, match=f"Did you mean '{says}'"):
        figure(*options) if len(options) == 1 else observations(rows, *options)


def test_tags_of_all_rows_are_known():
    assert tag_names(catalogue_of({"tags": [("b", "1"), ("a", "2")]}, {}, {"tags": [("b", "3")]})) == ["a", "b"]


def test_more_is_better_of_busy_devices_and_samples_per_second_alone():
    assert [figure_of_catalogue.name for figure_of_catalogue in FIGURES if figure_of_catalogue.better == "higher"] == [
        "device_busy",
        "samples_per_second",
    ]
    assert figure("step_median").better == "lower"
    assert figure("host_cpu").better == ""


def test_natural_order_takes_numbers_as_such():
    assert sorted(["v1.10", "v1.9", "v1", "a", "10", "9"], key=natural) == ["9", "10", "a", "v1", "v1.9", "v1.10"]


def test_dates_are_in_utc():
    assert date(START_NS) == "2026-01-01"
    assert date(None) is None
