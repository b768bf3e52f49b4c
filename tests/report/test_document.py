"""Rows and facts of a report by name, and the errors of names that it does not have."""

import pytest

from traceviz.errors import NotInReportError
from traceviz.report import Column, Fact, Facts, Grid, Report, Section, Skipped, Verdict
from traceviz.report.verdicts import VerdictCode

GRID = Grid((Column("name", "Kernel"), Column("total_ns", "Total", "ns")), (("gemm", 7),))
REPORT = Report(
    (),
    Verdict(VerdictCode.NOT_INPUT_BOUND, "Not input-bound."),
    (Section("kernels", "Kernels", (Facts((Fact("count", "kernels", 1, "count"),)), GRID)),),
    skipped=(Skipped("copies", "no copy was recorded."),),
)


def test_rows_are_those_of_the_first_table():
    assert REPORT.rows("kernels") == [{"name": "gemm", "total_ns": 7}]


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda: REPORT.rows("kernls"), "There is no section 'kernls'. Did you mean 'kernels'? Known: kernels."),
        (lambda: REPORT.rows("copies"), "There is no section copies: no copy was recorded."),
        (lambda: REPORT.grid("copies"), "There is no section copies: no copy was recorded."),
        (lambda: REPORT.fact("kernels", "x"), "The report has no fact kernels.x. See report.section('kernels')."),
    ],
)
def test_what_is_not_in_the_report_is_a_key_error_in_words(ask, said):
    with pytest.raises(KeyError) as caught:
        ask()
    assert isinstance(caught.value, NotInReportError)
    assert str(caught.value) == said
