"""Pages as the command writes them: no requests, any screen size, and accessible."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.browser.conftest import MakePage, Open, Scheme
from tests.browser.pages import SAMPLES, UNFOLD, all_samples, inline, overflow, policy, without_timeline
from traceviz import api

pytestmark = pytest.mark.browser

MOST_BYTES = 400_000
TYPICAL = {
    "nsys": ("report", SAMPLES / "synthetic/input_bound.sqlite"),
    "ranks": ("report", SAMPLES / "kineto/two_ranks"),
    "stacks": ("report", SAMPLES / "kineto/stacks_memory.pt.trace.json.gz"),
    "tensorflow": ("report", SAMPLES / "xplane/keras_tensorboard"),
    "summary": ("report", SAMPLES / "synthetic/nvprof_summary.csv"),
    "comparison": ("compare", SAMPLES / "kineto/slow.pt.trace.json.gz", SAMPLES / "kineto/repaired.pt.trace.json.gz"),
}
typical = pytest.mark.parametrize("words", TYPICAL.values(), ids=TYPICAL)


@pytest.mark.parametrize("sample", all_samples())
def test_pages_of_all_samples_are_quiet_and_small_fit_a_telephone_and_hold_the_figures_of_the_json(
    make_page: MakePage, open_page: Open, sample: str
) -> None:
    made = make_page("report", SAMPLES / sample)
    assert without_timeline(made) < MOST_BYTES
    opened = open_page(made)
    for width in (2560, 1400, 800, 360):
        opened.page.set_viewport_size({"width": width, "height": 800})
        assert overflow(opened.page) == 0, width
    opened.page.evaluate(UNFOLD)
    assert overflow(opened.page) == 0
    opened.check_quiet()
    check_figures(made, SAMPLES / sample)


def check_figures(page: Path, trace: Path) -> None:
    """Check that the page holds the figures of the JSON report."""
    data = re.search(r'<script type="application/json" id="tv-report">(.*?)</script>', page.read_text(encoding="utf-8"))
    assert data is not None
    assert json.loads(data[1]) == json.loads(api.to_text(api.report_on(trace), "json"))


# What a page may do


@typical
def test_the_policy_allows_the_style_and_the_script_of_the_page_and_nothing_else(
    make_page: MakePage, words: tuple[str | Path, ...]
) -> None:
    text = make_page(*words).read_text(encoding="utf-8")
    hashes = dict(inline(text))
    assert len(hashes) == len(inline(text)) == 2
    assert policy(text) == {
        "default-src": "'none'",
        "style-src": hashes["style"],
        "script-src": hashes["script"],
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert text.index("Content-Security-Policy") < min(text.index("<style"), text.index("<script"))
    assert re.findall(r"<[^>]*\son\w+=|<[^>]*\sstyle=|<(?:link|iframe|object|embed|base)\b", text) == []


@pytest.mark.parametrize(
    "injected",
    [
        "<script>document.title = 'broken'</script>",
        "<img src=x onerror=\"document.title = 'broken'\">",
        "<img src=data:image/png;base64,x onerror=\"document.title = 'broken'\">",
        "<style>h1 { display: none }</style>",
        '<h1 style="display: none">x</h1>',
        '<link rel="stylesheet" href="data:text/css,h1{display:none}">',
        '<iframe srcdoc="<script>parent.document.title = 1</script>"></iframe>',
        '<script src="data:text/javascript,document.title=1"></script>',
        '<object data="data:text/html,x"></object>',
    ],
)
def test_what_is_injected_into_a_page_does_not_run(
    make_page: MakePage, open_page: Open, tmp_path: Path, injected: str
) -> None:
    text = make_page(*TYPICAL["nsys"]).read_text(encoding="utf-8")
    spoilt = tmp_path / "spoilt.html"
    spoilt.write_text(text.replace("</h1>", f"</h1>{injected}"), encoding="utf-8")
    opened = open_page(spoilt)
    opened.page.wait_for_timeout(50)
    assert any("Content Security Policy" in error for error in opened.errors)
    assert opened.page.title() == "input_bound.sqlite · traceviz"
    assert opened.page.locator("h1").first.is_visible()
    assert opened.dialogs == []


# Who uses it


@pytest.mark.parametrize(
    ("kind", "scheme"), [("stacks", "light"), ("ranks", "dark"), ("tensorflow", "light"), ("comparison", "dark")]
)
def test_axe_finds_nothing_folded_or_unfolded(make_page: MakePage, open_page: Open, kind: str, scheme: Scheme) -> None:
    """A page with flame graphs, one of ranks, one of a pipeline, and one of changes."""
    opened = open_page(make_page(*TYPICAL[kind]), scheme=scheme)
    assert violations(opened.page) == []
    opened.page.evaluate(UNFOLD)
    assert violations(opened.page) == []


def violations(page: Page) -> list[tuple[str, list[str]]]:
    """Return rules of axe that the page breaks, each with some of the elements."""
    found = Axe().run(page).response["violations"]
    return [(rule["id"], [str(node["target"]) for node in rule["nodes"]][:5]) for rule in found]


WALK = """() => {
  const element = document.activeElement;
  if (!element || element === document.body) return null;
  const all = [...document.querySelectorAll("*")];
  const box = element.getBoundingClientRect();
  const style = getComputedStyle(element);
  return {
    at: all.indexOf(element),
    what: `${element.tagName} ${element.className} ${element.textContent.slice(0, 30)}`,
    seen: box.width > 0 && box.height > 0 && box.bottom > 0 && box.top < innerHeight,
    outlined: style.outlineStyle !== "none" || style.boxShadow !== "none",
  };
}"""


@typical
def test_the_keyboard_reaches_everything_in_order_and_one_sees_where_it_is(
    make_page: MakePage, open_page: Open, words: tuple[str | Path, ...]
) -> None:
    page = open_page(make_page(*words)).page
    stops = []
    for _ in range(1_000):
        page.keyboard.press("Tab")
        stop = page.evaluate(WALK)
        if stop is None or (stops and stop["at"] == stops[0]["at"]):
            break
        stops.append(stop)
    assert "Skip" in stops[0]["what"]
    assert len(stops) > 5
    places = [stop["at"] for stop in stops]
    assert places == sorted(set(places))
    assert [stop["what"] for stop in stops if not stop["seen"]] == []
    assert [stop["what"] for stop in stops if not stop["outlined"]] == []


def test_a_summary_folds_and_unfolds_by_the_keyboard(make_page: MakePage, open_page: Open) -> None:
    page = open_page(make_page(*TYPICAL["nsys"])).page
    first = page.locator("details").first
    was_open = first.evaluate("(details) => details.open")
    first.locator("summary").focus()
    page.keyboard.press("Enter")
    assert first.evaluate("(details) => details.open") is not was_open


def test_a_summary_without_events_has_no_timeline(make_page: MakePage) -> None:
    assert 'id="tv-timeline"' in make_page(*TYPICAL["nsys"]).read_text(encoding="utf-8")
    assert "tv-timeline" not in make_page(*TYPICAL["summary"]).read_text(encoding="utf-8")
