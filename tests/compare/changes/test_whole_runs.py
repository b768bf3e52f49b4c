"""Quality and speed: figures that are worse beyond the scatter of repeats, and the verdict on them."""

from dataclasses import replace

import pytest

from tests.compare.sections_of import measures, section, table
from tests.compare.sides_of import report
from traceviz.compare.changes.whole_runs import compare_quality
from traceviz.compare.compare import compare
from traceviz.compare.options import Limits
from traceviz.compare.report.document import document
from traceviz.compare.report.whole_runs import quality_words
from traceviz.compare.sides.sides import Side
from traceviz.report import STATED, Grid

ACCURACY = ("validation accuracy", "validation", "higher")
LOSS = ("validation loss", "validation", "lower")
COLUMNS = "label split better last best best_epoch"


def learned(*figures, step_ns=1_000, repeat=0):
    """Return a report of a run that states figures: label, part, direction, the last value, the best and its epoch."""
    rows = [(*figure, *[None] * (6 - len(figure))) for figure in figures]
    plain = report([step_ns + number % (3 + repeat) for number in range(30)])
    return replace(plain, sections=(*plain.sections, section("quality", table(STATED, COLUMNS, *rows))))


def side(label, *values, figure=ACCURACY, **more):
    """Return a side of runs that end with these values of one figure."""
    return Side(label, tuple(learned((*figure, value), repeat=n, **more) for n, value in enumerate(values)))


def changed(base, new):
    return compare_quality(base, new, Limits())


def verdict_of(base, new, figure=ACCURACY):
    (change,) = changed(side("a", *base, figure=figure), side("b", *new, figure=figure)).changes
    return change.verdict


@pytest.mark.parametrize(
    ("base", "new", "verdict"),
    [
        ((0.98, 0.981, 0.979), (0.85, 0.852, 0.848), "worse"),
        ((0.85, 0.852, 0.848), (0.98, 0.981, 0.979), "better"),
        ((0.980, 0.981, 0.979), (0.981, 0.979, 0.980), "alike"),
        ((0.90, 0.98, 0.94), (0.91, 0.97, 0.90), "cannot judge"),
        ((0.9, 0.9), (0.9, 0.9), "alike"),
        ((0.9, 0.9), (0.8, 0.8), "worse"),
        ((0.98,), (0.85,), "worse"),  # 2 % of errors are 15 %
        ((0.900,), (0.915,), "cannot judge"),  # a sixth fewer errors, one run each
        ((91.0,), (85.0,), "worse"),  # in percent
        ((30.0,), (29.0,), "cannot judge"),
        ((0.9, 0.9), (None, None), "worse"),
        ((None, 0.9), (None, 0.9), "cannot judge"),
        ((0.9,), (0.9,), "alike"),
        ((0.9,), (1e200,), "worse"),
    ],
)
def test_accuracies_are_judged_by_what_is_missing_to_1_and_by_the_scatter_of_repeats(base, new, verdict):
    assert verdict_of(base, new) == verdict


@pytest.mark.parametrize(
    ("base", "new", "verdict"),
    [
        ((0.30,), (0.40,), "worse"),
        ((0.40,), (0.30,), "better"),
        ((0.40,), (0.36,), "cannot judge"),
        ((-2.0,), (-3.0,), "better"),
    ],
)
def test_a_loss_is_judged_as_it_is(base, new, verdict):
    assert verdict_of(base, new, LOSS) == verdict


def test_a_figure_without_direction_is_shown_and_never_judged():
    assert verdict_of((1.0,), (99.0,), ("learning rate", None, "")) == ""


def test_scatter_and_interval_are_those_of_the_final_values_of_repeats():
    (change,) = changed(side("a", 0.90, 0.92), side("b", 0.80, 0.84)).changes
    assert (change.base.mean, change.new.mean, change.difference) == pytest.approx((0.91, 0.82, -0.09))
    assert (change.base.scatter, change.new.scatter) == pytest.approx((0.01414214, 0.02828427))
    assert change.interval == pytest.approx((-0.254, 0.074), abs=0.001)  # Welch: 0.0224 times 7.34, of 1.47 degrees


def test_the_figure_beside_the_speed_is_of_data_that_was_not_learned_and_the_worst_of_these():
    others = ("lr", None, "", 1.0), (*ACCURACY, 0.9)
    base = Side("a", (learned(*others, ("training loss", "train", "lower", 0.1), (*LOSS, 0.3)),))
    new = Side("b", (learned(*others, ("training loss", "train", "lower", 0.9), (*LOSS, 0.5)),))
    quality = changed(base, new)
    assert [change.label for change in quality.changes] == [
        "validation accuracy",
        "validation loss",
        "training loss",
        "lr",
    ]
    assert quality.leading.label == "validation loss"
    assert quality_words(quality, "better") == " But validation loss is worse: 0.3 → 0.5 (one run of each side)."


def sentence(base, new):
    return document(compare([base, new])).verdict.sentence


@pytest.mark.parametrize(
    ("after", "step_ns", "words"),
    [
        ((0.85, 0.852), 500, "But validation accuracy is worse: 0.979 → 0.851 (95 % interval of the change"),
        ((0.98, 0.978), 500, "Validation accuracy is alike: 0.979 → 0.979."),
        ((0.85, 0.852), 2_000, "Validation accuracy is worse: 0.979 → 0.851 ("),
        ((0.9990, 0.9991), 2_000, "But validation accuracy is better: 0.979 → 0.999 ("),
        ((0.9, None), 500, "But validation accuracy is worse: 0.979 → diverged (no finite number in 1 of 2 runs)."),
    ],
)
def test_the_verdict_says_where_the_faster_side_is_the_worse_one(after, step_ns, words):
    assert f" {words}" in sentence(side("a", 0.98, 0.978), side("b", *after, step_ns=step_ns))


def test_what_cannot_be_judged_for_its_time_is_told_for_its_quality():
    said = sentence(*(Side(one.label, tuple(map(stepless, one.reports))) for one in (side("a", 0.98), side("b", 0.85))))
    assert said.startswith("Cannot judge")
    assert said.endswith(" Validation accuracy is worse: 0.98 → 0.85 (one run of each side).")


def test_two_figures_that_read_the_same_are_not_said_to_differ_by_chance():
    said = sentence(side("a", 0.9, 0.95), side("b", 0.95, 0.9, step_ns=500))
    assert said.endswith(" Validation accuracy is 0.925 on both sides.")


def stepless(run):
    return replace(run, sections=tuple(section for section in run.sections if section.slug == "quality"))


def test_many_sides_have_a_table_of_their_final_figures_and_what_one_lacks_is_empty():
    sides = [side("a", 0.9, 0.8), side("b", 0.7), side("c", 0.2, figure=LOSS)]
    (first, *_) = [block for block in document(compare(sides)).blocks("quality") if isinstance(block, Grid)]
    assert [column.name for column in first.columns if column.importance < 9] == [
        *("side", "runs", "final.validation accuracy", "final.validation loss")
    ]
    rows = [dict(zip([column.name for column in first.columns], row, strict=True)) for row in first.rows]
    assert [row["final.validation accuracy"] for row in rows] == [pytest.approx(0.85), 0.7, None]
    assert [row["final.validation loss"] for row in rows] == [None, None, 0.2]
    assert rows[0]["scatter.validation accuracy"] == pytest.approx(0.0707107)


def test_the_figures_of_runs_that_were_stopped_are_left_out():
    broken = side("b", 0.1, 0.9)
    ended = replace(broken.reports[0], sections=(*broken.reports[0].sections, measures("failed", "out of memory")))
    (change,) = changed(side("a", 0.9), Side("b", (ended, broken.reports[1]))).changes
    assert (change.new.final, change.verdict) == ((0.9,), "alike")


def test_sides_that_state_nothing_alike_say_so():
    assert (
        changed(side("a", 0.9), side("b", 0.2, figure=LOSS)).why_not == "no figure of quality is stated on both sides"
    )
    assert changed(side("a", 0.9), Side("b", (report([1] * 9),))).why_not == "b did not record figures of quality"
