"""Contract of the records of findings: every record has a sound value in every field, and one analysis raises it."""

import re
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest

from traceviz.analyses.capture.whole_run import OUTSIDE
from traceviz.analyses.derived.host.classes import CLASSES
from traceviz.analyses.derived.run_parts.parts import LABELS as RUN_PARTS
from traceviz.analyses.derived.run_parts.parts import STARTUP
from traceviz.analyses.derived.stacks.kinds import KIND_LABELS
from traceviz.analyses.headline.choice import COMPUTE, UNEXPLAINED
from traceviz.analyses.headline.parts import PARTS
from traceviz.analyses.registry import ANALYSES, analyses
from traceviz.pictures.timeline.places import FINDERS
from traceviz.report import Certainty, Severity
from traceviz.report.findings import record as declared
from traceviz.report.findings.record import FindingRecord, SeverityRule, TimeClass
from traceviz.report.findings.registry import codes, record_of, records
from traceviz.report.findings.tv209_os_wait import CHILDREN, FILES, LOCKS, SOCKETS
from traceviz.testing import FindingContract
from traceviz.trace.names.cuda_names import ApiKind
from traceviz.trace.schema import TABLES

KEYS = {
    "api_call": set(get_args(ApiKind)),
    "idle_class": {c.key for c in CLASSES},
    "input": {c.key for c in CLASSES},
    "loop_part": {*RUN_PARTS},
    "phase": set(next(column.values for column in TABLES["phases"].columns if column.name == "kind")),
    "run_part": {*RUN_PARTS},
    "sampled": {*KIND_LABELS},
}
"""Keys that the finders of places know; the others take none."""


def is_text(value):
    return len(value) >= 20 and value.endswith(".") and "\n" not in value


def are_other_codes(value, record):
    return set(value) <= {*codes()} - {record.code}


def is_place(value, _):
    return value is None or (value.finder in FINDERS and set(value.keys) <= KEYS.get(value.finder, set()))


def are_tables(value, _):
    return {table.partition(":")[0] for table in value} <= {*ANALYSES.names()}


def is_flag(value, _):
    return value in {True, False}


def is_of_candidates(value, record):
    return not value or record.can_lead


def is_claim(value):
    """Return whether a figure can follow: no end of a sentence, and with ``12.3 % of step time`` at most 12 words."""
    return not value.endswith((".", ":")) and not re.search(r"\d", value) and len(value.split()) <= 7


CHECKS = {
    "code": lambda value, _: re.fullmatch(r"TV\d{3}", value),
    "slug": lambda value, _: re.fullmatch(r"[a-z]+(-[a-z]+)*", value),
    "what": lambda value, _: is_text(value),
    "why": lambda value, _: is_text(value),
    "advice": lambda value, _: value and all(map(is_text, value)),
    "only_for": lambda value, record: all(text in record.advice and kinds for text, kinds in value),
    "misleads": lambda value, _: is_text(value),
    "references": lambda value, _: all(reference.startswith("https://") for reference in value),
    "section": lambda value, _: value in ANALYSES,
    "severity": lambda value, _: value in get_args(SeverityRule),
    "hint_if": lambda value, record: not value or (is_text(value) and record.severity == "by share"),
    "part_of": are_other_codes,
    "half_of": are_other_codes,
    "compares_clocks": is_flag,
    "explains": lambda value, _: set(value) <= {*get_args(TimeClass)},
    "certainty": lambda value, _: value in get_args(Certainty),
    "is_candidate": lambda value, record: value or (record.explains and record.severity == "by share"),
    "label": lambda value, record: value != record.slug.replace("-", " "),
    "claim": lambda value, record: bool(value) is record.can_lead and is_claim(value),
    "claims_of": lambda value, record: (
        not value
        if not record.can_lead
        else all(is_claim(claim) for _, claim in value) and ("{rank}" not in record.claim or "" in dict(value))
    ),
    "counts_later_time": is_of_candidates,
    "disjoint_from": lambda value, record: (
        are_other_codes(value, record) and all(record.code in record_of(code).disjoint_from for code in value)
    ),
    "is_sampled": is_of_candidates,
    "is_of_input": lambda value, record: not value or record.section == "input_pipeline",
    "is_of_run": lambda value, record: value == (record.section == "whole_run"),
    "is_per_rank": lambda value, record: not value or record.is_of_ranks,
    "is_of_ranks": is_of_candidates,
    "tables": lambda value, record: value and are_tables(value, record),
    "replaced_tables": lambda value, record: all(are_tables(pair, record) for pair in value),
    "place": is_place,
    "supposes": lambda value, record: not value or are_other_codes([value], record),
    "needs_same_recorder": is_flag,
}


def test_every_field_is_checked():
    assert [*CHECKS] == [field.name for field in fields(FindingRecord)]


@pytest.mark.parametrize("record", records(), ids=lambda record: record.code)
def test_every_record_has_a_sound_value_in_every_field(record):
    wrong = [name for name, holds in CHECKS.items() if not holds(getattr(record, name), record)]
    assert wrong == []


def test_codes_and_slugs_are_those_of_the_files():
    files = sorted(path.stem for path in Path(declared.__file__).parent.glob("tv*.py"))
    assert files == [f"{record.code.lower()}_{record.slug.replace('-', '_')}" for record in records()]
    assert len(files) == len({record.slug for record in records()}) >= 70


def test_every_finding_is_raised_in_its_section_and_nothing_else_is():
    raised = {code: analysis.slug for analysis in analyses() for code in analysis.rules}
    assert raised == {record.code: record.section for record in records()}
    assert sum(len(analysis.rules) for analysis in analyses()) == len(raised)


def test_time_classes_are_the_parts_of_judged_time():
    assert {*get_args(TimeClass)} == {COMPUTE, UNEXPLAINED, *PARTS}


def test_places_of_the_run_look_for_the_parts_that_the_run_is_made_of():
    assert record_of("TV701").place.keys == OUTSIDE
    assert record_of("TV704").place.keys == STARTUP


@pytest.mark.parametrize(
    ("code", "share", "severity"),
    [
        ("TV101", 0.049, Severity.INFO),
        ("TV101", 0.05, Severity.WARNING),
        ("TV101", 0.199, Severity.WARNING),
        ("TV101", 0.2, Severity.ERROR),
        ("TV619", 0.5, Severity.INFO),
        ("TV901", 0.0, Severity.WARNING),
    ],
)
def test_severity_follows_the_share_at_stake_unless_the_record_fixes_it(code, share, severity):
    assert record_of(code).severity_of(share) is severity


class TestEveryRecord(FindingContract):
    @pytest.fixture(params=records(), ids=lambda record: record.code, autouse=True)
    def _record(self, request):
        self.record = request.param


def test_advice_for_some_kinds_of_causes_is_given_only_for_these():
    record = record_of("TV209")
    assert record.advice_for({"child_process"}) == (CHILDREN,)
    assert record.advice_for({"lock", "io"}) == (FILES, LOCKS, SOCKETS)
    assert record_of("TV101").advice_for(()) == record_of("TV101").advice
