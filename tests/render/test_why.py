"""Reasons of the first sentence: its candidates as a section, in the order of judgement."""

from traceviz.render.why import why
from traceviz.report import Candidate, Facts, Grid, Prose, Report, Section, Verdict
from traceviz.report.verdicts import VerdictCode

LEADS = Candidate(
    "launch-bound-kernels", "launch-bound", 430, 0.43, "steps", "measured", "TV202", "The largest.", leads=True
)
PART = Candidate("host", "work of the host", 400, 0.4, "steps", "measured", "9 events", "TV202 says it.")
SMALL = Candidate("copy_h2d", "copies", 10, 0.01, "steps", "measured", "copies", "Below 5.0 %.")


def reduced(cause, *candidates):
    report = Report(
        (), Verdict(VerdictCode.NOT_INPUT_BOUND, "It waits.", cause, candidates), (Section("a", "A", (Facts(()),)),)
    )
    return why(report)


def prose(report):
    return [block.text for block in report.section("why").blocks if isinstance(block, Prose)]


def test_every_candidate_has_a_row_and_each_that_matters_a_reason_in_words():
    report = reduced("launch-bound-kernels", LEADS, PART, SMALL)
    (grid,) = (block for block in report.section("why").blocks if isinstance(block, Grid))
    rows = [dict(zip([column.name for column in grid.columns], row, strict=True)) for row in grid.rows]
    assert [(row["candidate"], row["share"], row["leads"]) for row in rows] == [
        ("launch-bound (TV202)", 0.43, "yes"),
        ("work of the host", 0.4, "no"),
        ("copies", 0.01, "no"),
    ]
    assert prose(report)[1:] == ["Launch-bound (TV202) leads: the largest.", "Work of the host: TV202 says it."]


def test_the_sentence_stays_and_all_other_sections_go():
    report = reduced("launch-bound-kernels", LEADS)
    assert (report.verdict.sentence, [section.slug for section in report.sections]) == ("It waits.", ["why"])


def test_where_nothing_leads_it_is_said_why():
    assert prose(reduced("healthy", SMALL))[0].startswith("Nothing takes 5 % of the judged time beside computing.")
    assert prose(reduced(""))[0].startswith("Nothing that was recorded can lead")
