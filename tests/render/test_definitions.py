"""The catalogue defines every figure that people see, and agrees with the documentation and the code."""

import re
from pathlib import Path

import pytest

from tests.support.reports import report_of
from traceviz import api
from traceviz.analyses.derived.host.classes import CLASSES
from traceviz.analyses.registry import analyses
from traceviz.compare.report.document import SECTIONS
from traceviz.render.html.components.element import catalogue, definition
from traceviz.render.rows import MACHINE_ONLY, blocks_for_people
from traceviz.report import Bars, Facts, Grid, Report
from traceviz.report.findings.registry import codes

REPOSITORY = Path(__file__).parents[2]
DOCS, SAMPLES = REPOSITORY / "docs", REPOSITORY / "sample_traces"
TRACES = sorted(
    path
    for pattern in ("synthetic/*", "kineto/*", "xplane/*", "nsys/*.sqlite")
    for path in SAMPLES.glob(pattern)
    if path.suffix != ".py"
)
ARCHIVE_SECTIONS = {"population", "verdicts", "at_stake", "worst", "outliers", "coverage", "trend", "groups", "why"}


def test_definitions_are_sentences_of_at_most_160_characters():
    figures, of_sections = catalogue()
    texts = [*figures.values(), *(text for table in of_sections.values() for text in table.values())]
    assert len(texts) > 500
    assert [text for text in texts if not text.endswith(".") or len(text) > 160 or not text[0].isupper()] == []


def test_definitions_of_one_section_differ_from_the_general_ones_and_name_a_section():
    figures, of_sections = catalogue()
    known = {analysis.slug for analysis in analyses()} | {*SECTIONS} | {*codes()} | ARCHIVE_SECTIONS
    assert [slug for slug in of_sections if slug not in known] == []
    same = [(slug, key) for slug, table in of_sections.items() for key in table if figures.get(key) == table[key]]
    assert same == []


def test_a_definition_of_a_section_goes_before_the_general_one_and_a_prefix_comes_last():
    assert definition("high", "input_pipeline") == "From this input share on, a program is highly input-bound."
    assert definition("high", "measures") == "The most that it may be, 95 times of 100."
    assert definition("share.healthy", "cuda_api") == "The share on this side."
    assert definition("no_such_key") == ""


def test_the_14_classes_of_step_time_mean_what_the_code_says():
    texts = {c.key: definition(c.key) for c in CLASSES}
    assert texts == {c.key: f"{c.meaning[0].upper()}{c.meaning[1:]}." for c in CLASSES}
    assert len(texts) == 14


def test_every_name_of_the_json_report_that_is_documented_has_a_definition():
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| ?(.*?) ?\|$", (DOCS / "json.md").read_text(), re.MULTILINE)
    names = {(slug, name) for slug, *lists in rows for text in lists for name in text.split(", ") if name}
    assert len(names) > 300
    assert sorted(f"{slug}.{name}" for slug, name in names if not definition(name, slug)) == []


def test_figures_that_the_definitions_page_names_have_one():
    text = (DOCS / "definitions.md").read_text()
    sections = "|".join(analysis.slug for analysis in analyses())
    named = re.findall(rf"`({sections})\.(\w+)`", text)
    assert len(named) >= 2
    assert [f"{slug}.{name}" for slug, name in named if not definition(name, slug)] == []


def undefined(report: Report) -> set[str]:
    found = {f"run.{fact.key}" for fact in report.run if not definition(fact.key)}
    found |= {
        f"{finding.code}.{fact.key}"
        for finding in report.findings
        for fact in finding.evidence
        if not definition(fact.key, finding.code)
    }
    for section in report.sections:
        for block in blocks_for_people(section.blocks):
            keys: list[str] = []
            if isinstance(block, Facts):
                keys = [fact.key for fact in block.facts]
            elif isinstance(block, Grid):
                keys = [column.name for column in block.columns if column.importance < MACHINE_ONLY]
            elif isinstance(block, Bars):
                keys = [bar.key for bar in block.bars]
            found |= {f"{section.slug}.{key}" for key in keys if not definition(key, section.slug)}
    return found


@pytest.mark.process
@pytest.mark.parametrize("trace", TRACES, ids=lambda path: path.name)
def test_every_figure_of_a_sample_has_a_definition(trace):
    report = report_of(trace)
    assert len(report.run) >= 10
    assert undefined(report) == set()


@pytest.mark.process
def test_every_figure_of_a_comparison_of_3_sides_has_a_definition():
    names = ("input_bound", "healthy", "synchronisation")
    comparison = api.compare(*(SAMPLES / "synthetic" / f"{name}.sqlite" for name in names))
    assert undefined(api.document(comparison)) == set()
