"""Keyboard, wheel, touch, search, and names that want to be more than names."""

from __future__ import annotations

from pathlib import Path

import axe_playwright_python
import pytest

from tests.browser.conftest import Open, Scheme
from tests.browser.made_timelines import made_timeline
from tests.browser.timeline_pages import (
    NAMES,
    act,
    named,
    opened_timeline,
    pixels,
    point,
    rgb,
    small_timeline,
    state,
    texts,
)

AXE = Path(axe_playwright_python.__file__).parent / "axe.min.js"
pytestmark = pytest.mark.browser
HOSTILE = (
    *("<img src=x onerror=alert(1)>", "</script><script>alert(2)</script>", "\u202egnirts", "{{7*7}}"),
    *('"><style>body{display:none}</style>', "x" * 1_000_000, "\x1b[31mred\x00"),
)


def test_all_of_it_works_with_the_keyboard_alone(open_page: Open, tmp_path: Path) -> None:
    opened = opened_timeline(open_page, tmp_path, small_timeline())
    page = opened.page
    page.locator(".tv-timeline-box").focus()
    page.keyboard.press("]")
    assert texts(page, ".tv-timeline-live") == ["step 1, 1.00 ms, steps · rank 0, at 500 ns"]
    page.keyboard.press("ArrowDown")
    page.keyboard.press("[")
    assert texts(page, ".tv-timeline-live") == ["input wait, 300 µs, classes · rank 0, at 500 ns"]
    page.keyboard.press("]")
    assert texts(page, ".tv-timeline-live") == ["device compute, 700 µs, classes · rank 0, at 300.5 µs"]
    page.keyboard.press("]")
    assert texts(page, ".tv-timeline-live") == ["no more spans in this row"]
    page.keyboard.press("f")
    assert state(page, "[t.view.from, t.view.to]") == [188_000, 1_000_000]
    page.keyboard.press("w")
    assert state(page, "t.view.to - t.view.from") == pytest.approx(580_000)
    page.keyboard.press("a")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("s")
    assert state(page, "t.view.to - t.view.from") == pytest.approx(812_000)
    page.keyboard.press("Home")
    assert state(page, "[t.view.from, t.view.to]") == [0, 1_000_000]
    page.keyboard.press("m")
    assert state(page, "[t.window.from, t.window.to]") == [0, 1_000_000]
    page.keyboard.press("Escape")
    assert state(page, "[t.window, t.selected]") == [None, None]
    page.keyboard.press("?")
    assert page.locator(".tv-timeline-help").get_attribute("open") == ""
    opened.check_quiet()


def test_search_counts_jumps_and_fades_the_others(open_page: Open, tmp_path: Path) -> None:
    page = opened_timeline(open_page, tmp_path, small_timeline()).page
    page.locator(".tv-timeline-box").focus()
    page.keyboard.press("/")
    page.keyboard.type("ADD")
    page.keyboard.press("Enter")
    assert texts(page, ".tv-timeline-matches")[0] == "1 of 2, 500 µs"
    assert state(page, "[t.selected.row.depth, t.selected.index]") == [1, 0]
    page.keyboard.press("Enter")
    assert state(page, "[t.selected.row.depth, t.selected.index]") == [0, 1]
    assert texts(page, ".tv-timeline-matches")[0] == "2 of 2, 500 µs"
    page.keyboard.press("Enter")
    assert state(page, "[t.selected.row.depth, t.selected.index]") == [1, 0]
    shown = pixels(page, "device")
    assert shown[int(len(shown) * 0.9)] == rgb("elementwise")
    assert min(shown[int(len(shown) * 0.4)]) > 180
    page.keyboard.press("Escape")
    assert pixels(page, "device")[int(len(shown) * 0.4)] == rgb("matmul")
    page.keyboard.press("/")
    page.keyboard.type("nothing like it")
    page.keyboard.press("Enter")
    assert texts(page, ".tv-timeline-matches")[0] == "no span has “nothing like it”"


def test_a_colour_of_the_legend_shows_its_spans_alone(open_page: Open, tmp_path: Path) -> None:
    page = opened_timeline(open_page, tmp_path, small_timeline()).page
    page.get_by_role("button", name="launch call").click()
    assert texts(page, ".tv-timeline-matches")[0] == "2 spans, 15.0 µs"
    assert page.get_by_role("button", name="launch call").get_attribute("aria-pressed") == "true"
    page.get_by_role("button", name="launch call").click()
    assert texts(page, ".tv-timeline-matches")[0] == ""


def test_found_spans_are_seen_among_ten_thousand_others(open_page: Open, tmp_path: Path) -> None:
    page = opened_timeline(open_page, tmp_path, made_timeline(100_000)).page
    act(page, "t.folds.groups.clear(); t.layOut(); t.searchFor('cudaStreamSynchronize')")
    reds = [color for color in pixels(page, "api") if color == rgb("sync_call")]
    assert len(reds) > 100


def test_the_wheel_scrolls_the_page_and_zooms_with_ctrl(open_page: Open, tmp_path: Path) -> None:
    page = opened_timeline(open_page, tmp_path, small_timeline()).page
    page.mouse.move(*point(page, "classes", 250_000))
    before = page.evaluate("scrollY")
    page.mouse.wheel(0, 120)
    page.wait_for_function(f"() => scrollY > {before}")
    assert state(page, "t.view.to - t.view.from") == 1_000_000
    page.mouse.move(*point(page, "classes", 250_000))
    page.keyboard.down("Control")
    page.mouse.wheel(0, -400)
    page.keyboard.up("Control")
    page.wait_for_function("() => document.getElementById('tv-timeline-view').timeline.view.to < 999999")
    assert state(page, "t.view.to - t.view.from") == pytest.approx(527_292, abs=1)
    assert state(page, "(250000 - t.view.from) / (t.view.to - t.view.from)") == pytest.approx(0.25, abs=0.002)


def test_a_drag_pans(open_page: Open, tmp_path: Path) -> None:
    page = opened_timeline(open_page, tmp_path, small_timeline()).page
    act(page, "t.setView({...t.view, from: 400000, to: 600000})")
    x, y = point(page, "classes", 500_000)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 50, y, steps=5)
    page.mouse.up()
    assert state(page, "(t.view.from - 400000) * t.view.width / 200000") == pytest.approx(50, abs=1)


def test_two_fingers_zoom(open_page: Open, tmp_path: Path) -> None:
    page = opened_timeline(open_page, tmp_path, small_timeline()).page
    act(
        page,
        """
      t.overlay.setPointerCapture = () => {};
      const box = t.overlay.getBoundingClientRect();
      const send = (type, id, x) => t.overlay.dispatchEvent(new PointerEvent(type,
        {pointerId: id, clientX: box.left + x, clientY: box.top + 60, pointerType: 'touch', bubbles: true}));
      send('pointerdown', 1, 400); send('pointerdown', 2, 600);
      send('pointermove', 2, 800);
      send('pointerup', 1, 400); send('pointerup', 2, 800)""",
    )
    assert state(page, "t.view.to - t.view.from") == pytest.approx(500_000)
    assert state(page, "t.selected") is None


def test_hostile_names_are_texts(open_page: Open, tmp_path: Path) -> None:
    opened = opened_timeline(open_page, tmp_path, named(small_timeline(), HOSTILE))
    page = opened.page
    assert state(page, "Math.max(...m.names.map((name) => name.length))") <= 2_000
    for kind, time in (("steps", 500_000), ("classes", 100_000), ("device", 400_000), ("api", 105_000)):
        page.mouse.move(*point(page, kind, time))
        page.mouse.click(*point(page, kind, time))
    act(page, "t.selectWindow(0, 1000000)")
    page.get_by_text("Spans as a table").click()
    assert page.locator(".tv-timeline img, .tv-timeline style, .tv-timeline-panel script").count() == 0
    assert any("<img src=x onerror=alert(1)>" in text for text in texts(page, ".tv-timeline-panel button"))
    assert state(page, "m.names[4]") == HOSTILE[4]
    opened.check_quiet()


def test_the_page_reads_without_script(open_page: Open, tmp_path: Path) -> None:
    opened = opened_timeline(open_page, tmp_path, small_timeline())
    rows = opened.page.locator(".tv-timeline-text tbody tr").all_text_contents()
    assert rows == [
        "rank 0steps11.00 ms100.0 %",
        "rank 0classes21.00 ms100.0 %",
        "rank 0device3700 µs70.0 %",
        "rank 0api215.0 µs1.5 %",
        "rank 0ops2160 µs16.0 %",
    ]
    assert len(NAMES) == 7


def test_paper_shows_the_lanes_from_the_top_on_and_the_screen_is_as_before(open_page: Open, tmp_path: Path) -> None:
    page = opened_timeline(open_page, tmp_path, small_timeline()).page
    act(page, "t.setView({...t.view, from: 0, to: 400000})")
    before = state(page, "[t.view.from, t.view.to, t.view.width, t.height, t.canvas.width]")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert state(page, "[t.view.width, t.height, t.canvas.width]") == [560, state(page, "t.layout.height"), 1120]
    assert page.locator("img.tv-timeline-printed").evaluate("(one) => one.src.slice(0, 22)") == "data:image/png;base64,"
    shown = pixels(page, "classes")
    assert (shown[100], shown[1000]) == (rgb("input_wait"), rgb("device_compute"))
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("img.tv-timeline-printed").count() == 0
    assert state(page, "[t.view.from, t.view.to, t.view.width, t.height, t.canvas.width]") == before


def test_a_page_is_printed_as_it_is_seen(open_page: Open, tmp_path: Path) -> None:
    page = opened_timeline(open_page, tmp_path, small_timeline()).page
    page.emulate_media(media="print")
    assert page.locator(".tv-timeline-bar").is_hidden()
    assert pixels(page, "classes")[10] == rgb("input_wait")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_0_faults_with_a_selection_a_search_and_open_tables(
    open_page: Open, tmp_path: Path, scheme: Scheme
) -> None:
    page = opened_timeline(open_page, tmp_path, small_timeline(), scheme=scheme).page
    act(page, "t.selectWindow(0, 1000000); t.searchFor('add'); t.help()")
    for text in ("Spans as a table", "Lanes as a table"):
        page.get_by_text(text).click()
    page.wait_for_selector(".tv-timeline-list table")
    found = page.evaluate(f"(() => {{ {AXE.read_text()} }})(); axe.run('#timeline', {{ resultTypes: ['violations'] }})")
    faults = [[fault["id"], [node["html"][:120] for node in fault["nodes"]]] for fault in found["violations"]]
    assert (faults, len(found["passes"]) > 20) == ([], True)


def test_zooming_ends_where_it_should_with_and_without_motion(open_page: Open, tmp_path: Path) -> None:
    page = opened_timeline(open_page, tmp_path, small_timeline()).page
    page.emulate_media(reduced_motion="no-preference")
    act(page, "t.selectWindow(400000, 600000); t.fit()")
    assert state(page, "t.view.to - t.view.from") > 232_000
    page.wait_for_function("() => document.getElementById('tv-timeline-view').timeline.view.from === 384000")
    assert state(page, "[t.view.from, t.view.to]") == [384_000, 616_000]


def test_a_page_that_gets_narrower_is_drawn_anew(open_page: Open, tmp_path: Path) -> None:
    page = opened_timeline(open_page, tmp_path, small_timeline()).page
    assert state(page, "t.narrow") is False
    page.set_viewport_size({"width": 500, "height": 800})
    page.wait_for_function("() => document.getElementById('tv-timeline-view').timeline.narrow")
    assert state(page, "t.canvas.width === t.stage.clientWidth && t.view.width === t.stage.clientWidth") is True
    shown = pixels(page, "classes")
    assert (shown[20], shown[-20]) == (rgb("input_wait"), rgb("device_compute"))


def test_the_line_above_the_lanes_moves_what_is_in_view(open_page: Open, tmp_path: Path) -> None:
    page = opened_timeline(open_page, tmp_path, small_timeline()).page
    act(page, "t.setView({...t.view, from: 0, to: 100000})")
    box = page.locator(".tv-timeline-overview").bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 10)
    assert state(page, "[t.view.from, t.view.to]") == pytest.approx([450_000, 550_000], abs=1_500)
