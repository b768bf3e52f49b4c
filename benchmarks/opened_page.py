"""Open one page with a timeline in headless Chromium, and print what that took, as one line of JSON.

    python benchmarks/opened_page.py traceviz report.html
    python benchmarks/opened_page.py viztracer trace.html --scripts FOLDER

Run by ``pages.py``, in a process of its own. Times begin where the navigation begins. The page is *open* when its
timeline has been drawn for the first time; what is not open after a minute is given up. While somebody pans, and then
zooms, for two seconds each, the page notes when its frames begin. *Memory* is what the process of the page has resident
at the end, and at most.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from playwright.sync_api import CDPSession, Error, Page, Route, sync_playwright

PATIENCE_S = 60.0
SECONDS = 2.0
FLAGS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync")
_FRAMES = """() => {
  const frames = window.__frames = [];
  (function note(now) {
    frames.push(now);
    if (window.__frames === frames) requestAnimationFrame(note);
  })(performance.now());
}"""
_OPEN = {
    "traceviz": "() => performance.getEntriesByName('tv-timeline-drawn')[0]?.startTime",
    "viztracer": "() => window.__opened",
}
_VIZTRACER_OPENED = """
(function look() {
  const viewer = document.getElementById("trace-viewer");
  if (viewer && viewer.model) requestAnimationFrame(() => setTimeout(() => { window.__opened = performance.now(); }));
  else setTimeout(look, 20);
})();
"""
"""Its viewer has a model once all is imported, and draws in the frame after."""


def main() -> None:
    """Open, pan, zoom, and print."""
    options = parse_options()
    path = os.environ.get("TRACEVIZ_CHROMIUM") or shutil.which("chromium")
    if path is None:
        sys.exit("chromium is not installed (make browser installs it)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        processes = browser.new_browser_cdp_session()
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.route(re.compile("^https?:"), lambda route: answer(route, options.scripts))
        if options.kind == "viztracer":
            page.add_init_script(_VIZTRACER_OPENED)
        try:
            found = measured(page, options)
        except Error as error:
            found = {"failed": error.message.splitlines()[0][:200]}
        found["bytes"], found["peak_bytes"] = memory(processes)
        browser.close()
    print(json.dumps(found))


def parse_options() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=_OPEN)
    parser.add_argument("page", type=Path)
    parser.add_argument("--scripts", type=Path, help="folder of the scripts that a page loads from elsewhere")
    return parser.parse_args()


def answer(route: Route, scripts: Path | None) -> None:
    """Serve a script that a page requests from the network, from a folder; everything else does not exist."""
    name = route.request.url.rsplit("/", 1)[-1]
    if scripts is not None and (scripts / name).is_file():
        route.fulfill(path=scripts / name, content_type="text/javascript")
    else:
        route.abort()


def measured(page: Page, options: argparse.Namespace) -> dict[str, Any]:
    """Return the opening time in milliseconds, and frames while panning and zooming."""
    page.set_default_timeout(PATIENCE_S * 1000)
    page.goto(options.page.resolve().as_uri(), wait_until="commit", timeout=PATIENCE_S * 1000)
    opened = page.wait_for_function(_OPEN[options.kind], timeout=PATIENCE_S * 1000, polling=50).json_value()
    marks = page.evaluate("performance.getEntriesByType('mark').map((mark) => [mark.name, mark.startTime])")
    page.wait_for_timeout(500)
    move = pan_and_zoom if options.kind == "traceviz" else by_keys
    return {"opened_ms": opened, "marks": dict(marks), **move(page)}


def pan_and_zoom(page: Page) -> dict[str, Any]:
    """Drag the timeline, then zoom into it and out again by Ctrl and the wheel."""
    page.locator("#timeline").scroll_into_view_if_needed()
    boxes = [box for canvas in page.locator("#timeline canvas").all() if (box := canvas.bounding_box())]
    box = max(boxes, key=lambda one: one["width"] * one["height"])  # the others are an overview and curves
    left, middle = box["x"] + box["width"] * 0.4, box["y"] + min(box["height"], 300) / 2
    page.mouse.move(left, middle)
    page.keyboard.down("Control")
    for _ in range(8):  # so that there is something to pan over
        page.mouse.wheel(0, -120)
    page.keyboard.up("Control")
    turn = iter(range(1_000_000))

    def drag() -> None:
        at = next(turn)
        page.mouse.move(left + 200 * (1 - abs(at % 80 - 40) / 20), middle)

    def zoom() -> None:
        page.mouse.wheel(0, -60 if next(turn) % 60 < 30 else 60)

    page.mouse.down()
    panned = frames(page, drag)
    page.mouse.up()
    page.keyboard.down("Control")
    zoomed = frames(page, zoom)
    page.keyboard.up("Control")
    return {"pan": panned, "zoom": zoomed}


def by_keys(page: Page) -> dict[str, Any]:
    """Do the same by the keys that its viewer knows: ``d`` and ``a`` pan, ``w`` and ``s`` zoom."""
    page.mouse.click(700, 300)
    turn = iter(range(1_000_000))
    return {
        name: frames(page, lambda keys=keys: page.keyboard.press(keys[next(turn) // 10 % 2]))
        for name, keys in {"pan": "da", "zoom": "ws"}.items()
    }


def frames(page: Page, act: Any) -> dict[str, float]:
    """Return the milliseconds between frames while ``act`` is repeated: the median and the 95th percentile."""
    page.evaluate(_FRAMES)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        act()
    begins = page.evaluate("window.__frames")
    lengths = sorted(after - before for before, after in pairwise(begins[2:]))
    if not lengths:
        return {"median_ms": SECONDS * 1000, "p95_ms": SECONDS * 1000}
    return {"median_ms": statistics.median(lengths), "p95_ms": lengths[int(len(lengths) * 0.95)]}


def memory(processes: CDPSession) -> tuple[int, int]:
    """Return the resident bytes of the largest process that shows pages, now and at most."""
    found = processes.send("SystemInfo.getProcessInfo")["processInfo"]
    statuses = [Path(f"/proc/{one['id']}/status") for one in found if one["type"] == "renderer"]
    sizes = [
        (_kilobytes(text, "VmRSS") * 1024, _kilobytes(text, "VmHWM") * 1024)
        for text in (status.read_text() for status in statuses if status.exists())
    ]
    return max(sizes, default=(0, 0))


def _kilobytes(status: str, name: str) -> int:
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(name))


if __name__ == "__main__":
    main()
