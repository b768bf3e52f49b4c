"""Every fact and column of a comparison in JSON is documented, and nothing else is."""

import re
from dataclasses import replace

import pytest

from tests.compare.sections_of import facts, measures, parts, section, table, tagged
from tests.compare.sections_of import run as run_of_steps
from tests.compare.tables.studies import run, study
from tests.conftest import REPOSITORY
from traceviz import api
from traceviz.compare.compare import compare
from traceviz.compare.report.document import SECTIONS, document
from traceviz.compare.sides.sides import Side
from traceviz.report import OVER_TIME, STATED, Facts, Grid, Lane, Timeline

PAGE = REPOSITORY / "docs" / "compare.md"
SAMPLES = ("healthy", "input_bound", "pageable_copies")


def documented():
    rows = re.findall(r"^\| `(\w+)` \| ([^|]*?,[^|]*?|-) \| ([^|]*?,[^|]*?|-) \|$", PAGE.read_text(), re.MULTILINE)
    return {slug: tuple(set(cell.split(", ")) - {"-"} for cell in cells) for slug, *cells in rows}


@pytest.fixture(scope="module")
def documents(samples):
    """A document of 3 sides with every section, the same sides by a tag, and one with tables of a study."""
    sides = []
    for name in SAMPLES:
        report = api.report_on(samples / "synthetic" / f"{name}.sqlite")
        more = host(), measures(KEY=7, total_ns=9), parts(imports=2, steps=7), tagged(TAG=name), quality()
        sides.append(Side("SIDE", (replace(report, sections=(*report.sections, *more)),)))
    named = [replace(side, label=name) for side, name in zip(sides, SAMPLES, strict=True)]
    crossed = [run(TAG * n, TAG=TAG, N=n, learned={"NAME": n}) for TAG in (1, 2) for n in (1, 2, 4)]
    studies = {"cross": True, "curve": "N", "scaling": "N", "measures": ("step", "NAME")}
    return (
        document(compare(named)),
        document(compare(named, by=("TAG",))),
        document(study(crossed, ["TAG"], **studies)),
        document(compare([capture("a"), capture("b"), capture("c")])),
    )


def capture(name):
    """Return a side without steps, with events of every kind that whole captures are compared by."""
    events = "calls total_ns host_self_ns", (2, 10, 10)
    sections = (
        section("device_programs", table("By program", f"name {events[0]}", ("jit_f(1)", *events[1]))),
        section("operators", table("", f"name {events[0]}", ("aten::mm", *events[1]))),
        section("framework_ops", table("By op", f"op {events[0]}", ("MatMul", *events[1]))),
        section("ranges", table("With running numbers as N", f"name {events[0]}", ("epoch N", *events[1]))),
        section("lanes", table("Events, without those inside", "name calls self_ns", ("render", 2, 10))),
    )
    return Side(name, (replace(run_of_steps(0), sections=sections),))


def host():
    """Return resources as numbers and over time."""
    return section(
        "host", facts(cpu_mean=0.5, rss_max=5, threads_max=3), Timeline("Over the run", 0, 9, (Lane("memory", (1.0,)),))
    )


def quality():
    """Return a figure that a program states."""
    figure = ("validation loss", "validation", "lower", 0.5, 0.4, 3)
    course = (("validation loss", epoch, epoch, epoch, 0.5) for epoch in (1, 2, 3))
    return section(
        "quality",
        table(STATED, "label split better last best best_epoch", figure),
        table(OVER_TIME, "label epoch step start_ns value", *course),
    )


def names(documents, slug):
    blocks = [block for document_read in documents for block in document_read.blocks(slug)]
    keys = {fact.key for block in blocks if isinstance(block, Facts) for fact in block.facts}
    columns = {column.name for block in blocks if isinstance(block, Grid) for column in block.columns}
    return keys, {placeholder(column) for column in columns - {"total_ns"}}


def placeholder(column):
    """Return ``share.SIDE`` of ``share.healthy``, ``TAG=VALUE`` of ``N=4``."""
    column = {"tag.N": "tag.TAG"}.get(column, column)
    column = re.sub(r"^(final|scatter)\..*", r"\1.FIGURE", column)
    return "TAG=VALUE" if "=" in column else re.sub(r"^share\..*", "share.SIDE", column)


def test_every_section_is_documented():
    assert [*documented(), "gates"] == list(SECTIONS)


@pytest.mark.parametrize("slug", [slug for slug in SECTIONS if slug != "gates"])
def test_the_names_of_a_section_are_those_documented(documents, slug):
    assert names(documents, slug) == documented()[slug]
