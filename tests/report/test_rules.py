"""Rules: stable, complete, and raised by somebody."""

import pytest

from traceviz.analyses.registry import analyses
from traceviz.core.errors import UsageError
from traceviz.report.rules import RULES, rule
from traceviz.testing import FindingContract


def test_codes_are_unique_and_sorted() -> None:
    codes = [r.code for r in RULES]
    assert codes == sorted(set(codes))
    assert len(codes) >= 11


def test_slugs_are_unique() -> None:
    assert len({r.slug for r in RULES}) == len(RULES)


class TestEveryRule(FindingContract):
    @pytest.fixture(params=RULES, ids=lambda entry: entry.code, autouse=True)
    def _record(self, request: pytest.FixtureRequest) -> None:
        self.record = request.param


def test_an_unknown_rule_lists_those_that_exist() -> None:
    with pytest.raises(UsageError, match=r"no rule 'TV000'.*TV101 \(input-bound\)"):
        rule("TV000")


def test_every_rule_is_raised_by_exactly_one_analysis() -> None:
    raised = [code for analysis in analyses() for code in analysis.rules]
    assert sorted(raised) == [r.code for r in RULES]
