"""Names that match patterns: a few plain ones are searched by Python, all others by polars, with the same results."""

import re

import polars as pl
import pytest

from tests.support.worst_cases import texts
from traceviz.analyses.derived import patterns
from traceviz.analyses.derived.causes.kinds import COLLECTIVE, COMPILES, OPTIMIZER, PYTHON_WAITS, RECORDED_OPERATOR
from traceviz.analyses.derived.host.copy_purposes import BATCHES, PARAMETERS
from traceviz.analyses.derived.host.input_fetches import ANNOTATION, FUNCTION, INPUT_NAME, LIBRARY, NOT_INPUT_NAME
from traceviz.analyses.derived.patterns import FEW, LONGEST, ROWS, extracted, matches, matching, replaced
from traceviz.analyses.derived.steps.serving import SERVING_NAME, TRAINING_NAME

OURS = (
    *(COLLECTIVE, COMPILES, OPTIMIZER, PYTHON_WAITS, RECORDED_OPERATOR, BATCHES, PARAMETERS, ANNOTATION, FUNCTION),
    *(INPUT_NAME, LIBRARY, NOT_INPUT_NAME, SERVING_NAME, TRAINING_NAME),
)
NAMES = [
    *("data_loader", "input_proj", "Optimizer.step#SGD.step", "gloo:all_reduce", "train.py(41): next_batch", ""),
    *("aten::add, seq = 7", "MPI_Allreduce", "<built-in method acquire of lock>", "torch/nn/modules.py(3): forward"),
]


@pytest.mark.parametrize("pattern", OURS)
def test_python_says_of_10_names_and_the_worst_texts_what_polars_says(pattern):
    names = pl.Series(
        "name", [*NAMES, *(text for text in texts(re.compile(pattern), LONGEST, 8) if text.isascii()), None]
    )
    assert matching(names, pattern).to_list() == names.str.contains(pattern).to_list()


@pytest.mark.parametrize(
    ("name", "answer"), [("a" * LONGEST, True), ("a" * (LONGEST + 1), True), ("á", False), ("a\n", False), (None, None)]
)
def test_names_of_201_characters_and_names_that_are_not_plain_are_polars_to_search(name, answer):
    assert matching(pl.Series("name", [name], pl.String), "a$").to_list() == [answer]


@pytest.mark.parametrize("count", [0, 1, FEW, FEW + 1, ROWS + 1])
def test_as_many_names_as_rows_are_answered(count):
    names = pl.Series("name", [f"kernel_{number}" for number in range(count)], pl.String)
    assert matching(names, "_1$").sum() == (count > 1)


def test_256_names_are_not_asked_of_polars(monkeypatch):
    monkeypatch.setattr(patterns, "_compiled", lambda _: re.compile("_[12]"))  # polars would search for the other
    names = pl.Series([f"a_{number}" for number in range(FEW)])
    assert matching(names, "b").sum() == 178
    assert matching(pl.concat([names, pl.Series(["c"])]), "b").sum() == 0


def test_text_in_place_of_the_first_match_takes_2_groups():
    frame = pl.DataFrame({"name": ["train.py(41): load, load", "other", None]})
    new = frame.select(replaced(pl.col("name"), r"\((\d+)\): (\w+)", "${1} ${2}N")).to_series()
    assert new.to_list() == ["train.py41 loadN, load", "other", None]


def test_group_1_is_extracted_and_null_where_nothing_matches():
    frame = pl.DataFrame({"name": ["a/b", "none", None]})
    assert frame.select(extracted(pl.col("name"), r"^(\w)/", 1)).to_series().to_list() == ["a", None, None]


def test_an_expression_filters_2_of_3_rows():
    frame = pl.DataFrame({"name": ["load", "step", "load"]})
    assert frame.filter(matches(pl.col("name"), "^lo")).height == 2
