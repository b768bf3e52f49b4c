"""Reports, tables, comparisons and archives in an executed notebook: pieces of a page, with short texts."""

from __future__ import annotations

import html
import re

import pytest

import traceviz
from tests.conftest import REPOSITORY
from tests.notebook.executed import Output, run_notebook

pytestmark = pytest.mark.process

SAMPLES = REPOSITORY / "sample_traces/synthetic"
CELLS = f"""
import traceviz
---
report = traceviz.analyze({str(SAMPLES / "input_bound.sqlite")!r}); report
---
tables = traceviz.open({str(SAMPLES / "input_bound.sqlite")!r}); tables
---
traceviz.compare_runs({str(SAMPLES / "input_bound.sqlite")!r}, {str(SAMPLES / "healthy.sqlite")!r})
---
report.section("kernels")
---
report.grid("kernels")
---
archive = traceviz.Archive("archive"); archive
---
archive.add({str(SAMPLES / "input_bound.sqlite")!r}, {str(SAMPLES / "healthy.sqlite")!r}, workers=1); archive
---
archive.report()
---
from traceviz.archive.query.answer import leading
from traceviz.archive.query.engine import Engine
QUERY = "SELECT name, sum(dur_ns) AS total_ns FROM kernels GROUP BY name ORDER BY 2 DESC"
with Engine(archive.store) as engine, engine.answer(QUERY) as batches:
    answer = leading(batches, 3)
answer
---
from traceviz.archive.trends.trend import trend
trend(archive.rows(), "step_median")
---
dir(traceviz), dir(tables)
"""
NAMES = (
    *("import", "report", "tables", "comparison", "section", "grid", "no archive", "archive", "population", "answer"),
    *("trend", "names"),
)
DRAWN = [name for name in NAMES if name not in {"import", "names"}]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Output]:
    cells = [cell.strip() for cell in CELLS.split("---\n")]
    return dict(zip(NAMES, run_notebook(cells, tmp_path_factory.mktemp("notebook")), strict=True))


def words(markup: str) -> str:
    """Return the visible text: without style and tags, with single spaces."""
    bare = re.sub(r"<style>.*?</style>|<[^>]*>", " ", markup, flags=re.DOTALL)
    return " ".join(html.unescape(bare).split())


@pytest.mark.parametrize("name", DRAWN)
def test_what_is_shown_has_a_style_of_its_own_and_no_script_and_asks_for_nothing(outputs, name: str) -> None:
    shown = outputs[name].html
    assert outputs[name].errors == ()
    assert shown.startswith('<div class="tv-fragment"><style>')
    assert re.findall(r"<script|\son\w+=|\sstyle=|javascript:|\bsrc=|@import|url\(|<link|<iframe", shown) == []
    assert len(shown) < 200_000


@pytest.mark.parametrize("name", DRAWN)
def test_every_rule_of_the_style_is_about_traceviz_alone(outputs, name: str) -> None:
    style = re.search(r"<style>(.*?)</style>", outputs[name].html, re.DOTALL)[1]
    outside = re.sub(r"/\*.*?\*/", "", style, flags=re.DOTALL)
    while (inner := re.sub(r"\{[^{}]*\}", ";", outside)) != outside:
        outside = inner
    selectors = [selector.strip() for rule in outside.split(";") for selector in rule.split(",") if selector.strip()]
    assert len(selectors) >= 4
    assert [selector for selector in selectors if ".tv-fragment" not in selector] == []


def test_the_text_of_a_report_is_its_verdict_and_how_to_see_more(outputs) -> None:
    lines = outputs["report"].plain.splitlines()
    assert lines[:2] == [
        "Input-bound: steps wait for data 46.3 % of their time",
        'Up to 1.9× faster; start at "data loading"',
    ]
    assert lines[2] == "Findings: TV101 input-bound."
    assert lines[3].startswith("print(traceviz.to_text(report)) shows all of its 17 sections.")
    assert len(lines) == 4


def test_a_report_has_the_figures_of_its_text(outputs) -> None:
    report = traceviz.analyze(SAMPLES / "input_bound.sqlite")
    shown = words(outputs["report"].html)
    assert report.verdict.headline in shown
    assert report.verdict.consequence in shown
    text = " ".join(traceviz.to_text(report, options=traceviz.RenderOptions(width=1000)).split())
    for figure in ("8.10 ms", "53.5 %", "126 ms", "109 ms", "46.3 %", "232 ms"):
        assert figure in shown
        assert figure in text


def test_all_sections_of_a_report_are_folded_below_its_first_screen(outputs) -> None:
    shown = outputs["report"].html
    assert "All of it: 19 sections" in words(shown)
    assert shown.count('<details class="tv-folded">') == 20
    assert 'class="tv-folded" open' not in shown


def test_tables_are_listed_with_their_rows_and_what_these_are(outputs) -> None:
    assert "kernels 510 one execution of a kernel" in words(outputs["tables"].html)
    assert outputs["tables"].plain.startswith("Trace of 14 tables; rows: run 1, devices 1, processes 1, threads 1, ker")


def test_a_comparison_says_which_side_is_faster(outputs) -> None:
    assert outputs["comparison"].plain.startswith("1.85× faster: mean step 8.10 → 4.38 ms")
    assert "1.85× faster: mean step 8.10 → 4.38 ms" in words(outputs["comparison"].html)


def test_an_archive_lists_its_traces_or_says_how_to_add_some(outputs) -> None:
    assert "archive.add(PATH, ...) makes it" in outputs["no archive"].plain
    assert "healthy.sqlite nsys PyTorch" in words(outputs["archive"].html)
    assert outputs["archive"].plain.endswith("2 traces.")


def test_a_population_and_a_trend_are_shown_as_their_reports(outputs) -> None:
    assert outputs["population"].plain.startswith("1 of 2 traces waits for input.")
    assert "CUDA API time by function, for each framework" in words(outputs["population"].html)
    assert "Trend('step_median', 1 group)" in outputs["trend"].plain


def test_an_answer_has_units_and_says_that_there_is_more(outputs) -> None:
    shown = words(outputs["answer"].html)
    assert re.search(r"sm80_xmma_wgrad\S+ \d+\.\d ms", shown)
    assert "There are more rows." in shown
    assert outputs["answer"].plain.startswith("Leading(3 rows and more of name, total_ns)")


def test_a_table_of_a_report_is_a_frame_as_text(outputs) -> None:
    assert "shape: (14, 12)" in outputs["grid"].plain
    assert outputs["section"].plain == "Section kernels: Kernels, 6 blocks"


def test_completion_offers_public_names_and_the_tables_of_the_trace(outputs) -> None:
    offered = outputs["names"].plain
    assert all(repr(name) in offered for name in ("analyze", "compare_runs", "Archive", "kernels", "to_pandas"))
    assert "'import_module'" not in offered
