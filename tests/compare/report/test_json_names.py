"""Every fact and column of a comparison in JSON is documented, and nothing else is."""

import re
from dataclasses import replace

import pytest

from tests.compare.sections_of import facts, section, tagged
from tests.conftest import REPOSITORY
from traceviz import api
from traceviz.compare.compare import compare
from traceviz.compare.report.document import SECTIONS, document
from traceviz.compare.sides.sides import Side
from traceviz.report import Facts, Grid

PAGE = REPOSITORY / "docs" / "compare.md"
SAMPLES = ("healthy", "input_bound", "pageable_copies")


def documented():
    rows = re.findall(r"^\| `(\w+)` \| ([^|]*?,[^|]*?) \| ([^|]*?,[^|]*?) \|$", PAGE.read_text(), re.MULTILINE)
    return {slug: (facts.split(", "), columns.split(", ")) for slug, facts, columns in rows}


@pytest.fixture(scope="module")
def documents(samples):
    """A document of 3 sides with every section, and the same sides by a tag."""
    sides = []
    for name in SAMPLES:
        report = api.report_on(samples / "synthetic" / f"{name}.sqlite")
        more = section("host", facts(cpu_mean=0.5, rss_max=5, threads_max=3)), tagged(TAG=name)
        sides.append(Side("SIDE", (replace(report, sections=(*report.sections, *more)),)))
    named = [replace(side, label=name) for side, name in zip(sides, SAMPLES, strict=True)]
    return document(compare(named)), document(compare(named, by=("TAG",)))


def names(documents, slug):
    blocks = [block for document_read in documents for block in document_read.section(slug).blocks]
    keys = {fact.key for block in blocks if isinstance(block, Facts) for fact in block.facts}
    columns = {column.name for block in blocks if isinstance(block, Grid) for column in block.columns}
    return keys, {"share.SIDE" if column.startswith("share.") else column for column in columns}


def test_every_section_is_documented():
    assert [*documented(), "gates"] == list(SECTIONS)


@pytest.mark.parametrize("slug", [slug for slug in SECTIONS if slug != "gates"])
def test_the_names_of_a_section_are_those_documented(documents, slug):
    expected = documented()[slug]
    assert names(documents, slug) == (set(expected[0]), set(expected[1]))
