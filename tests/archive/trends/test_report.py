"""The document of a trend: what people read, what programs join on, and what a gate makes of it."""

import numpy as np
import pytest

from tests.archive.catalogues import catalogue_of, nightly
from traceviz import api
from traceviz.archive.trends.report import document, gate
from traceviz.archive.trends.trend import trend
from traceviz.gates.gates import Outcome, exit_code
from traceviz.report import TREND, Grid, Prose, Series

NOISE = 1 + np.tile([0.0, 0.01, -0.01, 0.005], 6)
SLOWER = 2e8 * NOISE * np.repeat([1.0, 1.1], 12)


def sentence_of(rows, metric="step_median", **options):
    return document(trend(catalogue_of(*rows), metric, **options))


def test_the_verdict_says_what_when_and_how_much():
    report = sentence_of(nightly(SLOWER))
    assert (report.schema, report.verdict.code) == (TREND, "regression")
    assert report.verdict.sentence.startswith(
        "Regression: step_median rose from 2026-01-13 on, 200 ms → 220 ms (+10.0 %, 95 % interval +9."
    )


def test_shares_change_by_points():
    shares = np.repeat([0.1, 0.3], 12) + NOISE / 100
    assert (
        "11.0 % → 31.0 % (+20.0 points, 95 % interval +"
        in sentence_of(nightly(shares, "input_share"), "input_share").verdict.sentence
    )


def test_a_steady_series_says_what_would_be_seen():
    report = sentence_of(nightly(2e8 * NOISE))
    assert report.verdict.code == "no-change"
    assert "No change of step_median in 24 runs; a lasting one of 1." in report.verdict.sentence


def test_too_few_runs_cannot_be_judged():
    report = sentence_of(nightly(SLOWER[:3]))
    assert report.verdict.code == "cannot-judge"
    assert report.verdict.sentence == (
        "Cannot judge step_median: 3 runs of it, and 8 are needed to tell a change from chance."
    )


def test_a_figure_that_nobody_measured_cannot_be_judged():
    assert sentence_of([{}]).verdict.sentence == "Cannot judge: no trace has both step_median and a date."


def test_changes_have_stable_keys():
    report = sentence_of(nightly(SLOWER))
    (changes, runs) = (block for block in report.section("trend").blocks if isinstance(block, Grid))
    row = dict(zip((column.name for column in changes.columns), changes.rows[0], strict=True))
    assert (row["at"], row["runs_before"], row["runs_after"], row["verdict"]) == ("2026-01-13", 12, 12, "regression")
    assert row["low"] < row["change"] < row["high"]
    assert row["trace_id"] == f"{12:016x}"
    assert len(runs.rows) == 24


def test_csv_has_every_run_and_people_see_none_of_them():
    report = sentence_of(nightly(SLOWER))
    assert sum(line.startswith(",2026-01-") for line in api.to_text(report, "csv").splitlines()) == 25
    assert "2026-01-20" not in api.to_text(report, "terminal", api.RenderOptions(80))
    assert "2026-01-20" not in api.to_text(report, "markdown")


def test_the_plot_marks_the_change_without_colour():
    text = api.to_text(sentence_of(nightly(SLOWER)), "terminal", api.RenderOptions(80))
    assert "▲ 2026-01-13" in text
    assert max(map(len, text.splitlines())) <= 80
    assert sum("┊" in line for line in text.splitlines()) == 8


def test_groups_are_a_table_and_5th_and_later_plots_are_for_programs():
    rows = [row for name in "abcdef" for row in nightly(SLOWER, framework=name)]
    report = sentence_of(rows, per="framework")
    plots = [block for block in report.section("trend").blocks if isinstance(block, Series)]
    assert [plot.audience for plot in plots] == ["all"] * 4 + ["machine"] * 2
    assert [row["verdict"] for row in report.rows("groups")] == ["regression"] * 6
    assert report.verdict.sentence.startswith("a: Regression: step_median rose from 2026-01-13 on, ")
    assert report.verdict.sentence.endswith(" 6 groups: 6 worse.")


def test_what_was_taken_back_in_part_is_told_against_the_best_level():
    values = np.repeat([2e8, 3e8, 2.9e8], 8) * np.r_[NOISE]
    report = sentence_of(nightly(values))
    assert report.verdict.sentence.startswith(
        "Regression: step_median was 200 ms until 2026-01-08, and is 290 ms from 2026-01-17 on (+45.0 %, 95 % "
    )
    assert report.verdict.sentence.endswith(" 2 changes in all.")


def test_a_change_by_more_than_tenfold_is_a_factor():
    report = sentence_of(nightly(2e8 * NOISE * np.repeat([1.0, 30.0], 12)))
    assert "(30 times, 95 % interval 29.8 to 30.2 times)" in report.verdict.sentence


def test_what_can_be_seen_of_wild_runs_is_a_factor():
    wild = 2e8 * np.tile([1.0, 30.0, 0.1, 5.0], 5)
    assert "would likely be seen" in sentence_of(nightly(wild)).verdict.sentence
    assert "; a lasting one to " in sentence_of(nightly(wild)).verdict.sentence


def test_runs_of_several_programs_are_warned_of():
    rows = [row for name in "ab" for row in nightly(2e8 * NOISE, framework=name)]
    prose = " ".join(block.text for block in sentence_of(rows).section("trend").blocks if isinstance(block, Prose))
    assert "different programs or machines (2 frameworks)" in prose
    assert "--per framework" in prose


def mixed(column):
    rows = nightly(SLOWER)
    for place, row in enumerate(rows):
        row[column] = "ab"[place >= 12]
    return trend(catalogue_of(*rows), "step_median")


@pytest.mark.parametrize(("column", "kinds"), [("framework", "frameworks"), ("gpu", "kinds of devices")])
def test_runs_of_several_frameworks_or_devices_are_not_judged(column, kinds):
    judged = mixed(column)
    why = f"its runs are of 2 {kinds}, which do not compare"
    (result,) = gate(judged, 0.05)
    assert (result.outcome, result.why) == (Outcome.UNKNOWN, why)
    report = document(judged)
    assert (report.verdict.code, report.verdict.sentence) == ("cannot-judge", f"Cannot judge step_median: {why}.")
    assert any(f"use --per {column}" in block.text for block in report.blocks("trend") if isinstance(block, Prose))
    assert judged.groups[0].changes == ()


def test_a_gate_that_fails_on_several_jobs_says_so():
    judged = mixed("job")
    (result,) = gate(judged, 0.05)
    assert (result.outcome, result.why) == (Outcome.FAILED, "the runs are of 2 jobs")
    assert document(judged).verdict.sentence.endswith(" The runs are of 2 jobs.")


def test_of_groups_only_the_one_with_several_devices_is_not_judged():
    rows = [*nightly(SLOWER, framework="JAX", gpu="A"), *nightly(SLOWER, framework="PyTorch", gpu="A")]
    rows[0]["gpu"] = "B"
    groups = trend(catalogue_of(*rows), "step_median", per="framework").groups
    assert [(one.group, str(one.direction)) for one in groups] == [("PyTorch", "regression"), ("JAX", "cannot judge")]


@pytest.mark.parametrize(("limit", "outcome", "code"), [(0.05, Outcome.FAILED, 1), (0.15, Outcome.PASSED, 0)])
def test_a_gate_fails_at_its_limit(limit, outcome, code):
    results = gate(trend(catalogue_of(*nightly(SLOWER)), "step_median"), limit)
    assert [result.outcome for result in results] == [outcome]
    assert exit_code(results) == code


def test_a_gate_on_too_few_runs_is_unknown():
    assert exit_code(gate(trend(catalogue_of(*nightly(SLOWER[:5])), "step_median"), 0.05)) == 4
    assert exit_code(gate(trend(catalogue_of(), "step_median"), 0.05)) == 4


def test_a_gate_says_what_it_may_miss():
    noisy = 2e8 * np.tile([1.0, 1.5, 0.7, 1.2], 4)
    (result,) = gate(trend(catalogue_of(*nightly(noisy)), "step_median"), 0.05)
    assert result.outcome is Outcome.PASSED
    assert "may be missed" in result.why


@pytest.mark.parametrize("name", ["json", "markdown", "csv", "github"])
def test_every_renderer_shows_it(name):
    text = api.to_text(sentence_of(nightly(SLOWER)), name)
    assert "2026-01-13" in text
    assert name != "markdown" or "▲ 2026-01-13" in text
