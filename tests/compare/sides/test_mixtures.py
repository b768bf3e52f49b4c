"""Runs of a side that differ in more than chance."""

from dataclasses import replace

import pytest

from tests.compare.sections_of import run, side, tagged
from traceviz.compare.comparability import remarks
from traceviz.compare.compare import compare
from traceviz.compare.effect import Outcome
from traceviz.compare.options import CompareOptions
from traceviz.compare.sides.units_of_work import mixtures


def runs(label, *tags):
    return side(label, *(run(9, tagged(**of_run)) for of_run in tags))


def variants(*names):
    return [{"variant": name} for name in names]


def test_2_sides_that_mix_the_same_are_warned_of_and_judged():
    base, new = runs("tf", *variants("plain", "cache")), runs("torch", *variants("cache", "plain", "cache", "plain"))
    expected = "runs of tf differ in variant (cache, plain) and runs of torch differ in variant (cache, plain)"
    assert list(mixtures(base, new)) == [(expected, True)]
    (remark,) = (remark for remark in remarks(base, new, CompareOptions()) if remark.code == "mixture")
    assert (remark.severity, remark.forbids) == ("warning", "")
    assert compare((base, new)).shown.judgement.outcome is Outcome.NO_CHANGE


@pytest.mark.parametrize("names", [("plain",), ("plain", "plain", "cache")])
def test_a_side_that_mixes_something_else_cannot_be_judged(names):
    base, new = runs("tf", *variants("plain", "cache")), runs("torch", *variants(*names))
    ((_, alike),) = mixtures(base, new)
    assert not alike
    judgement = compare((base, new)).shown.judgement
    assert judgement.outcome is Outcome.UNKNOWN
    assert judgement.why.startswith("runs of tf differ in variant (cache, plain)")


@pytest.mark.parametrize(
    "tags",
    [
        [{"rep": "a"}, {"rep": "b"}],
        [{"seed": "17"}, {"seed": "x"}],
        [{"number": "1"}, {"number": "3"}, {"number": "2"}],
        [{"Rep": "0", "number": "0"}, {"Rep": "5", "number": "1"}],
        [{"variant": "plain"}, {"variant": "plain"}],
        [{}, {}],
    ],
)
def test_repeats_are_no_mixture(tags):
    assert list(mixtures(runs("a", *tags), runs("b", {}))) == []


def test_a_number_that_2_of_3_runs_share_and_a_tag_that_1_of_2_lacks_are_mixtures():
    ((words, _),) = mixtures(runs("a", {"n": "10"}, {"n": "9"}, {"n": "9"}), runs("b", {"n": "9"}))
    assert words == "runs of a differ in n (9, 10)"
    ((words, _),) = mixtures(runs("a", {"gpu": "x"}, {}), runs("b", {}))
    assert words == "runs of a differ in gpu (without, x)"


def test_numbers_that_do_not_count_the_runs_are_settings():
    base, new = (runs(name, {"workers": "1"}, {"workers": more}) for name, more in (("tf", "4"), ("torch", "8")))
    ((words, alike),) = mixtures(base, new)
    assert words == "runs of tf differ in workers (1, 4) and runs of torch differ in workers (1, 8)"
    assert not alike


def test_batches_that_differ_within_a_side_are_not_said_to_differ_between_sides():
    base, new = (runs(name, {"batch": "64"}, {"batch": "8"}) for name in ("a", "b"))
    (remark,) = (remark for remark in remarks(base, new, CompareOptions()) if remark.code == "batch")
    assert remark.text.startswith("runs of a side differ in batch (8 and 64)")
    assert remark.forbids == "verdict"
    text = "runs of c differ in batch (8, 64) and runs of b differ in batch (8, 64)"
    assert list(mixtures(replace(base, label="c"), new)) == [(text, True)]
