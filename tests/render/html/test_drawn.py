"""Figures on pages: which, in which order, each in two widths; nothing twice."""

import re

from tests.compare.sections_of import run, side
from traceviz.compare.compare import compare
from traceviz.compare.report.document import document
from traceviz.render.options import RenderOptions
from traceviz.render.registry import renderer
from traceviz.report import TREND, Fact, Level, Point, Report, Section, Series, Verdict
from traceviz.report.verdicts import VerdictCode


def figures_of(page):
    """Return titles of the figures of a page, in order."""
    drawn = page.partition(' id="tv-figures"')[2].partition("</section>")[0]
    return re.findall(r'<title id="[^"]*">([^<]*)</title>', drawn)


def test_a_comparison_shows_its_sides_and_then_what_their_steps_consist_of_in_2_widths():
    sides = [
        side(name, run(8, input_wait=[wait] * 8, host_compute=[400] * 8)) for name, wait in (("a", 600), ("b", 10))
    ]
    page = renderer("html").render(document(compare(sides)), RenderOptions())
    assert figures_of(page) == ["Mean step of each side"] * 2 + ["Mean step by class of time"] * 2
    assert page.count('class="tv-wide-figure"') == page.count('class="tv-narrow-figure"') == 2
    places = [page.index(f' id="{slug}"') for slug in ("tv-verdict", "tv-figures", "effect")]
    assert places == sorted(places)


def test_a_trend_is_drawn_once():
    points = tuple(Point(str(place), 1.0 + place) for place in range(4))
    series = Series("x, 4 runs by date", "ns", points, (Level(0, 1.0), Level(2, 3.0)))
    about = (Fact("source", "trend", "x by date"),)
    report = Report(
        about, Verdict(VerdictCode.REGRESSION, "Worse."), (Section("trend", "Mean step", (series,)),), schema=TREND
    )
    page = renderer("html").render(report, RenderOptions())
    assert figures_of(page) == ["Mean step"] * 2
    assert 'class="tv-series"' not in page


def test_names_that_are_markup_stay_text_in_the_2_figures():
    sides = [side(f"<script>{name}</script>", run(8, input_wait=[9] * 8)) for name in "ab"]
    page = renderer("html").render(document(compare(sides)), RenderOptions())
    assert "<script>a" not in page
    assert "&lt;script&gt;a&lt;/script&gt;" in page
