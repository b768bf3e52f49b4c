"""Pages with a timeline, and what tests ask of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Page

from tests.browser.conftest import Open, Opened
from tests.render.sample_report import sample_report
from traceviz.render.html.page import page
from traceviz.render.options import RenderOptions
from traceviz.render.palette import COLORS
from traceviz.report.pictures.values import Arrows, Curve, Family, Lane, LaneKind, Level, Pictures, Place, Row, Timeline

START = 500
"""The trace's clock at the start of the timeline."""
NAMES = ("step 1", "input wait", "device compute", "sgemm", "add", "cudaLaunchKernel", "aten::mm")
FAMILIES = ("step", "input_wait", "device_compute", "matmul", "elementwise", "launch_call", "op")
DRAWN = "() => performance.getEntriesByName('tv-timeline-drawn').length > 0"
VIEW = "document.getElementById('tv-timeline-view').timeline"


def rgb(key: str, *, is_dark: bool = False) -> list[int]:
    """Return red, green and blue of a key of the palette."""
    found = COLORS[key]
    return list(bytes.fromhex((found.dark if is_dark else found.light)[1:]))


def spans(first: int, *given: tuple[int, int, int]) -> Row:
    """Return a row of (start and end after the timeline's start, name); its events count up from ``first``."""
    columns = np.array(given, np.int64).reshape(-1, 3)
    return Row(START + columns[:, 0], columns[:, 1] - columns[:, 0], columns[:, 2], first + np.arange(len(given)))


def lane(kind: LaneKind, *rows: Row, group: str = "rank 0", levels: tuple[tuple[Level, ...], ...] = ()) -> Lane:
    """Return a lane with the key ``GROUP/KIND``."""
    return Lane(f"{group}/{kind}", kind, kind, group, rows, levels)


def small_timeline() -> Timeline:
    """Return one rank over 1 ms, in µs::

    step      |0                             1000|
    classes   |input wait 300|compute        1000|
    stream 7              |300 sgemm 600|add 1000|
                                |500 add 700|
    calls       |100 110| |200 205|
    operators  |90  aten::mm   250|
                |100 120|
    """
    lanes = (
        lane("steps", spans(1, (0, 1_000_000, 0))),
        lane("classes", spans(2, (0, 300_000, 1), (300_000, 1_000_000, 2))),
        lane("device", spans(10, (300_000, 600_000, 3), (600_000, 1_000_000, 4)), spans(20, (500_000, 700_000, 4))),
        lane("api", spans(30, (100_000, 110_000, 5), (200_000, 205_000, 5))),
        lane("ops", spans(40, (90_000, 250_000, 6)), spans(50, (100_000, 120_000, 6))),
    )
    times = START + np.array([0, 250_000, 500_000, 750_000])
    return Timeline(
        START,
        START + 1_000_000,
        NAMES,
        tuple(Family(key, key.replace("_", " ")) for key in FAMILIES),
        np.arange(7),
        lanes,
        (Curve("cpu", "processor use", "rank 0", "ratio", times, np.array([0.25, 0.5, np.nan, 1.0])),),
        (Arrows("launch", np.array([30, 31]), np.array([10, 20])),),
        events=10,
        kept=10,
    )


def named(timeline: Timeline, names: Sequence[str]) -> Timeline:
    """Return the same with other names."""
    return replace(timeline, names=tuple(names))


def written(folder: Path, timeline: Timeline, places: tuple[Place, ...] = ()) -> Path:
    """Return a page of a small report with ``timeline``."""
    path = folder / "timeline.html"
    path.write_text(page(sample_report(), RenderOptions(), Pictures(timeline, (), places)), encoding="utf-8")
    return path


def opened_timeline(open_page: Open, folder: Path, timeline: Timeline, **options: Any) -> Opened:
    """Return the page of ``timeline``, opened, drawn and scrolled to it."""
    opened = open_page(written(folder, timeline), **options)
    opened.page.wait_for_function(DRAWN)
    opened.page.evaluate("document.getElementById('timeline').scrollIntoView()")
    return opened


def state(page_: Page, expression: str) -> Any:
    """Return the value of ``expression`` of ``t`` (the timeline) and ``m`` (its data), after the next frame."""
    named_values = f"await new Promise(requestAnimationFrame); const t = {VIEW}, m = t.model;"
    return page_.evaluate(f"async () => {{ {named_values} return {expression}; }}")


def act(page_: Page, statements: str) -> None:
    """Run ``statements`` with ``t`` and ``m``."""
    page_.evaluate(f"() => {{ const t = {VIEW}, m = t.model; {statements}; }}")


def point(page_: Page, kind: str, time: int, row: int = 0) -> tuple[float, float]:
    """Return the position on the page of ``time`` (nanoseconds after the timeline's start) in a lane's row."""
    where = f"""(() => {{
      const strip = t.layout.items.flatMap((item) => item.strips)
        .find((one) => one.rows.includes(m.lanes.find((l) => l.kind === '{kind}').rows[{row}]));
      const box = t.overlay.getBoundingClientRect();
      const x = ({time} - t.view.from) / (t.view.to - t.view.from) * t.view.width;
      return [box.left + x, box.top + strip.y - t.box.scrollTop + strip.height / 2];
    }})()"""
    x, y = state(page_, where)
    return x, y


def pixels(page_: Page, kind: str, row: int = 0) -> list[list[int]]:
    """Return red, green and blue of each pixel in the middle of a row, as the canvas has them."""
    return list(
        state(
            page_,
            f"""(() => {{
      const strip = t.layout.items.flatMap((item) => item.strips)
        .find((one) => one.rows.includes(m.lanes.find((l) => l.kind === '{kind}').rows[{row}]));
      const y = Math.round((strip.y - t.box.scrollTop + 3) * t.ratio);
      const data = t.canvas.getContext('2d').getImageData(0, y, t.canvas.width, 1).data;
      return Array.from({{length: t.canvas.width}}, (_, x) => [data[4 * x], data[4 * x + 1], data[4 * x + 2]]);
    }})()""",
        )
    )


def texts(page_: Page, selector: str) -> list[str]:
    """Return texts of all elements that ``selector`` finds."""
    return [text.strip() for text in page_.locator(selector).all_text_contents()]


def table(page_: Page, caption: str) -> list[list[str]]:
    """Return rows of the panel's table with that caption, without its head."""
    script = """(caption) => {
      const found = [...document.querySelectorAll('.tv-timeline-panel table')]
        .find((one) => one.caption.textContent.startsWith(caption));
      return [...found.tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.textContent));
    }"""
    return list(page_.evaluate(script, caption))
