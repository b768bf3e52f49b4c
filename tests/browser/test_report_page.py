"""The page of a report in a browser: sort, filter, fold, search, copy, theme, print, keyboard, screen reader."""

from __future__ import annotations

from pathlib import Path

import axe_playwright_python
import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Open, Opened
from tests.render.sample_report import sample_report
from traceviz.render.html.page import page as page_of
from traceviz.render.options import RenderOptions
from traceviz.report import Column, Fact, Grid, Report, Section, Verdict
from traceviz.report.pictures.values import Pictures, Place
from traceviz.report.verdicts import VerdictCode
from traceviz.testing import HOSTILE_NAMES, hostile_report

pytestmark = pytest.mark.browser

AXE = Path(axe_playwright_python.__file__).parent / "axe.min.js"
WIDTHS = (360, 800, 1400, 2560)


def table(rows: int = 30) -> Report:
    """Return one table of kernels whose times rise, with a column that was measured for every other row."""
    columns = (
        Column("name", "Kernel", "text", 0),
        Column("calls", "Calls", "count", 0),
        Column("total_ns", "Total", "ns", 0, bar=True),
    )
    values = tuple(
        (f"kernel {number}", None if number % 2 else number * 100, (number + 1) * 900_000) for number in range(rows)
    )
    other = Grid((Column("name", "Function", "text", 0),), (("cudaMalloc",), ("cudaFree",)))
    run = (Fact("source", "trace", "run.sqlite"),)
    sections = (Section("kernels", "Kernels", (Grid(columns, values),)), Section("cuda_api", "Calls", (other,)))
    return Report(run, Verdict(VerdictCode.NONE, "Thirty kernels."), sections)


@pytest.fixture
def show(open_page: Open, tmp_path: Path):
    def shown(report: Report, pictures: Pictures | None = None, **how) -> Opened:
        path = tmp_path / "report.html"
        path.write_text(page_of(report, RenderOptions(), pictures), encoding="utf-8")
        return open_page(path, **how)

    return shown


def names(page: Page) -> list[str]:
    """Return the first cells of the rows of the first table that are to be seen."""
    cells = page.locator("#kernels tbody tr:visible > :first-child")
    return cells.all_text_contents()


def audit(page: Page) -> list[str]:
    """Return the findings of axe: rules and elements. The page's own policy forbids scripts that are added to it."""
    found = page.evaluate(f"(() => {{ {AXE.read_text()} }})(); axe.run({{ resultTypes: ['violations'] }})")
    return [f"{item['id']}: {[node['html'][:120] for node in item['nodes'][:3]]}" for item in found["violations"]]


def test_a_page_is_quiet_and_asks_for_nothing(show):
    opened = show(sample_report())
    opened.page.wait_for_load_state("networkidle")
    opened.check_quiet()
    assert opened.page.title() == "resnet50_a100.nsys-rep · traceviz"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_0_faults(show, scheme):
    opened = show(sample_report(), scheme=scheme)
    opened.page.evaluate("document.querySelectorAll('details').forEach((details) => (details.open = true))")
    assert audit(opened.page) == []


def test_axe_finds_0_faults_in_a_narrow_page_with_a_sorted_and_unfolded_table(show):
    opened = show(table(), width=360)
    opened.page.get_by_role("button", name="Total").click()
    opened.page.get_by_role("button", name="Show all 30 rows").click()
    assert audit(opened.page) == []


@pytest.mark.parametrize("width", WIDTHS)
def test_a_page_of_any_width_from_360_on_scrolls_down_only(show, width):
    for report in (sample_report(), table()):
        page = show(report, width=width).page
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_table_of_30_rows_shows_10_until_it_is_unfolded(show):
    page = show(table()).page
    assert len(names(page)) == 10
    button = page.get_by_role("button", name="Show all 30 rows")
    assert button.get_attribute("aria-expanded") == "false"
    button.click()
    assert len(names(page)) == 30
    page.get_by_role("button", name="Show 10 rows").click()
    assert len(names(page)) == 10


def test_a_column_sorts_by_base_values_down_up_and_back_and_what_is_missing_comes_last(show):
    page = show(table()).page
    head = page.locator("#kernels th", has_text="Total")
    button = head.get_by_role("button")
    button.click()
    assert names(page)[:3] == ["kernel 29", "kernel 28", "kernel 27"]
    assert head.get_attribute("aria-sort") == "descending"
    expect(page.locator(".tv-live")).to_have_text("Sorted by Total, descending")
    button.click()
    assert (names(page)[0], head.get_attribute("aria-sort")) == ("kernel 0", "ascending")
    button.click()
    assert (names(page)[0], head.get_attribute("aria-sort")) == ("kernel 0", None)
    page.get_by_role("button", name="Calls", exact=True).click()
    page.get_by_role("button", name="Show all 30 rows").click()
    assert names(page)[:2] == ["kernel 28", "kernel 26"]
    assert sorted(names(page)[15:]) == sorted(f"kernel {number}" for number in range(1, 30, 2))
    page.get_by_role("button", name="Kernel", exact=True).click()
    assert names(page)[9:12] == ["kernel 9", "kernel 10", "kernel 11"]


def test_a_filter_shows_the_rows_with_all_words_and_counts_them(show):
    page = show(table()).page
    field = page.get_by_label("Filter rows of Kernels")
    field.fill("kernel 2")
    assert len(names(page)) == 15
    expect(page.locator("#kernels .tv-count")).to_have_text("15 of 30 rows")
    field.fill("kernel 29")
    assert names(page) == ["kernel 29"]
    field.fill("")
    assert len(names(page)) == 10


def test_a_slash_focuses_the_search_which_hides_sections_and_rows(show):
    page = show(table()).page
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.className") == "tv-search"
    page.keyboard.type("cudaFree")
    assert page.locator("main > section:visible").evaluate_all("all => all.map((one) => one.id)") == ["cuda_api"]
    assert page.locator("#cuda_api tbody tr:visible").all_text_contents() == ["cudaFree"]
    expect(page.locator(".tv-nav li:visible")).to_have_count(1)
    expect(page.locator(".tv-search-count")).to_have_text("1 of 4 sections")
    page.keyboard.press("Escape")
    expect(page.locator("main > section:visible")).to_have_count(4)


def test_a_slash_in_a_field_is_a_letter(show):
    page = show(table()).page
    field = page.get_by_label("Filter rows of Kernels")
    field.press("/")
    assert field.input_value() == "/"


def test_the_button_of_a_section_copies_its_command_and_says_so(show):
    opened = show(table())
    page = opened.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy the command that prints Kernels").click()
    expect(page.locator(".tv-live")).to_have_text("Copied: traceviz report run.sqlite --section kernels")
    assert page.evaluate("navigator.clipboard.readText()") == "traceviz report run.sqlite --section kernels"


def test_the_command_has_the_selected_span_to_the_nanosecond(show):
    page = show(table()).page
    tell = "document.dispatchEvent(new CustomEvent('traceviz:window', { detail: %s }))"
    button = page.get_by_role("button", name="Copy the command that prints Kernels")
    page.evaluate(tell % "{ start: 1200000000, end: 1500000001 }")
    button.click()
    command = "traceviz report run.sqlite --section kernels"
    expect(page.locator(".tv-live")).to_have_text(f"Copied: {command} --from 1.2s --to 1.500000001s")
    page.evaluate(tell % "null")
    button.click()
    expect(page.locator(".tv-live")).to_have_text(f"Copied: {command}")


def test_without_a_clipboard_the_command_is_copied_by_selection_or_shown(show):
    page = show(table()).page
    page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    page.evaluate("window.copied = []; document.addEventListener('copy', () => copied.push(String(getSelection())))")
    button = page.get_by_role("button", name="Copy the command that prints Calls")
    button.click()
    expect(page.locator(".tv-live")).to_have_text("Copied: traceviz report run.sqlite --section cuda_api")
    page.evaluate("document.execCommand = () => false")
    button.click()
    expect(page.locator(".tv-live")).to_contain_text("The command is: traceviz report run.sqlite --section cuda_api")
    assert page.evaluate("copied.length") == 1


def test_the_theme_follows_the_system_until_the_button_is_pressed(show):
    page = show(table(), scheme="dark").page
    color = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(color) == "rgb(20, 23, 28)"
    page.evaluate("document.addEventListener('traceviz:theme', (event) => (window.told = event.detail.dark))")
    page.get_by_role("button", name="Light colours").click()
    assert (page.evaluate(color), page.evaluate("told")) == ("rgb(255, 255, 255)", False)
    page.get_by_role("button", name="Dark colours").click()
    assert page.evaluate(color) == "rgb(20, 23, 28)"
    assert page.evaluate("Object.keys({ ...localStorage, ...sessionStorage }).length") == 0


def test_print_unfolds_everything_and_leaves_out_buttons(show):
    page = show(sample_report()).page
    page.emulate_media(media="print")
    expect(page.locator("details:not([open])")).to_have_count(0)
    expect(page.locator("button:not(.tv-sort):visible, input:visible, nav:visible")).to_have_count(0)
    assert page.evaluate("document.querySelectorAll('tr.tv-more').length") == page.locator("tr.tv-more:visible").count()
    page.emulate_media(media="screen")
    expect(page.locator("details:not([open])").first).to_be_attached()


def test_print_shows_all_30_rows(show):
    page = show(table()).page
    page.emulate_media(media="print")
    assert len(names(page)) == 30


def test_what_a_figure_means_is_shown_on_hover_and_on_focus_and_goes_with_escape(show):
    page = show(table()).page
    head = page.get_by_role("button", name="Total")
    tip = page.get_by_role("tooltip")
    head.hover()
    expect(tip).to_have_text("The sum of all of its durations; those that ran at the same time all count.")
    page.mouse.move(0, 0)
    expect(tip).to_be_hidden()
    head.focus()
    expect(tip).to_be_visible()
    assert head.get_attribute("aria-describedby") == "tv-tip"
    page.keyboard.press("Escape")
    expect(tip).to_be_hidden()
    assert head.get_attribute("aria-describedby") is None


def test_a_tooltip_stays_within_a_page_of_360_pixels(show):
    page = show(sample_report(), width=360).page
    for term in page.locator("[data-meaning]:visible").all()[:25]:
        term.focus()
        box = page.locator("#tv-tip").bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 360


def test_the_keyboard_reaches_everything_in_the_order_of_the_page(show):
    page = show(table()).page
    reached = []
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.textContent || document.activeElement.className"))
    expected = ["Skip to the report", "tv-search", "Dark", "Kernels", "Calls", "Copy command"]
    positions = [reached.index(text) for text in expected]
    assert positions == sorted(positions)
    assert any(text.startswith("Show all 30") for text in reached)
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    page.get_by_role("button", name="Total").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Shift+Tab")
    assert page.evaluate(outline) == "solid"


def test_the_skip_link_goes_to_the_report(show):
    page = show(table()).page
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "tv-main"


def test_the_list_of_sections_says_which_of_them_is_read(show):
    page = show(sample_report(), height=500).page
    page.locator("#kernels").scroll_into_view_if_needed()
    page.evaluate("document.getElementById('kernels').scrollIntoView()")
    expect(page.locator(".tv-nav a[aria-current]")).to_have_attribute("href", "#kernels")


def test_a_link_to_a_finding_unfolds_it(show):
    page = show(sample_report()).page
    last = page.locator(".tv-finding").last
    assert last.get_attribute("open") is None
    page.evaluate(f"location.hash = '#{last.get_attribute('id')}'")
    expect(last).to_have_attribute("open", "")


def test_a_finding_asks_the_timeline_for_its_place(show):
    code = sample_report().findings[0].code
    places = tuple(Place(item.code, 2_000, 9_000, "steps", "step 12") for item in sample_report().findings)
    page = show(sample_report(), Pictures(places=places)).page
    page.evaluate("document.addEventListener('traceviz:show', (event) => (window.asked = event.detail))")
    page.evaluate("document.querySelectorAll('details').forEach((details) => (details.open = true))")
    page.locator(f"#finding-{code} .tv-show").click()
    assert page.evaluate("asked") == {"start": 2000, "end": 9000, "lane": "steps"}


def test_without_script_everything_is_there_to_be_read(browser, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(page_of(table(), RenderOptions()), encoding="utf-8")
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(path.as_uri())
    rows = page.locator("#kernels tbody tr").count()
    hidden = page.locator(".tv-theme:visible, .tv-search:visible").count()
    context.close()
    assert (rows, hidden) == (30, 0)


@pytest.mark.parametrize("name", [name for name in HOSTILE_NAMES if name.strip()], ids=lambda name: ascii(name[:20]))
def test_hostile_names_do_nothing(show, name):
    opened = show(hostile_report(name))
    opened.page.wait_for_load_state("networkidle")
    opened.check_quiet()
    assert opened.page.evaluate("document.querySelectorAll('script').length") == 2
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 1400
