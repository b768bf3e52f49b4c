"""A page, the text and the JSON have the same figures."""

import json
import re
from pathlib import Path

import pytest

from tests.render.html.pages import Element, parsed, report_data
from tests.support.reports import report_of
from traceviz.core.units import format_change, format_ratio, format_value
from traceviz.render.html.page import page
from traceviz.render.json import dumps, loads
from traceviz.render.markdown import MarkdownRenderer
from traceviz.render.options import RenderOptions
from traceviz.render.rows import MACHINE_ONLY, blocks_for_people
from traceviz.report import Bars, Facts, Grid, Report

pytestmark = pytest.mark.process

SAMPLES = Path(__file__).parents[3] / "sample_traces"
TRACES = (
    "synthetic/input_bound.sqlite",
    "kineto/slow.pt.trace.json.gz",
    "xplane/keras_tensorboard",
    "kineto/two_ranks",
)


@pytest.fixture(scope="module", params=TRACES)
def report(request: pytest.FixtureRequest) -> Report:
    return report_of(SAMPLES / request.param)


def section_of(root: Element, slug: str) -> Element:
    return root.one("section", id=slug)


def test_a_page_holds_the_whole_report(report: Report) -> None:
    html = page(report, RenderOptions())
    data = report_data(html)
    assert loads(json.dumps(data)) == report
    assert len(html.encode()) < 400_000


def test_every_cell_of_every_table_is_the_value_of_the_report(report: Report) -> None:
    root = parsed(page(report, RenderOptions()))
    compared = 0
    for section in report.sections:
        grids = [block for block in blocks_for_people(section.blocks) if isinstance(block, Grid) and block.rows]
        grids = [grid for grid in grids if any(column.importance < MACHINE_ONLY for column in grid.columns)]
        tables = section_of(root, section.slug).find("table", class_="tv-grid") if grids else []
        assert len(tables) == len(grids)
        for grid, table in zip(grids, tables, strict=True):
            heads = [cell.text() for cell in table.one("thead").find("th")]
            columns = [column for column in grid.columns if column.importance < MACHINE_ONLY]
            columns = [column for column in columns if column.label in heads]
            positions = [grid.columns.index(column) for column in columns]
            rows = table.one("tbody").find("tr")
            assert len(rows) == len(grid.rows)
            for row, values in zip(rows, grid.rows, strict=True):
                cells = [cell for cell in row.children if isinstance(cell, Element)]
                for cell, column, position in zip(cells, columns, positions, strict=True):
                    if column.unit in {"text", "bool"}:
                        continue
                    value = values[position]
                    written = (format_change if column.signed else format_value)(value, column.unit)
                    assert cell.text() == written
                    assert cell.attributes["data-value"] == ("" if value is None else repr(value))
                    compared += 1
    assert compared > 100


def test_every_fact_and_every_part_of_a_bar_is_that_of_the_report(report: Report) -> None:
    root = parsed(page(report, RenderOptions()))
    for section in report.sections:
        element = section_of(root, section.slug) if blocks_for_people(section.blocks) else None
        for block in blocks_for_people(section.blocks):
            assert element is not None
            if isinstance(block, Facts):
                texts = [value.text() for value in element.find("dd")]
                for fact in block.facts:
                    if fact.unit != "text":
                        assert format_value(fact.value, fact.unit) in texts, fact
            if isinstance(block, Bars):
                cells = [cell.text() for cell in element.find("td", class_="tv-number")]
                for part in block.bars:
                    if part.share > 0:
                        assert format_value(part.value, block.unit) in cells
                        assert format_ratio(part.share) in cells


def test_the_numbers_of_the_tables_are_those_of_the_text(report: Report) -> None:
    root = parsed(page(report, RenderOptions()))
    for section in report.sections:
        grids = [block for block in blocks_for_people(section.blocks) if isinstance(block, Grid) and block.rows]
        if not grids:
            continue
        text = MarkdownRenderer().render(report, RenderOptions(top=10_000, sections=(section.slug,)))
        written = sorted(number for numbers in _markdown_tables(text) for number in numbers)
        tables = section_of(root, section.slug).find("table", class_="tv-grid")
        bodies = [table.one("tbody") for table in tables]
        cells = [cell for body in bodies for cell in body.find("td", class_="tv-number")]
        assert sorted(cell.text() for cell in cells) == written, section.slug


def _markdown_tables(text: str) -> list[list[str]]:
    """Return the cells of columns of numbers, by table; not those of bars and timelines, which pages draw otherwise."""
    found = []
    for table in re.findall(r"(?:^\|.*\|\n?)+", text, re.MULTILINE):
        lines = [
            [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip()[1:-1])] for line in table.strip().split("\n")
        ]
        if lines[0][:2] == ["part", "value"] or lines[0][0] == "lane":
            continue
        right = [position for position, cell in enumerate(lines[1]) if cell == "---:"]
        found.append([re.sub(r"[`\\]|<[^>]*>", "", row[position]) for row in lines[2:] for position in right])
    return found


def test_the_json_of_a_page_is_that_of_the_json_format(report: Report) -> None:
    data = report_data(page(report, RenderOptions()))
    assert data == json.loads(dumps(report))
    assert data["schema"] == "traceviz.report/1"
