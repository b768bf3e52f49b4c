"""Fragments of reports within pages of others: their theme, their rules for tables, hostile names, and no script."""

from __future__ import annotations

from pathlib import Path

import pytest

import traceviz
from tests.browser.conftest import Open
from tests.conftest import REPOSITORY
from traceviz.render.html.fragment import fragment
from traceviz.report import Column, Fact, Grid, Report, Section, Verdict
from traceviz.report.verdicts import VerdictCode

pytestmark = pytest.mark.browser

SAMPLE = REPOSITORY / "sample_traces/synthetic/input_bound.sqlite"
DARK, LIGHT = "rgb(20, 23, 28)", "rgb(255, 255, 255)"
# JupyterLab's rules for tables in outputs.
RULES = """
.jp-RenderedHTMLCommon table { table-layout: fixed; font-size: 31px; margin-left: auto; }
.jp-RenderedHTMLCommon:not(#x) td, .jp-RenderedHTMLCommon th, .jp-RenderedHTMLCommon tr { text-align: right; }
.jp-RenderedHTMLCommon tbody tr:nth-child(odd) { background: rgb(1, 2, 3); }
"""
HOSTILE = '</style><script>document.title="x"</script><img src=x onerror=alert(1)>\u202e" onclick="alert(2)'


def page(folder: Path, body: str, shown: str) -> Path:
    path = folder / "notebook.html"
    path.write_text(
        f"<!doctype html><meta charset=utf-8><title>n</title><style>{RULES}</style>"
        f'<body {body}><div class="jp-RenderedHTMLCommon"><table id="own"><tbody><tr><td>1</td></tr></tbody></table>'
        f"{shown}</div></body>"
    )
    return path


def style_of(opened, selector: str, name: str) -> str:
    return opened.page.locator(selector).first.evaluate(f"element => getComputedStyle(element)['{name}']")


@pytest.fixture(scope="module")
def shown() -> str:
    return str(fragment(traceviz.analyze(SAMPLE)))


@pytest.mark.parametrize(
    ("body", "background"),
    [
        ('data-jp-theme-light="true"', LIGHT),
        ('data-jp-theme-light="false"', DARK),
        ('class="vscode-dark"', DARK),
        ('class="vscode-light"', LIGHT),
        ('class="vscode-high-contrast"', DARK),
        ('class="vscode-high-contrast vscode-high-contrast-light"', LIGHT),
        ('class="dark"', DARK),
        ("", LIGHT),
    ],
)
def test_a_fragment_is_as_dark_as_its_notebook_whatever_the_system_prefers(
    open_page: Open, tmp_path: Path, shown: str, body: str, background: str
) -> None:
    for scheme in ("light", "dark"):
        opened = open_page(page(tmp_path, body, shown), scheme=scheme)
        assert style_of(opened, ".tv-fragment", "backgroundColor") == background
        opened.check_quiet()


def test_rules_of_the_notebook_for_tables_do_not_reach_in_and_ours_not_out(
    open_page: Open, tmp_path: Path, shown: str
) -> None:
    opened = open_page(page(tmp_path, "", shown))
    assert style_of(opened, ".tv-grid tbody th", "textAlign") == "left"
    assert style_of(opened, ".tv-grid tbody .tv-number", "textAlign") == "right"
    assert style_of(opened, ".tv-grid", "tableLayout") == "auto"
    assert style_of(opened, ".tv-grid", "fontSize") == "13px"
    assert style_of(opened, ".tv-grid tbody tr", "backgroundColor") == "rgba(0, 0, 0, 0)"
    assert style_of(opened, "#own", "fontSize") == "31px"
    assert style_of(opened, "#own tbody tr", "backgroundColor") == "rgb(1, 2, 3)"


@pytest.mark.parametrize("width", [360, 1400])
def test_a_fragment_is_no_wider_than_its_page(open_page: Open, tmp_path: Path, shown: str, width: int) -> None:
    opened = open_page(page(tmp_path, "", shown), width=width)
    opened.page.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width


def test_names_that_are_html_do_nothing(open_page: Open, tmp_path: Path) -> None:
    grid = Grid((Column("name", HOSTILE),), ((HOSTILE,), (HOSTILE * 20_000,)), title=HOSTILE)
    report = Report(
        (Fact("source", HOSTILE, HOSTILE),), Verdict(VerdictCode.NONE, HOSTILE), (Section("x", HOSTILE, (grid,)),)
    )
    opened = open_page(page(tmp_path, "", str(fragment(report))))
    opened.page.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")
    assert opened.page.locator(".tv-fragment :is(script, img)").count() == 0
    assert opened.page.title() == "n"
    opened.check_quiet()
    assert len(fragment(report)) < 60_000
