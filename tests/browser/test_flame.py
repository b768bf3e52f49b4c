"""Flame graphs in a browser: zoom, keys, search, classes, differences, the table, and names that want to do harm."""

from __future__ import annotations

from dataclasses import replace

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.pictures.flame.trees import made
from tests.render.sample_report import sample_report
from traceviz.pictures.flame import folded
from traceviz.pictures.flame.difference import difference
from traceviz.render.html.page import page
from traceviz.render.options import RenderOptions
from traceviz.report.pictures.values import Pictures

pytestmark = pytest.mark.browser

MS = 10**6
CLASSES = (("input_wait", "input wait"), ("device_compute", "device compute"))
ROWS = [
    ("train", (60 * MS, 40 * MS)),
    ("train > load", (60 * MS, 0)),
    ("train > load > decode", (45 * MS, 0)),
    ("train > step", (0, 40 * MS)),
    ("train > step > aten::mm", (0, 30 * MS)),
    ("train > step > aten::mm > aten::mm", (0, 10 * MS)),
]


def flame(rows=ROWS, **extra):
    return made(rows, steps=10, classes=CLASSES, **extra)


@pytest.fixture
def shown(open_page, tmp_path):
    """Open a page with these graphs: ``shown(flame, ...)``."""

    def opened(*flames, **how):
        path = tmp_path / "page.html"
        path.write_text(page(sample_report(), RenderOptions(), Pictures(flames=flames)), encoding="utf-8")
        return open_page(path, **how)

    return opened


def node(page, name):
    return page.locator(f'.tv-flame-node[aria-label^="{name},"]')


def names(page):
    return [text for text in page.locator(".tv-flame-node").all_text_contents() if text]


def detail(page):
    terms = page.locator(".tv-flame-detail dt").all_text_contents()
    return dict(zip(terms, page.locator(".tv-flame-detail dd").all_text_contents(), strict=True))


def width(page, name):
    return node(page, name).first.bounding_box()["width"]


def test_nodes_are_as_wide_as_their_time_under_the_node_around_them(shown):
    opened = shown(flame())
    page = opened.page
    whole = width(page, "10 steady steps")
    assert names(page) == ["10 steady steps", "train", "load", "decode", "step", "aten::mm", "aten::mm"]
    assert width(page, "load") / whole == pytest.approx(0.6, abs=0.005)
    assert node(page, "step").bounding_box()["y"] == node(page, "load").bounding_box()["y"]
    opened.check_quiet()


def test_the_detail_says_time_shares_and_time_of_its_own(shown):
    page = shown(flame()).page
    node(page, "step").hover()
    assert page.locator(".tv-flame-name").text_content() == "step"
    assert detail(page) == {
        "time": "40.0 ms",
        "per step": "4.00 ms",
        "of the whole": "40.0 %",
        "of train": "40.0 %",
        "of its own": "10.0 ms",
    }


def test_a_click_fills_the_width_and_escape_and_the_path_go_back(shown):
    page = shown(flame()).page
    whole = width(page, "10 steady steps")
    node(page, "step").click()
    assert width(page, "step") == pytest.approx(whole, abs=1)
    assert node(page, "load").count() == 0
    assert page.locator(".tv-flame-crumb").all_text_contents() == ["10 steady steps", "train", "step"]
    page.keyboard.press("Escape")
    assert width(page, "train") == pytest.approx(whole, abs=1)
    assert node(page, "load").count() == 1
    node(page, "decode").click()
    page.locator(".tv-flame-crumb", has_text="10 steady steps").click()
    assert names(page)[-1] == "aten::mm"
    assert page.locator(".tv-flame-path").is_hidden()


def test_arrow_keys_move_and_enter_zooms(shown):
    page = shown(flame()).page
    page.locator(".tv-flame-node[tabindex='0']").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    focused = "document.activeElement.getAttribute('aria-label')"
    assert page.evaluate(focused).startswith("step, time 40.0 ms, per step 4.00 ms, of the whole 40.0 %")
    page.keyboard.press("Enter")
    assert page.evaluate(focused).startswith("step,")
    assert node(page, "load").count() == 0
    page.keyboard.press("ArrowUp")
    assert page.evaluate(focused).startswith("train,")
    page.keyboard.press("Home")
    assert page.evaluate(focused).startswith("10 steady steps,")
    assert page.locator(".tv-flame-node[tabindex='0']").count() == 1


def test_search_marks_nodes_and_does_not_count_what_is_nested_twice(shown):
    page = shown(flame()).page
    page.locator(".tv-flame-search").fill("ATEN")
    assert page.locator(".tv-flame-found").text_content() == "2 nodes match: 30.0 ms, 30.0 % of the whole"
    assert page.locator(".tv-flame-match").count() == 2
    page.locator(".tv-flame-search").fill("nothing like it")
    assert page.locator(".tv-flame-found").text_content() == "No node matches."
    assert page.locator(".tv-flame-dim").count() == 0
    page.keyboard.press("Escape")
    assert page.locator(".tv-flame-found").text_content() == ""


def test_one_class_of_time_shows_what_has_time_in_it(shown):
    page = shown(flame()).page
    page.locator(".tv-flame-class").select_option("device compute")
    assert names(page) == ["10 steady steps", "train", "step", "aten::mm", "aten::mm"]
    node(page, "train").hover()
    assert detail(page)["time"] == "40.0 ms"


def test_another_graph_is_chosen(shown):
    other = replace(flame([("forward", (0, 7 * MS))]), key="modules-host", label="Modules, host time")
    page = shown(flame(), other).page
    page.locator(".tv-flame-tree").select_option("Modules, host time")
    assert names(page) == ["10 steady steps", "forward"]
    assert page.locator(".tv-flame-graph").get_attribute("aria-label") == "Modules, host time"


def test_a_difference_is_coloured_from_better_to_worse_and_says_the_change(shown):
    base = flame()
    new = flame([("train", (12 * MS, 44 * MS)), ("train > load", (12 * MS, 0)), ("train > step", (0, 44 * MS))])
    opened = shown(difference(base, new))
    page = opened.page
    changes = {name: node(page, name).first.get_attribute("data-change") for name in ("load", "step", "aten::mm")}
    assert changes == {"load": "better", "step": "worse", "aten::mm": "better"}
    assert node(page, "load").text_content() == "−80.0 % load"
    node(page, "load").hover()
    found = detail(page)
    assert (found["time"], found["base"], found["change"]) == ("1.20 ms", "6.00 ms", "−4.80 ms, −80.0 %")
    green, red = (
        node(page, name).first.evaluate("element => getComputedStyle(element).backgroundColor")
        for name in ("load", "step")
    )
    assert green != red
    page.locator('input[value="new"]').check()
    assert names(page)[1:] == ["train", "step", "load"] or names(page)[1:] == ["train", "load", "step"]
    page.locator('input[value="base"]').check()
    assert "decode" in names(page)
    opened.check_quiet()


def test_the_table_has_the_same_nodes(shown):
    page = shown(flame()).page
    page.locator(".tv-flame-table summary").click()
    rows = page.locator(".tv-flame-table tbody tr")
    rows.first.wait_for()  # the table is filled when it opens
    assert rows.count() == len(ROWS)
    assert rows.nth(2).locator("th, td").all_text_contents()[:5] == ["decode", "3", "45.0 ms", "45.0 %", "45.0 ms"]


def test_folded_stacks_are_those_of_the_program(shown):
    shown_flame = flame()
    opened = shown(shown_flame)
    page = opened.page
    page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    page.locator(".tv-flame-copy").click()
    page.wait_for_function("window.copied")
    assert page.evaluate("window.copied") == folded(shown_flame)
    assert page.locator(".tv-flame-found").text_content() == "Copied."


def test_hostile_names_are_text_and_bounded(shown):
    hostile = [
        "<img src=x onerror=alert(1)>",
        "</script><script>alert(2)</script>",
        "\u202ereversed",
        "{}[]\"'&amp;",
        "x" * 1_000_000,
    ]
    flames = flame([("root", (len(hostile) * MS, 0)), *((f"root > {name}", (MS, 0)) for name in hostile)])
    opened = shown(flames)
    page = opened.page
    assert page.locator(".tv-flame img").count() == 0
    texts = names(page)
    assert "<img src=x onerror=alert(1)>" in texts
    assert "</script><script>alert(2)</script>" in texts
    assert not any("\u202e" in text for text in texts)
    assert max(map(len, texts)) <= 2000
    assert len(page.content()) < 2_000_000
    opened.check_quiet()


@pytest.mark.parametrize("width_of_page", [360, 2560])
def test_graphs_are_no_wider_than_the_window_and_follow_it(shown, width_of_page):
    page = shown(flame(), width=width_of_page).page
    part = page.locator(".tv-flame")
    assert part.evaluate("element => element.scrollWidth <= element.clientWidth")
    assert part.bounding_box()["width"] <= width_of_page
    page.set_viewport_size({"width": 700, "height": 900})
    page.wait_for_timeout(50)
    assert page.locator(".tv-flame-node").count() == 7


def test_three_thousand_nodes_are_drawn_as_far_as_they_are_wide_enough(shown):
    rows = [("root", (3_000_000 * 1000, 0)), *((f"root > n{number}", (1000 * 1000, 0)) for number in range(2999))]
    opened = shown(flame(rows))
    page = opened.page
    assert page.locator(".tv-flame-node").count() < 3000
    node(page, "root").click()
    assert page.locator(".tv-flame-table tbody tr").count() == 0
    opened.check_quiet()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_zoomed_searched_and_as_a_table(shown, scheme):
    new = flame([("train", (12 * MS, 44 * MS)), ("train > load", (12 * MS, 0)), ("train > step", (0, 44 * MS))])
    page = shown(difference(flame(), new), scheme=scheme).page
    assert broken_rules(page) == []
    node(page, "load").click()
    page.locator(".tv-flame-search").fill("train")
    page.locator(".tv-flame-table summary").click()
    assert broken_rules(page) == []
    page.locator('input[value="base"]').check()
    assert broken_rules(page) == []


def broken_rules(page):
    """Return rules of axe that the graph breaks."""
    found = Axe().run(page, context={"include": [[".tv-flame"]]}).response["violations"]
    return [rule["id"] for rule in found]
