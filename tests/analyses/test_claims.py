"""Claims of headlines: of every finding that can lead, and names shortened in their middle."""

import pytest

from traceviz.analyses.headline.choice import Option
from traceviz.analyses.headline.claims import claim_of_option, describe_gain_of, say_consequence, shorten_middle
from traceviz.report import Fact, Finding, Severity
from traceviz.report.findings.record import ONE_FUNCTION
from traceviz.report.findings.registry import record_of, records

LEADERS = [record for record in records() if record.can_lead]


def claim(record, heading="", **facts):
    evidence = tuple(Fact(key, key, value) for key, value in facts.items())
    finding = Finding(
        record.code, record.slug, Severity.ERROR, "It is slow.", evidence, ("Do it.",), 300, heading=heading
    )
    label = heading or record.label or record.slug.replace("-", " ")
    of = "steady step time"
    option = Option(record.slug, label, 300, 0.3, of, "measured", record.code, "", frozenset(record.explains), record)
    return claim_of_option(option, finding, has_device=True)


@pytest.mark.parametrize("record", LEADERS, ids=lambda record: record.code)
def test_every_finding_that_can_lead_has_a_claim_of_at_most_twelve_words(record):
    for heading in ("", *(heading for heading, _ in record.claims_of)):
        for facts in ({}, {"rank": 2}):
            made = claim(record, heading, **facts)
            assert made.figure == "30.0 %"
            assert made.text.count(made.figure) == 1
            assert "{" not in made.text
            assert "None" not in made.text
            assert len(made.text.replace(made.figure, "FIGURE").split()) <= 12
    assert record.claim.format(rank=2) in claim(record, rank=2).text


def test_a_claim_names_the_rank_or_the_function_if_the_evidence_has_it():
    straggler, waits = record_of("TV501"), record_of("TV613")
    assert claim(straggler, rank=0).text == "Straggler: waiting for rank 0 takes 30.0 % of step time"
    assert claim(straggler).text == "Straggler: ranks wait for one rank 30.0 % of step time"
    assert claim(waits, "locks").text == "Locks: steps wait for a lock 30.0 % of step time"
    assert claim(waits, location="a.py:3 f").text == f"{ONE_FUNCTION} 30.0 % of step time: f (a.py:3)"
    assert claim(waits).text == f"{ONE_FUNCTION} 30.0 % of step time"


@pytest.mark.parametrize(
    ("name", "most", "text"),
    [
        ("abcdefghij", 10, "abcdefghij"),
        ("abcdefghijk", 10, "abcdef…ijk"),  # 3 of 9 characters are its end
        ("a  b\nc", 10, "a b c"),
        ("src/train.py:41 decode", 44, "decode (train.py:41)"),
        ("", 10, ""),
    ],
)
def test_names_are_shortened_in_their_middle(name, most, text):
    assert shorten_middle(name, most) == text
    assert len(text) <= most


@pytest.mark.parametrize(
    ("share", "least", "gain"),
    [
        (0.04, 1.0, ""),
        (0.5, 1.0, "up to 2.0× faster"),
        (0.5, 1.5, "1.5 to 2.0× faster"),
        (0.5, 2.0, "2.0× faster"),
        (0.96, 1.0, "over 20× faster"),
        (1.0, 1.0, "over 20× faster"),
    ],
)
def test_the_gain_is_that_without_the_share(share, least, gain):
    assert describe_gain_of(share, least) == gain


def test_the_consequence_is_gain_and_start():
    assert say_consequence("up to 2.0× faster", "f (a.py:3)") == "Up to 2.0× faster; start at f (a.py:3)"
    assert say_consequence("", "f (a.py:3)", "see section launch") == "Start at f (a.py:3)"
    assert say_consequence("", "", "see section launch") == "See section launch"
    assert say_consequence("", "") == ""
