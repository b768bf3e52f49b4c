"""Rules: stable, complete, and raised by somebody."""

import re

import pytest

from traceviz.analyses.registry import analyses
from traceviz.errors import UsageError
from traceviz.rules import RULES, Rule, rule


def test_codes_are_unique_and_sorted() -> None:
    codes = [r.code for r in RULES]
    assert codes == sorted(set(codes))
    assert len(codes) >= 11


def test_slugs_are_unique() -> None:
    assert len({r.slug for r in RULES}) == len(RULES)


@pytest.mark.parametrize("found", RULES, ids=lambda found: found.code)
def test_every_rule_has_all_headings(found: Rule) -> None:
    assert re.fullmatch(r"TV\d{3}", found.code)
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", found.slug)
    for heading in (found.what, found.why, found.misleads, *found.advice):
        assert len(heading) >= 20
        assert heading.endswith(".")
        assert "\n" not in heading
    assert len(found.advice) >= 1
    assert all(reference.startswith("https://") for reference in found.references)


@pytest.mark.parametrize("found", RULES, ids=lambda found: found.code)
def test_a_rule_is_found_by_code_and_slug_in_any_case(found: Rule) -> None:
    assert rule(found.code.lower()) is rule(found.slug.upper()) is found


def test_an_unknown_rule_lists_those_that_exist() -> None:
    with pytest.raises(UsageError, match=r"no rule 'TV000'.*TV101 \(input-bound\)"):
        rule("TV000")


def test_every_rule_is_raised_by_exactly_one_analysis() -> None:
    raised = [code for analysis in analyses() for code in analysis.rules]
    assert sorted(raised) == [r.code for r in RULES]
