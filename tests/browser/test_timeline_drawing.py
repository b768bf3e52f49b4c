"""The canvas: near and far, on light and dark pages, with and without every event."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tests.browser.conftest import Open
from tests.browser.made_timelines import level_of, levels_of, made_timeline, row
from tests.browser.timeline_pages import (
    START,
    act,
    lane,
    opened_timeline,
    pixels,
    point,
    rgb,
    small_timeline,
    spans,
    state,
    texts,
)
from traceviz.report.pictures.values import Detail, Level

pytestmark = pytest.mark.browser
WHITE = [255, 255, 255]
MATMUL, ELEMENTWISE, INPUT_WAIT = rgb("matmul"), rgb("elementwise"), rgb("input_wait")


def distinct(row_: list[list[int]]) -> set[tuple[int, ...]]:
    return {tuple(one) for one in row_}


def test_a_lone_short_event_among_a_million_is_seen_from_afar(open_page: Open, tmp_path: Path) -> None:
    made = made_timeline(1_000_000, ranks=1)
    one = row(np.array([made.end_ns // 3]), np.array([1]), np.array([9]), made.events + 1)
    lonely = replace(made, lanes=(lane("collectives", one), *made.lanes), events=made.events + 1, kept=made.events + 1)
    shown = pixels(opened_timeline(open_page, tmp_path, lonely).page, "collectives")
    coloured = [x for x, color in enumerate(shown) if color[0] - color[1] > 20]
    assert len(coloured) == 1
    assert abs(coloured[0] - len(shown) / 3) < 2


def test_a_lone_event_is_seen_where_levels_are_drawn(open_page: Open, tmp_path: Path) -> None:
    starts = np.concatenate([[START], START + 600_000 + np.arange(3_000) * 100])
    many = row(starts, np.full(starts.size, 50), np.full(starts.size, 3), 100)
    levels = levels_of(many, START, START + 1_000_000)
    assert [level.width_ns for level in levels] == [1_954]
    made = replace(
        small_timeline(),
        end_ns=START + 4_000_000,
        lanes=(lane("device", many, levels=(levels,)),),
        events=3_001,
        kept=3_001,
    )
    shown = pixels(opened_timeline(open_page, tmp_path, made).page, "device")
    assert shown[0] != WHITE
    assert distinct(shown[2:100]) <= {(255, 255, 255), tuple(shown[2])}


def test_overlapping_kernels_of_a_stream_are_both_drawn(open_page: Open, tmp_path: Path) -> None:
    page = opened_timeline(open_page, tmp_path, small_timeline()).page
    upper, lower = pixels(page, "device", 0), pixels(page, "device", 1)
    at = int(len(upper) * 0.55)
    assert (upper[at], lower[at]) == (MATMUL, ELEMENTWISE)
    assert upper[int(len(upper) * 0.2)] == lower[int(len(upper) * 0.2)]


def test_every_event_is_drawn_when_one_zooms_in(open_page: Open, tmp_path: Path) -> None:
    many = row(START + np.arange(10_000) * 100, np.full(10_000, 50), np.full(10_000, 3), 1)
    levels = (level_of(many, START, 4_000), level_of(many, START, 16_000))
    made = replace(small_timeline(), lanes=(lane("device", many, levels=(levels,)),), events=10_000, kept=10_000)
    page = opened_timeline(open_page, tmp_path, made).page
    far = pixels(page, "device")
    assert WHITE not in far
    act(page, "t.setView({...t.view, from: 500000, to: 501000})")
    near = [color == WHITE or color[0] > 220 for color in pixels(page, "device")]
    begins = sum(1 for before, after in pairwise(near) if before and not after)
    assert begins in {9, 10}


def test_colours_follow_the_theme(open_page: Open, tmp_path: Path) -> None:
    page = opened_timeline(open_page, tmp_path, small_timeline()).page
    light = pixels(page, "classes")
    assert light[int(len(light) * 0.1)] == INPUT_WAIT
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    assert pixels(page, "classes")[int(len(light) * 0.1)] == rgb("input_wait", is_dark=True)
    page.evaluate("document.documentElement.dataset.theme = 'light'")
    page.emulate_media(color_scheme="dark")
    assert pixels(page, "classes")[int(len(light) * 0.1)] == INPUT_WAIT
    page.evaluate("delete document.documentElement.dataset.theme")
    assert pixels(page, "classes")[int(len(light) * 0.1)] == rgb("input_wait", is_dark=True)


def test_the_page_says_where_it_has_no_single_events(open_page: Open, tmp_path: Path) -> None:
    many = row(START + np.arange(10_000) * 100, np.full(10_000, 50), np.full(10_000, 3), 1)
    levels = (level_of(many, START, 500), level_of(many, START, 2_000))
    few = row(many.starts[2_000:3_000], many.durations[2_000:3_000], many.names[2_000:3_000], 2_001)
    detail = Detail(START + 200_000, START + 300_000, "slowest step, 7")
    made = replace(
        small_timeline(),
        lanes=(lane("device", few, levels=(levels,)),),
        arrows=(),
        events=10_000,
        kept=1_000,
        details=(detail,),
    )
    page = opened_timeline(open_page, tmp_path, made).page
    assert "1,000 events of them are in this page" in texts(page, ".tv-timeline-about")[0]
    assert page.locator(".tv-timeline-coarse").is_hidden()
    act(page, "t.setView({...t.view, from: 500000, to: 501000})")
    assert distinct(pixels(page, "device")) != {(255, 255, 255)}
    assert page.locator(".tv-timeline-coarse").is_visible()
    page.mouse.move(*point(page, "device", 500_500))
    assert "single events of this stretch are not in the page" in texts(page, ".tv-timeline-tooltip")[0]
    page.get_by_role("button", name="slowest step, 7").click()
    assert state(page, "[t.window.from, t.window.to]") == [200_000, 300_000]
    act(page, "t.setView({...t.view, from: 250000, to: 251000})")
    near = [color == WHITE or color[0] > 220 for color in pixels(page, "device")]
    assert sum(1 for before, after in pairwise(near) if before and not after) in {9, 10}
    assert page.locator(".tv-timeline-coarse").is_hidden()


def test_a_folded_lane_shows_inner_rows_where_the_outer_one_is_empty(open_page: Open, tmp_path: Path) -> None:
    rows = (spans(1, (0, 100_000, 3)), spans(2, (200_000, 300_000, 4)))
    page = opened_timeline(
        open_page, tmp_path, replace(small_timeline(), lanes=(lane("device", *rows),), arrows=())
    ).page
    page.get_by_role("button", name="device", exact=True).click()
    shown = pixels(page, "device")
    assert [shown[int(len(shown) * share)] for share in (0.05, 0.15, 0.25)] == [MATMUL, WHITE, ELEMENTWISE]
    assert state(page, "t.layout.items.find((i) => i.kind === 'lane').strips.length") == 1


def test_a_folded_group_shows_its_classes_in_one_line(open_page: Open, tmp_path: Path) -> None:
    page = opened_timeline(open_page, tmp_path, small_timeline()).page
    button = page.get_by_role("button", name="rank 0", exact=True)
    button.focus()
    page.keyboard.press("Enter")
    assert state(page, "t.layout.items.map((i) => i.kind)") == ["group"]
    assert pixels(page, "classes")[10] == INPUT_WAIT
    assert page.evaluate("document.activeElement.getAttribute('aria-expanded')") == "false"


def test_panning_moves_pixels_and_changes_none(open_page: Open, tmp_path: Path) -> None:
    page = opened_timeline(open_page, tmp_path, made_timeline(100_000)).page
    act(page, "t.folds.groups.clear(); t.layOut(); t.setView({...t.view, from: m.span * 0.3, to: m.span * 0.6})")
    before = pixels(page, "device")
    act(page, "t.pan(7)")
    assert pixels(page, "device")[10:-20] == before[17:-13]


def test_the_curve_says_its_value_at_the_pointer(open_page: Open, tmp_path: Path) -> None:
    page = opened_timeline(open_page, tmp_path, small_timeline()).page
    x, y = point(page, "ops", 260_000, 1)
    where = state(
        page,
        "t.layout.items.find((i) => i.kind === 'curve').y + 20"
        " - t.box.scrollTop + t.overlay.getBoundingClientRect().top",
    )
    page.mouse.move(x, where)
    assert "processor use: 50.0 %" in texts(page, ".tv-timeline-tooltip")[0]
    assert y < where


def test_labels_are_above_lanes_on_narrow_pages(open_page: Open, tmp_path: Path) -> None:
    page = opened_timeline(open_page, tmp_path, small_timeline(), width=360).page
    assert state(page, "t.stage.getBoundingClientRect().left - t.box.getBoundingClientRect().left < 3")
    label = page.locator(".tv-timeline-label-lane").first.bounding_box()
    assert label is not None
    assert label["y"] + 14 <= point(page, "steps", 0)[1] - 8
    assert page.evaluate("document.documentElement.scrollWidth") == 360


def test_a_kept_span_is_whole_beyond_the_detail_that_kept_it(open_page: Open, tmp_path: Path) -> None:
    level = Level(100_000, np.arange(10), np.full(10, 4), np.full(10, 255))
    kept = spans(1, (250_000, 750_000, 3))
    detail = Detail(START + 300_000, START + 400_000, "slowest step, 7")
    made = replace(
        small_timeline(),
        lanes=(lane("device", kept, levels=((level,),)),),
        arrows=(),
        events=9,
        kept=1,
        details=(detail,),
    )
    shown = pixels(opened_timeline(open_page, tmp_path, made).page, "device")
    at = [shown[int(len(shown) * share) // 4 * 4 + 2] for share in (0.1, 0.35, 0.7, 0.9)]
    assert at == [ELEMENTWISE, MATMUL, MATMUL, ELEMENTWISE]
