"""The view with which a timeline opens, the lanes of all ranks, the legend, and places of findings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.browser.conftest import Open
from tests.browser.timeline_pages import (
    FAMILIES,
    NAMES,
    act,
    lane,
    opened_timeline,
    small_timeline,
    spans,
    state,
    texts,
)
from traceviz.report.pictures.values import Family, Timeline

pytestmark = pytest.mark.browser
LEGEND = ".tv-timeline-legend > li"


def two_ranks() -> Timeline:
    """Return the lanes of the small timeline for each of two ranks."""
    first = small_timeline()
    second = tuple(replace(one, key=f"rank 1/{one.kind}", group="rank 1") for one in first.lanes)
    return replace(first, lanes=(*first.lanes, *second), curves=(), arrows=())


def warmed_up() -> Timeline:
    """Return a warm-up step of 500 µs, then steady steps of 100 µs from 600 to 900 µs."""
    names, families = (*NAMES, "warm-up step 0"), (*(Family(key, key) for key in FAMILIES), Family("idle", "warm-up"))
    steps = spans(1, (0, 500_000, 7), (600_000, 700_000, 0), (700_000, 800_000, 0), (800_000, 900_000, 0))
    made = small_timeline()
    return replace(
        made, names=names, families=families, family_of=np.arange(8), lanes=(lane("steps", steps), *made.lanes[1:])
    )


def test_a_timeline_opens_at_its_steady_steps_with_the_overview_and_home_shows_all(
    open_page: Open, tmp_path: Path
) -> None:
    page = opened_timeline(open_page, tmp_path, warmed_up()).page
    assert state(page, "[t.view.from, t.view.to]") == [576_000, 924_000]
    assert page.locator(".tv-timeline-overview").is_visible()
    page.locator(".tv-timeline-box").press("Home")
    assert state(page, "[t.view.from, t.view.to]") == [0, 1_000_000]


def test_steps_that_take_all_of_the_time_are_shown_whole(open_page: Open, tmp_path: Path) -> None:
    page = opened_timeline(open_page, tmp_path, small_timeline()).page
    assert state(page, "[t.view.from, t.view.to]") == [0, 1_000_000]


def test_steps_and_classes_of_all_ranks_stand_together_and_other_lanes_are_folded(
    open_page: Open, tmp_path: Path
) -> None:
    page = opened_timeline(open_page, tmp_path, two_ranks()).page
    assert texts(page, ".tv-timeline-label") == [
        *("▾all ranks", "rank 0 steps", "rank 0 time", "rank 1 steps", "rank 1 time", "▸rank 0", "▸rank 1")
    ]
    act(page, "t.select({row: m.lanes.find((l) => l.key === 'rank 1/api').rows[0], index: 0})")
    assert texts(page, ".tv-timeline-label-group") == ["▾all ranks", "▸rank 0", "▾rank 1"]


def test_one_rank_is_open(open_page: Open, tmp_path: Path) -> None:
    page = opened_timeline(open_page, tmp_path, small_timeline()).page
    assert texts(page, ".tv-timeline-label-group") == ["▾rank 0"]


def test_the_legend_has_what_is_in_view_by_type_of_lane(open_page: Open, tmp_path: Path) -> None:
    page = opened_timeline(open_page, tmp_path, small_timeline()).page
    page.wait_for_function("() => document.querySelector('.tv-timeline-legend').childElementCount === 5")
    assert texts(page, LEGEND) == [
        *("Runstep", "Where the time wentinput waitdevice compute", "Devicesmatmulelementwise", "Programop"),
        "Callslaunch call",
    ]
    act(page, "t.setView({...t.view, from: 650000, to: 1000000})")
    page.wait_for_function("() => document.querySelector('.tv-timeline-legend').childElementCount === 3")
    assert texts(page, LEGEND) == ["Runstep", "Where the time wentdevice compute", "Deviceselementwise"]


def test_a_place_is_shown_in_the_upper_third_with_its_details(open_page: Open, tmp_path: Path) -> None:
    page = opened_timeline(open_page, tmp_path, small_timeline(), width=1800).page
    page.evaluate("scrollTo(0, 0)")
    act(page, "t.show(m.start + 100000, m.start + 110000, 'rank 0/api')")
    top = "(() => { const {y} = t.layout.items.find((item) => item.lane?.kind === 'api'); "
    top += "return (t.overlay.getBoundingClientRect().top + y - t.box.scrollTop) / innerHeight; })()"
    assert 0 < state(page, top) < 1 / 3
    panel, frame = (page.locator(f".tv-timeline-{name}").bounding_box() for name in ("panel", "frame"))
    assert panel is not None
    assert frame is not None
    assert (panel["x"] > frame["x"] + frame["width"], 0 <= panel["y"] < 300) == (True, True)
    assert "cudaLaunchKernel" in page.locator(".tv-timeline-panel").inner_text()


def test_the_tooltip_goes_when_what_is_below_it_moves(open_page: Open, tmp_path: Path) -> None:
    page = opened_timeline(open_page, tmp_path, small_timeline()).page
    act(page, "t.hover(300, t.layout.items.find((item) => item.lane?.kind === 'classes').strips[0].y + 3)")
    assert page.locator(".tv-timeline-tooltip").is_visible()
    act(page, "t.pan(5)")
    assert page.locator(".tv-timeline-tooltip").is_hidden()
