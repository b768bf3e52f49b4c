"""Pages of comparisons, archives and trends in a browser: figures fit, load nothing, and axe finds nothing."""

from __future__ import annotations

import pytest

from tests.archive.catalogues import catalogue_of, nightly
from tests.browser.conftest import Open
from tests.browser.test_report_page import audit
from tests.compare.sections_of import run, side
from traceviz.archive.population.observations import figure
from traceviz.archive.population.population import population
from traceviz.archive.trends.report import document as trend_document
from traceviz.archive.trends.trend import trend
from traceviz.compare.compare import compare
from traceviz.compare.report.document import document
from traceviz.render.html.page import page as page_of
from traceviz.render.options import RenderOptions
from traceviz.report import Report

pytestmark = pytest.mark.browser


def comparison() -> Report:
    """Return 4 sides with long names, whose steps wait less and less for input."""
    waits = {f"a_rather_long_name_of_a_side_{wait}": wait for wait in (600, 300, 100, 10)}
    sides = (
        side(name, run(9, input_wait=[wait] * 9, device_compute=[400] * 9, host_compute=[20] * 9))
        for name, wait in waits.items()
    )
    return document(compare(tuple(sides)))


def of_trend() -> Report:
    """Return ten nights at 200 ms, then ten at 260 ms."""
    return trend_document(trend(catalogue_of(*nightly([200e6] * 10 + [260e6] * 10)), figure("step_median")))


def archive() -> Report:
    """Return nine traces; one waits for input."""
    finding = {"code": "TV101", "name": "input-bound", "severity": "error", "share": 0.4, "stake_ns": 4_000_000}
    usual = {"framework": "torch", "gpu": "T4", "devices": 1, "span_ns": 10_000_000, "verdict": "not input-bound"}
    rows = [{**usual, "source": f"run{n}.json", "input_share": 0.01 + n / 1000} for n in range(8)]
    worst = {**usual, "source": "worst.json", "input_share": 0.6, "verdict": "highly input-bound"}
    return population(catalogue_of(*rows, {**worst, "findings": [finding]}))


PAGES = {"comparison": (comparison, 2), "trend": (of_trend, 1), "archive": (archive, 2)}
"""Each with the number of its figures."""


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [360, 1400])
def test_figures_fit_a_page_of_360_and_of_1400_pixels(open_page: Open, tmp_path, name, width):
    made, count = PAGES[name]
    path = tmp_path / "page.html"
    path.write_text(page_of(made(), RenderOptions()), encoding="utf-8")
    opened = open_page(path, width=width)
    shown = opened.page.locator(".tv-drawn svg:visible")
    assert shown.count() == count
    boxes = [shown.nth(place).bounding_box() for place in range(count)]
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= width for box in boxes)
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    opened.check_quiet()


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_2_kinds_of_screens(open_page: Open, tmp_path, name, scheme):
    path = tmp_path / "page.html"
    path.write_text(page_of(PAGES[name][0](), RenderOptions()), encoding="utf-8")
    assert audit(open_page(path, scheme=scheme).page) == []
