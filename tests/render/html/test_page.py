"""The page and the fragment as a text: what is in it, in which order, and what is never in it."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings

from tests.compare.sections_of import run, side
from tests.render.html.pages import parsed, report_data
from tests.render.report_strategies import REPORTS
from tests.render.sample_report import sample_report
from traceviz.compare.compare import compare
from traceviz.compare.report.document import document
from traceviz.render.html.fragment import fragment
from traceviz.render.html.page import MOST_BYTES, page
from traceviz.render.json import dumps, loads
from traceviz.render.options import RenderOptions
from traceviz.render.registry import renderer
from traceviz.render.why import why
from traceviz.report import (
    COMPARISON,
    TREND,
    Bar,
    Bars,
    Candidate,
    Column,
    Fact,
    Facts,
    Grid,
    Level,
    Point,
    Report,
    Section,
    Series,
    Verdict,
)
from traceviz.report.pictures.values import Pictures, Place
from traceviz.report.verdicts import VerdictCode
from traceviz.testing import HOSTILE_NAMES, hostile_report


def made(report: Report, **options) -> str:
    return page(report, RenderOptions(**options))


def large(rows: int, name: str = "kernel", audience: str = "all") -> Report:
    columns = (Column("name", "Kernel", "text", 0), Column("total_ns", "Total", "ns", 0, bar=True, additive=True))
    grid = Grid(columns, tuple((f"{name} {number}", rows - number) for number in range(rows)), audience=audience)
    run = (Fact("source", "trace", "large.sqlite"),)
    return Report(run, Verdict(VerdictCode.NONE, "21 kernels."), (Section("kernels", "Kernels", (grid,)),))


def test_the_parts_of_a_page_come_in_this_order():
    root = parsed(made(sample_report()))
    ids = [section.attributes["id"] for section in root.find("section")]
    assert ids[:3] == ["tv-verdict", "tv-bars", "findings"]
    assert ids[-2:] == ["tv-skipped", "notes"]
    shown = [section.slug for section in sample_report().sections]
    assert [name for name in ids if name in shown] == shown
    assert len(root.one("body").find("h1")) == 1


def test_the_verdict_stands_before_the_bar():
    root = parsed(made(sample_report()))
    verdict = root.one("p", class_="tv-verdict").text().replace("\xa0", " ")
    assert verdict == sample_report().verdict.headline
    assert root.one("p", class_="tv-consequence").text() == sample_report().verdict.consequence
    assert len(root.one("section", id="tv-bars").find("figure")) == 1


def test_a_page_allows_its_own_style_and_script_and_nothing_else():
    html = made(sample_report())
    root = parsed(html)
    policy = root.one("meta", http_equiv="Content-Security-Policy").attributes["content"] or ""
    style, script = root.one("style").text(), root.one("script", type_="module").text()
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script)]
    assert policy.split("; ") == [
        "default-src 'none'",
        f"style-src 'sha256-{hashes[0]}'",
        f"script-src 'sha256-{hashes[1]}'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]


def test_no_element_has_a_style_or_a_handler_and_none_loads_anything():
    root = parsed(made(sample_report()))
    names = {name for element in root.all() for name in element.attributes}
    assert [name for name in names if name == "style" or name.startswith("on") or name == "src"] == []
    assert [element.tag for element in root.all() if element.tag in {"link", "img", "iframe", "object", "base"}] == []
    links = [element.attributes["href"] or "" for element in root.find("a")]
    assert [link for link in links if not link.startswith(("#", "https://"))] == []


def test_the_script_is_plain_modules_without_imports_or_ways_to_make_markup():
    script = parsed(made(sample_report())).one("script", type_="module").text()
    assert re.findall(r"^(?:import|export)\b.*", script, re.MULTILINE) == []
    assert (
        re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|localStorage|fetch\(", script) == []
    )


@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=lambda name: ascii(name[:20]))
def test_hostile_names_stay_text_of_less_than_2_000_characters(name):
    root = parsed(made(hostile_report(name)))
    assert [element.tag for element in root.one("main").all() if element.tag in {"script", "style", "b1"}] == []
    texts = [child for element in root.one("main").all() for child in element.children if isinstance(child, str)]
    assert "\u202e" not in "".join(texts)
    assert re.findall(r"x{1999}", made(hostile_report(name))) == []


@given(report=REPORTS)
@settings(max_examples=25)
def test_every_report_closes_what_it_opens_and_holds_itself(report):
    html = made(report)
    parsed(html)
    assert loads(dumps(report)) == report
    assert len(report_data(html)["sections"]) == len(report.sections)


def test_a_name_that_ends_a_script_stays_within_the_data():
    html = made(large(2, "</script><script>alert(1)</script>"))
    assert html.count("<script") == 2
    assert report_data(html)["sections"][0]["blocks"][0]["rows"][0]["name"] == "</script><script>alert(1)</script> 0"


def test_a_table_of_100_000_rows_leaves_a_page_below_its_limit_that_says_how_to_get_the_rest():
    html = made(large(100_000))
    root = parsed(html)
    rows = len(root.one("section", id="kernels").one("tbody").find("tr"))
    assert len(html.encode()) < MOST_BYTES == 400_000
    assert 100 <= rows <= 1_000
    said = root.one("p", class_="tv-elsewhere").text()
    assert said == (
        f"{100_000 - rows:,} more rows are not here; all of them: "
        "traceviz report large.sqlite --section kernels --format csv"
    )
    assert len(report_data(html)["sections"][0]["blocks"][0]["rows"]) == rows


def test_grids_that_only_programs_read_go_first():
    html = made(large(50_000, audience="machine"))
    assert len(html.encode()) < 400_000
    assert report_data(html)["sections"][0]["blocks"] == []


def test_a_small_table_is_whole():
    html = made(large(57))
    root = parsed(html)
    body = root.one("section", id="kernels").one("tbody")
    assert (len(body.find("tr")), len(body.find("tr", class_="tv-more"))) == (57, 47)
    assert root.find("p", class_="tv-elsewhere") == []
    assert report_data(html)["sections"][0]["blocks"][0]["rows"][56] == {"name": "kernel 56", "total_ns": 1}


def test_top_says_how_many_rows_are_seen_before_a_table_is_unfolded():
    body = parsed(made(large(57), top=3)).one("section", id="kernels").one("tbody")
    assert len(body.find("tr")) - len(body.find("tr", class_="tv-more")) == 3


def test_sections_that_were_asked_for_are_alone():
    root = parsed(made(sample_report(), sections=("kernels",)))
    assert [s.attributes["id"] for s in root.find("section") if s.attributes.get("data-section")] == ["kernels"]


def test_a_command_with_a_space_in_the_name_is_quoted():
    report = Report((Fact("source", "trace", "my run; rm -rf"),), Verdict(VerdictCode.NONE, ""))
    assert parsed(made(report)).one("body").attributes["data-command"] == "traceviz report 'my run; rm -rf'"


def test_the_command_to_copy_works_from_any_folder_if_the_caller_knows_it():
    root = parsed(made(sample_report(), command="traceviz report '/runs/my run'"))
    assert root.one("body").attributes["data-command"] == "traceviz report '/runs/my run'"


def test_a_comparison_has_no_command_that_one_name_could_tell():
    report = Report((Fact("source", "comparison", "a → b"),), Verdict(VerdictCode.NONE, "Faster."), schema=COMPARISON)
    root = parsed(made(report))
    assert root.one("body").attributes["data-command"] == ""
    assert root.one("p", class_="tv-kind").text() == "traceviz · Comparison"


def test_findings_fold_open_to_evidence_advice_and_the_meaning_of_their_rule():
    first, *others = parsed(made(sample_report())).find("details", class_="tv-finding")
    assert "open" in first.attributes
    assert ["open" in other.attributes for other in others] == [False] * len(others)
    assert len(first.one("dl", class_="tv-facts").find("dd")) >= 1
    assert "traceviz explain TV" in first.one("details", class_="tv-explain").text()


def test_a_finding_has_a_button_for_each_of_its_places():
    places = (Place("TV101", 1_000, 5_000, "rank0.steps", "the longest wait, 4.00 µs"), Place("TV999", 1, 2, "", "no"))
    html = page(sample_report(), RenderOptions(), Pictures(places=places))
    (button,) = parsed(html).find("button", class_="tv-show")
    wanted = {"data-start": "1000", "data-end": "5000", "data-lane": "rank0.steps"}
    assert {name: button.attributes[name] for name in wanted} == wanted
    assert button.text() == "Show in the timeline: the longest wait, 4.00 µs"


def test_numbers_carry_their_base_value_and_what_was_not_measured_none():
    columns = (Column("name", "Name", "text", 0), Column("total_ns", "Total", "ns", 0, additive=True))
    grid = Grid(columns, (("a", 1_500_000), ("b", None)), complete=True)
    report = Report((), Verdict(VerdictCode.NONE, ""), (Section("kernels", "Kernels", (Facts(()), grid)),))
    cells = parsed(made(report)).find("td", class_="tv-number")
    assert [(cell.text(), cell.attributes["data-value"]) for cell in cells] == [("1.50 ms", "1500000"), ("-", "")]


def test_tables_have_captions_scopes_and_heads():
    for table in parsed(made(sample_report())).find("table", class_="tv-grid"):
        assert len(table.find("caption")) == 1
        assert {cell.attributes["scope"] for cell in table.find("th")} <= {"col", "row"}


def test_a_part_of_the_first_bar_means_what_it_means_in_its_section():
    html = made(
        Report(
            (),
            Verdict(VerdictCode.NONE, ""),
            (
                Section(
                    "whole_run",
                    "The whole run",
                    (
                        Bars(
                            "",
                            "10 s",
                            "ns",
                            (Bar("compilation", "compilation", 6, 0.6), Bar("steps", "steady steps", 4, 0.4)),
                        ),
                    ),
                ),
            ),
        )
    )
    terms = parsed(html).one("section", id="tv-bars").find("span", class_="tv-term")
    assert terms[0].attributes["title"] == "The framework traces or compiles, anywhere in the run."
    assert len(terms) == 2


def test_why_says_once_what_may_take_the_time_and_copies_no_section_that_does_not_exist():
    leads = Candidate("input", "input", 6, 0.6, "steady steps", "measured", "TV101", "The largest.", leads=True)
    report = replace(sample_report(), verdict=Verdict("input", "It waits.", "input", (leads,)))
    root = parsed(made(why(report)))
    assert len(parsed(made(report)).one("section", id="tv-bars").find("table", class_="tv-grid")) == 1
    assert len(root.find("table", class_="tv-grid")) == 1
    assert root.one("section", id="why").attributes.get("data-section") is None


def test_a_fragment_is_one_element_without_script_that_says_the_verdict():
    root = parsed(fragment(sample_report()))
    (only,) = root.children
    assert (only.tag, root.find("script"), len(root.find("style"))) == ("div", [], 1)
    assert root.one("p", class_="tv-verdict").text().replace("\xa0", " ") == sample_report().verdict.headline


def outermost(style: str) -> list[str]:
    """Return the texts before the outermost braces."""
    while True:
        style, count = re.subn(r"\{[^{}]*\{[^{}]*\}", "{", style)
        if not count:
            return [text.strip() for text in re.findall(r"([^{}]+)\{[^{}]*\}", style)]


def test_each_of_more_than_4_rules_of_its_style_is_about_a_class_of_traceviz():
    style = parsed(fragment(sample_report())).one("style").text()
    found = outermost(re.sub(r"/\*.*?\*/", "", style, flags=re.DOTALL))
    assert len(found) > 4
    assert [name for text in found for name in text.split(",\n") if not re.search(r"\.tv-|^@media", name)] == []


def test_tables_of_a_fragment_hold_what_they_show_and_the_sum_of_the_rest():
    root = parsed(fragment(sample_report()))
    assert root.find("tr", class_="tv-more") == []
    assert [element.tag for element in root.all() if element.tag in {"button", "input"}] == []


def test_hostile_names_open_no_element_of_20():
    for name in HOSTILE_NAMES:
        root = parsed(fragment(hostile_report(name)))
        assert root.find("script") == []


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
