"""Quality figures: the meaning of their names, their course, and the report of a training that diverges."""

import pytest

from tests.analyses.builders import trace
from traceviz.analyses.program.metric_names import read_name
from traceviz.analyses.program.quality import QualityAnalysis
from traceviz.report import OVER_TIME, Grid, Prose, Section, Skipped, Timeline


def section(rows, **options) -> Section:
    analysis = QualityAnalysis(**options)
    result = analysis.run(trace(metrics=rows, span_ns=1_000))
    assert not isinstance(result, Skipped)
    return analysis.describe(result)


@pytest.mark.parametrize(
    ("name", "source", "label", "better"),
    [
        ("val_sparse_categorical_accuracy", "keras", "validation sparse categorical accuracy", "higher"),
        ("loss", "keras", "training loss", "lower"),
        ("loss", "program", "loss", "lower"),
        ("Loss/train", "program", "training loss", "lower"),
        ("validation/evaluation_loss_vs_iterations", "tensorboard", "validation loss", "lower"),
        ("train_loss_epoch", "lightning", "training loss", "lower"),
        ("eval_rougeL", "transformers", "validation rougel", "higher"),
        ("fold 1/test/RMSE", "program", "test fold 1 rmse", "lower"),
        ("accuracy_loss", "program", "accuracy loss", "lower"),
        ("top_5_error", "program", "top 5 error", "lower"),
        ("r2_score", "program", "r2 score", "higher"),
        ("learning_rate", "keras", "learning rate", ""),
        ("train", "program", "train", ""),
        ("///", "program", "///", ""),
    ],
)
def test_a_name_says_what_it_is_of_which_data_and_which_way_is_better(name, source, label, better):
    said = read_name(name, source)
    assert (said.label, said.better) == (label, better)


def test_of_10_000_values_the_report_lists_200_with_the_first_and_the_last():
    told = section([(number, "loss", float(10_000 - number)) for number in range(10_000)])
    (course,) = [block for block in told.blocks if isinstance(block, Grid) and block.title == OVER_TIME]
    assert (len(course.rows), course.rows[0][-1], course.rows[-1][-1]) == (200, 10_000.0, 1.0)


def test_a_picture_keeps_a_value_until_the_next_and_begins_with_the_first():
    values = [(300, "loss", 4.0), (500, "loss", 2.0), (700, "loss", 1.0)]
    told = section([(100, "lr", 1.0), *values, (900, "lr", 1.0)], slices=8)
    (picture,) = [block for block in told.blocks if isinstance(block, Timeline)]
    assert picture.lanes[0].values == (None, 1.0, 1.0, 1 / 3, 1 / 3, 0.0, 0.0, 0.0)
    assert (picture.lanes[0].whole, picture.start_ns, picture.end_ns) == ("1 to 4", 0, 800)


def test_figures_without_direction_and_those_that_do_not_change_have_0_pictures():
    values = [(10 * number, name, -1.0) for number in range(4) for name in ("noise", "elbo loss")]
    assert [block for block in section(values).blocks if isinstance(block, Timeline)] == []


def test_a_negative_loss_is_scaled_to_its_values():
    told = section([(number, "elbo loss", -10.0 - number) for number in (0, 1, 2)], slices=2)
    (picture,) = [block for block in told.blocks if isinstance(block, Timeline)]
    assert (picture.lanes[0].values, picture.lanes[0].whole) == ((0.5, 0.0), "−12 to −10")


def test_a_training_that_diverged_at_its_end_is_said_so():
    remarks = [
        block.text
        for block in section([(1, "loss", 0.5), (2, "loss", None), (3, "acc", None), (4, "acc", 0.5)]).blocks
        if isinstance(block, Prose)
    ]
    assert remarks == [
        "The last loss is no finite number: the training has diverged, or divided by zero.",
        "1 of 2 values of acc are no finite numbers.",
    ]


def test_a_program_that_stated_nothing_has_no_section():
    assert isinstance(QualityAnalysis().run(trace(metrics=[], span_ns=10)), Skipped)
