"""The place at which to start on a finding, from its evidence."""

import pytest

from traceviz.report import Fact, Finding, Severity
from traceviz.report.start import find_start, place_within_sentence


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("src/train.py:41 Images.decode", "decode (train.py:41)"),
        ("train.py:41 decode", "decode (train.py:41)"),
        ("train.py:41 <module>", "train.py:41"),
        ("time.sleep in src/train.py:41 Images.decode", "time.sleep in decode (train.py:41)"),
        ("time.sleep in train.py:41 <lambda>", "time.sleep in train.py:41"),
        ("load (train.py, 60.0 % of it in line 41)", "load (train.py:41)"),
        ("load (train.py:41)", "load (train.py:41)"),
        ("cudaMemcpyAsync", "cudaMemcpyAsync"),
        ("aten::item in aten::nonzero", "aten::item in aten::nonzero"),
        ("", ""),
    ],
)
def test_a_place_within_a_sentence_is_short(place, text):
    assert place_within_sentence(place) == text


def finding(code="TV203", **facts):
    evidence = tuple(Fact(key, key, value) for key, value in facts.items())
    return Finding(code, "slug", Severity.ERROR, "It is slow.", evidence, ("Do it.",), 100)


@pytest.mark.parametrize(
    ("found", "start"),
    [
        (finding(operator="aten::mm", location="a.py:3 f"), "f (a.py:3)"),
        (finding(operator="aten::mm", location=None), "aten::mm"),
        (finding(stage="Map", line="b.py:7 g"), "g (b.py:7)"),
        (finding(share=0.5), ""),
        (finding(largest=3), ""),
        (finding(cause="migrations of managed memory"), ""),
        (finding("TV501", rank=2, worst="device compute"), "rank 2: device compute"),
        (finding("TV501", rank=2), "rank 2"),
        (finding("TV503", worst="aten::mm"), "aten::mm"),
        (finding("TV203", rank=2), ""),
    ],
)
def test_the_start_is_the_most_precise_place_of_the_evidence(found, start):
    assert find_start(found) == start
