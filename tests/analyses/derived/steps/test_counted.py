"""Steps that hooks counted throughout a run in which no profiler recorded any."""

import polars as pl
import pytest

from tests.analyses.builders import trace
from tests.analyses.stacks import sampled
from traceviz.analyses.derived.judged_time import judged_words
from traceviz.analyses.derived.run_parts.parts import run_parts
from traceviz.analyses.derived.steps.counted import best_source
from traceviz.analyses.derived.steps.search import training_steps
from traceviz.analyses.run import analyze

MS = 1_000_000
ROUND = "boost.py:34 main > boost.py:14 objective"


def boosting(*, rounds=20, more=(), **tables):
    phases = [(n * 100 * MS, 90 * MS, "step", "found_update Booster.update", {"number": n}) for n in range(rounds)]
    stacks = [(n * 100 * MS, 100 * MS, ROUND, {"samples": 10}) for n in range(rounds)]
    return trace(span_ns=rounds * 100 * MS, phases=[*more, *phases], **sampled(*stacks), **tables)


def test_of_20_rounds_are_the_steps_of_the_trace_and_of_its_run():
    view = boosting()
    steps = training_steps(view)
    assert (steps.source, steps.frame.height, judged_words(view)) == ("counted", 20, "steps of the run")
    assert run_parts(view).steps == 20


def test_a_report_with_20_steps_does_not_say_that_there_are_none():
    report = analyze(boosting().tables)
    assert "no steps were found" not in report.verdict.sentence
    assert "Python: 100.0 % of the steps of the run is Python itself, mostly in objective" in report.verdict.sentence


@pytest.mark.parametrize(("rounds", "source"), [(2, "none"), (3, "counted")])
def test_needs_three(rounds, source):
    assert training_steps(boosting(rounds=rounds)).source == source


def test_of_a_run_of_which_a_profiler_recorded_operators_are_not_those_of_the_whole_run():
    assert training_steps(boosting(host_ops=[(0, MS, "aten::mm", "op")])).source == "none"


def test_5_calls_of_a_model_before_its_optimizer_is_found_are_no_steps_of_their_own():
    calls = [(n * MS, MS, "step", "torch_call", {"number": n}) for n in range(-5, 0)]
    view = boosting(more=calls)
    assert training_steps(view).frame.height == run_parts(view).steps == 20


def test_the_source_that_sees_learning_is_better_than_one_with_50_repeats():
    noted = pl.DataFrame({"name": ["torch_call"] * 50 + ["torch_optimizer"] * 11})
    assert best_source(noted) == ("torch_optimizer", False)
