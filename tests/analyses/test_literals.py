"""Every fact and every column of every section, worked by hand, with more than one row of the trace behind each."""

import importlib
from pathlib import Path

import pytest

from tests.analyses.literals.literal import Literal, figures_of
from traceviz.analyses.registry import SLUGS
from traceviz.api import report_on

FOLDER = Path(__file__).parent / "literals"
LITERALS: list[Literal] = [
    literal
    for path in sorted(FOLDER.rglob("*.py"))
    if path.stem in SLUGS
    for literal in importlib.import_module(f"tests.analyses.literals.{path.parent.name}.{path.stem}").LITERALS
]
UNSEEN: dict[str, str] = dict.fromkeys(
    (f"input_pipeline: What the host did while the device was idle/{column}" for column in ("inside", "path")),
    "what no range and no pipeline recorded has none",
)
"""Figures of the samples that no literal has, with the reason: ``"slug: title/key": "why"``."""
every_literal = pytest.mark.parametrize(
    "literal", LITERALS, ids=lambda literal: f"{literal.slug} {literal.name}".strip()
)


@every_literal
def test_every_fact_and_every_cell_is_as_worked_by_hand(literal):
    literal.check()


@pytest.mark.slow
@every_literal
def test_more_than_one_row_stands_behind_every_number(literal):
    assert literal.stands_on_one_row() == set(literal.of_one_row)


def test_every_section_has_a_literal():
    assert {literal.slug for literal in LITERALS} == set(SLUGS)


@pytest.mark.slow
def test_every_figure_that_a_sample_shows_has_a_literal(samples):
    worked = {f"{literal.slug}: {name}" for literal in LITERALS for name in literal.names()}
    shown = {
        f"{section.slug}: {title}/{key}"
        for folder in ("kineto", "nsys", "synthetic", "xplane")
        for path in sorted((samples / folder).iterdir())
        for section in report_on(path).sections
        for title, found in figures_of(section).items()
        for key in found
    }
    assert shown - worked == set(UNSEEN)
