"""Verdicts are values: no code compares their strings, and a saved report keeps the code of another version."""

import re
from pathlib import Path

import pytest

from traceviz.render.json import dumps, loads
from traceviz.report import Report, Verdict
from traceviz.report.verdicts import InputVerdict, VerdictCode

ROOT = Path(__file__).parents[2]
COMPARED = re.compile(
    r"(?:[=!]=|\b(?:in|is|or|and) [{(]?)\s*"
    r'"(?:\w+[- ]input-bound|(?:cannot|not)[- ]judged?|partial|healthy|possible_input)"'
)


def test_no_code_compares_a_verdict_with_a_string():
    sources = [path for folder in ("traceviz", "parsers", "collectors") for path in (ROOT / folder).rglob("*.py")]
    found = [f"{path}: {line}" for path in sources for line in path.read_text().splitlines() if COMPARED.search(line)]
    assert (len(sources) > 500, found) == (True, [])


@pytest.mark.parametrize(
    ("verdict", "code", "judged", "measured", "bound"),
    [
        (InputVerdict.HIGHLY_BOUND, "highly-input-bound", True, True, True),
        (InputVerdict.MODERATELY_BOUND, "moderately-input-bound", True, True, True),
        (InputVerdict.POSSIBLY_BOUND, "possibly-input-bound", True, False, False),
        (InputVerdict.NOT_BOUND, "not-input-bound", True, True, False),
        (InputVerdict.CANNOT_JUDGE, "cannot-judge", False, False, False),
        (InputVerdict.NOT_JUDGED, "serving", False, False, False),
    ],
)
def test_each_verdict_on_the_input_has_a_code_and_its_three_properties(verdict, code, judged, measured, bound):
    assert (verdict.code, verdict.is_judged, verdict.is_measured, verdict.is_bound) == (code, judged, measured, bound)
    assert InputVerdict.read(verdict.value) is verdict
    assert InputVerdict.read(verdict.value.upper()) is None


def test_a_report_keeps_a_code_that_this_version_does_not_know():
    known, unknown = (Report((), Verdict(VerdictCode(code), "")) for code in ("cannot-judge", "output-bound"))
    assert loads(dumps(known)).verdict.code is VerdictCode.CANNOT_JUDGE
    assert (loads(dumps(unknown)).verdict.code, unknown.verdict.code.is_blind) == ("output-bound", False)
    assert '"code": "output-bound"' in dumps(unknown)
