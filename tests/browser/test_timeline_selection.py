"""The panel for a selection: figures calculated by hand from the small timeline."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.browser.conftest import Open
from tests.browser.timeline_pages import (
    DRAWN,
    START,
    act,
    lane,
    opened_timeline,
    point,
    small_timeline,
    spans,
    state,
    table,
    texts,
    written,
)  # fmt: skip
from traceviz.report.pictures.values import Arrows, Level, Place

pytestmark = pytest.mark.browser


def test_a_window_has_the_times_that_lie_in_it(open_page: Open, tmp_path: Path) -> None:
    page = opened_timeline(open_page, tmp_path, small_timeline()).page
    act(page, "t.selectWindow(200000, 700000)")
    assert table(page, "Time by class") == [
        ["device compute", "400 µs", "80.0 %"],
        ["input wait", "100 µs", "20.0 %"],
        ["Sum", "500 µs", "100.0 %"],
    ]
    assert table(page, "Device busy") == [["rank 0", "400 µs", "80.0 %"]]
    assert table(page, "Device work by name") == [["add", "300 µs", "2"], ["sgemm", "300 µs", "1"]]
    assert table(page, "Device work by family") == [["elementwise", "300 µs", "2"], ["matmul", "300 µs", "1"]]
    assert table(page, "API calls") == [["cudaLaunchKernel", "5.00 µs", "1"]]
    assert table(page, "Operators") == [["aten::mm", "50.0 µs", "50.0 µs", "1"]]


def test_a_drag_with_shift_selects_a_window_and_tells_the_page(open_page: Open, tmp_path: Path) -> None:
    page = opened_timeline(open_page, tmp_path, small_timeline()).page
    page.evaluate("document.addEventListener('traceviz:window', (e) => { window.told = e.detail; })")
    page.keyboard.down("Shift")
    page.mouse.move(*point(page, "steps", 300_000))
    page.mouse.down()
    page.mouse.move(*point(page, "api", 600_000))
    page.mouse.up()
    page.keyboard.up("Shift")
    told = page.evaluate("window.told")
    width = state(page, "m.span / t.view.width")
    assert abs(told["start"] - START - 300_000) <= width
    assert abs(told["end"] - START - 600_000) <= width
    assert texts(page, ".tv-timeline-live")[0].startswith("300 µs selected, from 30")


def test_a_kernel_names_the_call_that_launched_it(open_page: Open, tmp_path: Path) -> None:
    page = opened_timeline(open_page, tmp_path, small_timeline()).page
    page.mouse.click(*point(page, "device", 650_000, 1))
    assert texts(page, ".tv-timeline-panel h3") == ["add"]
    assert texts(page, ".tv-timeline-facts > div") == [
        "Familyelementwise",
        "Lanedevice · rank 0",
        "Starts at500.5 µs",
        "Takes200 µs (200,000 ns)",
        "Launched bycudaLaunchKernel",
        "Launch to start300 µs",
    ]
    page.get_by_role("button", name="cudaLaunchKernel", exact=True).click()
    assert "Device time of it200 µs" in texts(page, ".tv-timeline-facts > div")
    assert state(page, "t.links.map((l) => [l.kind, l.source.index, l.target.row.depth])") == [["launch", 1, 1]]


def test_a_step_shows_its_breakdown(open_page: Open, tmp_path: Path) -> None:
    page = opened_timeline(open_page, tmp_path, small_timeline()).page
    page.mouse.click(*point(page, "steps", 500_000))
    assert texts(page, ".tv-timeline-panel h3") == ["step 1", "What happened meanwhile"]
    assert table(page, "Time by class")[0] == ["device compute", "700 µs", "70.0 %"]
    assert table(page, "Device busy") == [["rank 0", "700 µs", "70.0 %"]]


def test_each_rank_has_its_column_and_collectives_are_joined(open_page: Open, tmp_path: Path) -> None:
    lanes = (
        lane("classes", spans(1, (0, 400_000, 1), (400_000, 1_000_000, 2))),
        lane("collectives", spans(10, (400_000, 600_000, 3))),
        lane("classes", spans(20, (0, 500_000, 1), (500_000, 1_000_000, 2)), group="rank 1"),
        lane("collectives", spans(30, (550_000, 600_000, 3)), group="rank 1"),
        lane("collectives", spans(40, (450_000, 600_000, 3)), group="rank 2"),
    )
    joined = (Arrows("collective", np.array([10, 30]), np.array([30, 40])),)
    page = opened_timeline(open_page, tmp_path, replace(small_timeline(), lanes=lanes, arrows=joined)).page
    act(page, "t.folds.groups.clear(); t.layOut(); t.selectWindow(0, 1000000)")
    assert table(page, "Time by class") == [
        ["device compute", "600 µs", "60.0 %", "500 µs", "50.0 %"],
        ["input wait", "400 µs", "40.0 %", "500 µs", "50.0 %"],
        ["Sum", "1.00 ms", "100.0 %", "1.00 ms", "100.0 %"],
    ]
    page.mouse.click(*point(page, "collectives", 500_000))
    assert "Joined3 ranks, starts 150 µs apart" in texts(page, ".tv-timeline-facts > div")
    assert "Last to startcollectives · rank 1" in texts(page, ".tv-timeline-facts > div")
    assert state(page, "t.links.length") == 2


def test_figures_from_levels_say_that_they_are_not_exact(open_page: Open, tmp_path: Path) -> None:
    level = Level(100_000, np.array([3, 4, 5]), np.array([3, 3, 4]), np.array([255, 51, 255]))
    lanes = (lane("device", spans(1, (300_000, 310_000, 3)), levels=((level,),)),)
    made = replace(small_timeline(), lanes=lanes, arrows=(), events=9_000, kept=1)
    page = opened_timeline(open_page, tmp_path, made).page
    act(page, "t.selectWindow(300000, 550000)")
    assert texts(page, ".tv-timeline-panel caption") == [
        "Device busy, about: not every event of this stretch is in the page",
        "Device work by name, about: not every event of this stretch is in the page",
        "Device work by family, about: not every event of this stretch is in the page",
    ]
    assert table(page, "Device busy") == [["rank 0", "170 µs", "68.0 %"]]
    assert table(page, "Device work by name") == [["sgemm", "120 µs", "2"], ["add", "50.0 µs", "1"]]


def test_the_command_of_the_selected_time_is_copied(open_page: Open, tmp_path: Path) -> None:
    page = opened_timeline(open_page, tmp_path, small_timeline()).page
    page.evaluate("navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }")
    page.evaluate("document.body.dataset.command = 'traceviz report run.nsys-rep'")
    act(page, "t.part('copy').hidden = false; t.selectWindow(199500, 700000)")
    page.locator(".tv-timeline-copy button").click()
    assert page.evaluate("window.copied") == "traceviz report run.nsys-rep --from 0.0002s --to 0.0007005s"


def test_findings_show_their_place(open_page: Open, tmp_path: Path) -> None:
    made = small_timeline()
    opened = open_page(
        written(tmp_path, made, (Place("TV001", START + 600_000, START + 1_000_000, "rank 0/device", "it"),))
    )
    opened.page.wait_for_function(DRAWN)
    detail = "{start: 600500, end: 1000500, lane: 'rank 0/device'}"
    opened.page.evaluate(f"document.dispatchEvent(new CustomEvent('traceviz:show', {{detail: {detail}}}))")
    assert state(opened.page, "[m.names[t.selected.row.names[t.selected.index]], m.places[0].label]") == ["add", "it"]
    assert state(opened.page, "[t.view.from, t.view.to]") == [536_000, 1_000_000]
    assert opened.page.evaluate("document.activeElement.className") == "tv-timeline-box"
    opened.check_quiet()


def test_a_double_click_zooms_to_the_span(open_page: Open, tmp_path: Path) -> None:
    page = opened_timeline(open_page, tmp_path, small_timeline()).page
    page.mouse.dblclick(*point(page, "ops", 110_000, 1))
    assert state(page, "[t.view.from, t.view.to]") == [98_400, 121_600]


def test_the_spans_of_a_selection_are_a_table_too(open_page: Open, tmp_path: Path) -> None:
    page = opened_timeline(open_page, tmp_path, small_timeline()).page
    act(page, "t.selectWindow(90000, 120000)")
    page.get_by_text("Spans as a table").click()
    page.wait_for_selector(".tv-timeline-list table")
    assert table(page, "5 spans") == [
        ["step 1", "steps · rank 0", "500 ns", "1.00 ms"],
        ["input wait", "classes · rank 0", "500 ns", "300 µs"],
        ["aten::mm", "ops · rank 0", "90.5 µs", "160 µs"],
        ["cudaLaunchKernel", "api · rank 0", "100.5 µs", "10.0 µs"],
        ["aten::mm", "ops · rank 0", "100.5 µs", "20.0 µs"],
    ]


def test_an_operator_within_one_of_its_name_counts_once(open_page: Open, tmp_path: Path) -> None:
    page = opened_timeline(open_page, tmp_path, small_timeline()).page
    act(page, "t.selectWindow(0, 1000000)")
    assert table(page, "Operators") == [["aten::mm", "160 µs", "160 µs", "2"]]
    act(page, "t.selectWindow(110000, 200000)")
    assert table(page, "Operators") == [["aten::mm", "90.0 µs", "90.0 µs", "2"]]


def test_operators_have_their_time_with_and_without_those_inside(open_page: Open, tmp_path: Path) -> None:
    rows = (
        spans(40, (0, 100_000, 5), (200_000, 300_000, 5)),
        spans(50, (10_000, 60_000, 6), (200_000, 210_000, 4)),
        spans(60, (20_000, 30_000, 5)),
    )
    page = opened_timeline(open_page, tmp_path, replace(small_timeline(), lanes=(lane("ops", *rows),), arrows=())).page
    act(page, "t.selectWindow(0, 1000000)")
    assert table(page, "Operators") == [
        ["cudaLaunchKernel", "150 µs", "200 µs", "3"],
        ["aten::mm", "40.0 µs", "50.0 µs", "1"],
        ["add", "10.0 µs", "10.0 µs", "1"],
    ]
