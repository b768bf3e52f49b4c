"""Figures by their names: what a report has, and why it has no other."""

import pytest
from hypothesis import given, settings

from tests.render.figures.test_of_reports import by_step
from tests.render.report_strategies import REPORTS
from traceviz.core.errors import UsageError
from traceviz.render.figures.reading import in_words
from traceviz.render.figures.registry import FIGURES, check_figure, figure, figures
from traceviz.report import Report, Verdict
from traceviz.report.verdicts import VerdictCode

STEPS = by_step((1, 0, 60, 40), (2, 0, 20, 60))


def test_a_report_of_steps_has_1_figure_and_it_is_drawn_where_none_is_named():
    assert [name for name, _ in figures(STEPS)] == ["steps"]
    assert figure(STEPS) == figure(STEPS, "steps")


def test_a_figure_that_a_report_does_not_have_is_refused_with_those_that_it_has():
    with pytest.raises(UsageError, match=r"'api': no call of the device's API was recorded\. It has: steps\."):
        figure(STEPS, "api")
    with pytest.raises(UsageError, match=r"It has no other figure either"):
        figure(Report((), Verdict(VerdictCode.NONE, "")), "steps")
    with pytest.raises(UsageError, match=r"This report has no figure\."):
        figure(Report((), Verdict(VerdictCode.NONE, "")))


def test_a_name_that_is_none_is_refused_with_the_nearest_and_all_others():
    with pytest.raises(UsageError, match=r"no figure 'step'.*Did you mean 'steps'.*api.*curve.*utilization"):
        check_figure("step")
    assert set(FIGURES.names()) >= {"steps", "api", "utilization", "curve"}


@given(report=REPORTS)
@settings(max_examples=30)
def test_any_report_has_figures_that_can_be_said_in_words_or_none(report):
    assert all(len(in_words(found)) < 200_000 for _, found in figures(report))


def test_words_of_2_steps_name_both_with_their_parts():
    assert in_words(figure(STEPS)) == (
        "2 steady steps of slow.json. input wait 44.4 %, host compute 55.6 %. "
        "step 1: input wait 60.0 ms, host compute 40.0 ms. step 2: input wait 20.0 ms, host compute 60.0 ms."
    )
