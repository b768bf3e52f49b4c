"""Screenshots of eight pages, stored with the tests: how they are taken, and when another one is equal.

    python -m tests.browser.references          take all of them again (make references)
    python -m tests.browser.references trend    only those whose names contain a word

A screenshot is the top of a page, where people look first: what ran, the verdict, bars, findings, figures, and most of
the timeline. Two are equal if few blocks of 8 × 8 pixels differ in their mean colour. Other fonts wrap lines
differently and move the lines below: each band of the reference may be found a little higher or lower.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from tests.archive.small_archives import add_rows, new_archive
from tests.browser.pages import SAMPLES
from tests.support.command import run

FOLDER = Path(__file__).with_name("references")
HEIGHT = 2000
COLORS = 64
"""Of the palette of a stored screenshot."""
BLOCK = 8
"""Pixels of a block, across and down."""
BAND = 20
"""Blocks of a band, down."""
MOVED = 10
"""Blocks that a band may have moved, up or down."""
DIFFERENT = 20.0
"""Of 255: a block differs if the mean of one of its colours does by more."""
MOST_DIFFERENT = 0.06
"""Share of blocks that may differ."""
_SLOW, _REPAIRED = SAMPLES / "kineto/slow.pt.trace.json.gz", SAMPLES / "kineto/repaired.pt.trace.json.gz"
_REPORTS: dict[str, tuple[str | Path, ...]] = {
    "slow-loader": ("report", _SLOW),
    "repaired-loader": ("report", _REPAIRED),
    "tensorflow": ("report", SAMPLES / "xplane/keras_tensorboard"),
    "two-ranks": ("report", SAMPLES / "kineto/two_ranks"),
    "host-stacks": ("report", SAMPLES / "kineto/stacks_memory.pt.trace.json.gz"),
    "cuda": ("report", SAMPLES / "synthetic/input_bound.sqlite"),
    "comparison": ("compare", _SLOW, _REPAIRED),
}
NAMES = (*_REPORTS, "trend")
SHOTS = (
    ("slow-loader", "light", 1400),
    ("repaired-loader", "light", 1400),
    ("tensorflow", "light", 800),
    ("two-ranks", "light", 2560),
    ("host-stacks", "light", 1400),
    ("cuda", "light", 1400),
    ("comparison", "light", 2560),
    ("trend", "light", 1400),
    ("cuda", "dark", 2560),
    ("comparison", "dark", 800),
)
"""Pages, each in one scheme and at one width: they have all kinds of content, both schemes and three widths."""

Picture = npt.NDArray[np.float64]
"""Mean red, green and blue of blocks: rows, columns, 3."""


def file_of(name: str, scheme: str, width: int) -> Path:
    """Return the path of a reference."""
    return FOLDER / f"{name}-{scheme}-{width}.png"


def words_of(name: str, folder: Path) -> tuple[str | Path, ...]:
    """Return the command whose page is shown; an archive is made in ``folder``."""
    return _REPORTS[name] if name in _REPORTS else ("archive", "trend", archive(folder / "archive"), "step_median")


def archive(place: Path) -> Path:
    """Return an archive of 24 runs on as many days, slower by a quarter from the 15th on."""
    if not place.exists():
        store = new_archive(place)
        day, first = 86_400_000_000_000, 1_778_400_000_000_000_000
        for number in range(24):
            median = (100_000_000 if number < 14 else 125_000_000) + number * 7 % 5 * 400_000
            facts = {"format": "nsys", "framework": "pytorch", "gpu": "A100", "recorded_ns": first + number * day}
            add_rows(store, {"trace_id": f"{number:016x}", "step_median": median, "steps": 100, **facts})
    return place


# Taking ---------------------------------------------------------------------------------------------------------------


def take(browser: Browser, page: Path, scheme: str, width: int) -> bytes:
    """Return a screenshot of the page."""
    context = browser.new_context(
        viewport={"width": width, "height": HEIGHT},
        color_scheme="dark" if scheme == "dark" else "light",
        reduced_motion="reduce",
    )
    opened = context.new_page()
    opened.goto(page.resolve().as_uri())
    settle(opened)
    taken = opened.screenshot()
    context.close()
    return taken


def settle(page: Page) -> None:
    """Wait until all that a page draws is drawn."""
    page.wait_for_function(
        "!document.getElementById('tv-timeline') || performance.getEntriesByName('tv-timeline-drawn').length"
    )
    page.wait_for_timeout(200)


def store(shot: Path, place: Path) -> None:
    """Keep a screenshot with few colours."""
    place.parent.mkdir(exist_ok=True)
    with Image.open(shot) as image:
        few = image.convert("RGB").quantize(COLORS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
        few.save(place, optimize=True)


# Comparing ------------------------------------------------------------------------------------------------------------


def picture(path: Path) -> Picture:
    """Return a screenshot as blocks."""
    with Image.open(path) as image:
        pixels = np.asarray(image.convert("RGB"), np.float64)
    rows, columns = (size // BLOCK for size in pixels.shape[:2])
    cut = pixels[: rows * BLOCK, : columns * BLOCK]
    return cut.reshape(rows, BLOCK, columns, BLOCK, 3).mean(axis=(1, 3))


def difference(reference: Picture, other: Picture) -> float:
    """Return the share of blocks of the reference that are not at their place, or near it."""
    if reference.shape != other.shape:
        return 1.0
    padded = np.pad(other, ((MOVED, MOVED), (0, 0), (0, 0)), mode="edge")
    differing = 0
    for top in range(0, len(reference), BAND):
        band = reference[top : top + BAND]
        moves = (padded[top + move : top + move + len(band)] for move in range(2 * MOVED + 1))
        differing += min(int((np.abs(band - moved).max(axis=2) > DIFFERENT).sum()) for moved in moves)
    return differing / reference[..., 0].size


def main() -> None:
    """Take the screenshots again."""
    from tests.browser.conftest import FLAGS, chromium

    wanted = sys.argv[1:]
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        for name, scheme, width in SHOTS:
            if wanted and not any(word in name for word in wanted):
                continue
            page, shot = folder / f"{name}.html", folder / "shot.png"
            done = run(*words_of(name, folder), "--format", "html", "-o", page, "--force")
            if done.returncode:
                sys.exit(done.stderr)
            shot.write_bytes(take(browser, page, scheme, width))
            store(shot, file_of(name, scheme, width))
        browser.close()
    if not wanted:
        known = {file_of(*shot) for shot in SHOTS}
        for path in set(FOLDER.glob("*.png")) - known:
            path.unlink()
    total = sum(path.stat().st_size for path in FOLDER.glob("*.png"))
    sys.stdout.write(f"{len(list(FOLDER.glob('*.png')))} screenshots, {total / 1e6:.2f} MB\n")


if __name__ == "__main__":
    main()
