"""Rules: stable, complete, and raised by somebody."""

import re

import pytest

from traceviz.analyses.registry import analyses
from traceviz.core.errors import UsageError
from traceviz.report.rules import RULES, Rule, rule


def test_codes_are_unique_and_sorted() -> None:
    codes = [r.code for r in RULES]
    assert codes == sorted(set(codes))
    assert len(codes) >= 11


def test_slugs_are_unique() -> None:
    assert len({r.slug for r in RULES}) == len(RULES)


@pytest.mark.parametrize("entry", RULES, ids=lambda entry: entry.code)
def test_every_rule_has_all_headings(entry: Rule) -> None:
    assert re.fullmatch(r"TV\d{3}", entry.code)
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", entry.slug)
    for heading in (entry.what, entry.why, entry.misleads, *entry.advice):
        assert len(heading) >= 20
        assert heading.endswith(".")
        assert "\n" not in heading
    assert len(entry.advice) >= 1
    assert all(reference.startswith("https://") for reference in entry.references)


@pytest.mark.parametrize("entry", RULES, ids=lambda entry: entry.code)
def test_a_rule_is_found_by_code_and_slug_in_any_case(entry: Rule) -> None:
    assert rule(entry.code.lower()) is rule(entry.slug.upper()) is entry


def test_an_unknown_rule_lists_those_that_exist() -> None:
    with pytest.raises(UsageError, match=r"no rule 'TV000'.*TV101 \(input-bound\)"):
        rule("TV000")


def test_every_rule_is_raised_by_exactly_one_analysis() -> None:
    raised = [code for analysis in analyses() for code in analysis.rules]
    assert sorted(raised) == [r.code for r in RULES]
