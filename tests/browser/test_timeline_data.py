"""Scripts read from the page the same data that Python wrote into it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.browser.conftest import Open
from tests.browser.made_timelines import made_timeline
from tests.browser.timeline_pages import DRAWN, START, lane, opened_timeline, small_timeline, spans, state
from traceviz.report.pictures.values import Arrows, Level, Row

pytestmark = pytest.mark.browser


def test_spans_are_read_as_they_were_written(open_page: Open, tmp_path: Path) -> None:
    page = opened_timeline(open_page, tmp_path, small_timeline()).page
    read = state(
        page, "m.lanes.map((l) => l.rows.map((r) => [[...r.starts], [...r.durations], [...r.names], [...r.events()]]))"
    )
    assert read[0] == [[[0], [1_000_000], [0], [1]]]
    assert read[2] == [[[300_000, 600_000], [300_000, 400_000], [3, 4], [10, 11]], [[500_000], [200_000], [4], [20]]]
    assert read[4][1] == [[100_000], [20_000], [6], [50]]
    assert state(page, "[m.start, m.span, m.events, m.names[5], m.families[3].label]") == [
        500,
        1_000_000,
        10,
        "cudaLaunchKernel",
        "matmul",
    ]


def test_curves_and_arrows_are_read_as_they_were_written(open_page: Open, tmp_path: Path) -> None:
    page = opened_timeline(open_page, tmp_path, small_timeline()).page
    assert state(page, "[[...m.curves[0].times], [...m.curves[0].values].map(String)]") == [
        [0, 250_000, 500_000, 750_000],
        ["0.25", "0.5", "NaN", "1"],
    ]
    assert state(page, "[m.arrows[0].kind, [...m.arrows[0].ends().sources], [...m.arrows[0].ends().targets]]") == [
        "launch", [30, 31], [10, 20],
    ]  # fmt: skip


def test_times_beyond_32_bits_stay_exact(open_page: Open, tmp_path: Path) -> None:
    far = 2**53 - 4_001
    long = Row(np.array([START, START + far]), np.array([2**40 + 1, 3]), np.array([3, 4]), np.array([2**33, 7]))
    made = replace(small_timeline(), end_ns=START + far + 4_000, lanes=(lane("device", long),), curves=(), arrows=())
    page = opened_timeline(open_page, tmp_path, made).page
    assert state(page, "[[...m.rows[0].starts], [...m.rows[0].durations], [...m.rows[0].events()]]") == [
        [0, 2**53 - 4_001],
        [2**40 + 1, 3],
        [2**33, 7],
    ]


def test_durations_take_32_bits_only_where_those_hold_them(open_page: Open, tmp_path: Path) -> None:
    short, long = spans(1, (0, 2**24, 3)), spans(2, (0, 2**24 + 1, 3))
    made = replace(
        small_timeline(), end_ns=2**25, lanes=(lane("device", short), lane("api", long)), curves=(), arrows=()
    )
    page = opened_timeline(open_page, tmp_path, made).page
    assert state(page, "m.rows.map((r) => [r.durations.constructor.name, r.durations[0]])") == [
        ["Float32Array", 16_777_216],
        ["Float64Array", 16_777_217],
    ]


def test_levels_are_read_as_they_were_written(open_page: Open, tmp_path: Path) -> None:
    level = Level(1_000, np.array([2, 7, 900]), np.array([3, 4, 3]), np.array([255, 1, 128]))
    made = replace(
        small_timeline(), lanes=(lane("device", spans(1, (2_000, 3_000, 3)), levels=((level,),)),), arrows=()
    )
    page = opened_timeline(open_page, tmp_path, made).page
    assert state(page, "m.rows[0].levels.map((l) => [l.width, [...l.cells], [...l.names], [...l.covered]])") == [
        [1_000, [2, 7, 900], [3, 4, 3], [255, 1, 128]]
    ]


def test_arrows_may_point_back(open_page: Open, tmp_path: Path) -> None:
    made = replace(small_timeline(), arrows=(Arrows("launch", np.array([50, 30, 40]), np.array([1, 20, 50])),))
    page = opened_timeline(open_page, tmp_path, made).page
    assert state(page, "[[...m.arrows[0].ends().sources], [...m.arrows[0].ends().targets]]") == [
        [50, 30, 40],
        [1, 20, 50],
    ]


def test_a_hundred_thousand_spans_add_up_to_what_python_has(open_page: Open, tmp_path: Path) -> None:
    made = made_timeline(100_000)
    page = opened_timeline(open_page, tmp_path, made).page
    rows = [row for one in made.lanes for row in one.rows]
    ends = [int((row.starts + row.durations).sum()) for row in rows]
    assert state(page, "m.rows.map((r) => r.starts.reduce((s, t, i) => s + t + r.durations[i], 0))") == ends
    assert state(page, "m.rows.reduce((s, r) => s + r.count, 0)") == 100_400


def test_without_base64_in_the_browser_the_page_reads_the_same(open_page: Open, tmp_path: Path) -> None:
    page = opened_timeline(open_page, tmp_path, small_timeline()).page
    page.add_init_script("delete Uint8Array.fromBase64")
    page.reload()
    page.wait_for_function(DRAWN)
    assert page.evaluate("Uint8Array.fromBase64 === undefined")
    assert state(page, "[...m.rows[2].starts]") == [300_000, 600_000]


def test_a_browser_that_is_too_old_says_so_and_has_the_table(open_page: Open, tmp_path: Path) -> None:
    opened = opened_timeline(open_page, tmp_path, small_timeline())
    page = opened.page
    page.add_init_script("delete globalThis.DecompressionStream")
    page.reload()
    page.get_by_text("too old to draw it").wait_for()
    assert page.locator(".tv-timeline-frame").is_hidden()
    assert page.locator(".tv-timeline-text tbody tr").count() == 5
    opened.check_quiet()
