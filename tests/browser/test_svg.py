"""Figures as SVG files in a browser: nothing fails, nothing is fetched, no text leaves the picture."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.browser.conftest import Open
from tests.render.svg.test_draw import each_kind
from traceviz.api import compare, document, report_on
from traceviz.render.figures.registry import figures
from traceviz.render.svg.draw import svg

pytestmark = pytest.mark.browser
KINETO, SYNTHETIC = "sample_traces/kineto", "sample_traces/synthetic"
SAMPLES = (
    *(f"{KINETO}/slow.pt.trace.json.gz", f"{KINETO}/repaired.pt.trace.json.gz", f"{KINETO}/two_ranks"),
    *(f"{SYNTHETIC}/launch_bound.sqlite", f"{SYNTHETIC}/gpu_keras_input_bound.xplane.pb"),
    *(f"{SYNTHETIC}/torch_four_ranks_straggler", "sample_traces/nsys/nvtx_loop.sqlite"),
)
OUTSIDE = """() => [...document.querySelectorAll("svg")].flatMap((root) => {
  const view = root.viewBox.baseVal, toRoot = root.getScreenCTM().inverse();
  return [...root.querySelectorAll("text")].filter((text) => {
    const box = text.getBBox(), matrix = toRoot.multiply(text.getScreenCTM());
    const x = box.x * matrix.a + matrix.e, y = box.y * matrix.d + matrix.f;
    return x < 0 || y < 0 || x + box.width > view.width || y + box.height > view.height;
  }).map((text) => text.textContent);
})"""
EMPTY = """() => [...document.querySelectorAll("svg")]
  .filter((root) => root.querySelectorAll("rect, path, circle").length < 2).map((root) => root.textContent)"""
NAMES = (
    *("<script>alert(1)</script>", "x" * 10_000, "\x1b[31mred\x1b[0m \x1b]0;title\x07", "核函数" * 40),
    *("\u202egnp.exe\u202c", "e\u0301" + "\u0300" * 500, "", "a long name of many words " * 20),
)


def check(open_page: Open, path: Path, drawn: Iterable[str]) -> None:
    """Figures in one page: it is quiet, all text is inside of its figure, and each has marks."""
    path.write_text(f"<!doctype html><meta charset=utf-8>{''.join(drawn)}", encoding="utf-8")
    opened = open_page(path, width=1000)
    opened.check_quiet()
    assert opened.page.evaluate(OUTSIDE) == []
    assert opened.page.evaluate(EMPTY) == []


@pytest.mark.parametrize("sample", SAMPLES)
def test_figures_of_a_sample_have_all_their_text_inside_at_3_widths(sample, open_page, tmp_path):
    drawn = [figure for _, figure in figures(report_on(Path(sample)))]
    assert drawn
    check(open_page, tmp_path / "all.html", (svg(figure, width) for figure in drawn for width in (320, 720, 1000)))


def test_figures_of_a_comparison_have_all_their_text_inside_at_2_widths(open_page, tmp_path):
    sides = (Path(SYNTHETIC, name) for name in ("launch_bound.sqlite", "healthy.sqlite"))
    drawn = dict(figures(document(compare(*sides))))
    assert {"sides", "classes", "kernels"} <= set(drawn)
    check(open_page, tmp_path / "all.html", (svg(figure, width) for figure in drawn.values() for width in (400, 720)))


@pytest.mark.parametrize("name", NAMES, ids=lambda name: ascii(name[:20]))
def test_hostile_and_long_names_stay_inside_of_all_7_kinds_of_figures(name, open_page, tmp_path):
    check(open_page, tmp_path / "all.html", (svg(figure, width) for figure in each_kind(name) for width in (400, 720)))


def test_a_figure_is_a_file_that_opens_without_a_page_and_is_dark_where_pages_are(open_page, tmp_path):
    path = tmp_path / "steps.svg"
    path.write_text(svg(next(figures(report_on(Path(SAMPLES[0]))))[1]), encoding="utf-8")
    background = "() => getComputedStyle(document.querySelector('rect')).fill"
    opened = [open_page(path, scheme=scheme) for scheme in ("light", "dark")]
    assert [one.page.evaluate(background) for one in opened] == ["rgb(255, 255, 255)", "rgb(20, 23, 28)"]
    for one in opened:
        one.check_quiet()
        assert one.page.evaluate(OUTSIDE) == []
