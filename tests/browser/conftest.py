"""Pages in a real browser: Chromium of the distribution, headless, with nothing that calls home.

TRACEVIZ_CHROMIUM names another Chromium; ``make browser`` installs one. Tests skip without it, unless
TRACEVIZ_REQUIRE_BROWSER is set.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.support.command import run

FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--hide-scrollbars", "--force-color-profile=srgb"),
    "--font-render-hinting=none",
)
Scheme = Literal["light", "dark"]


def chromium() -> str:
    """Return the path of Chromium; without it the test is skipped, or fails if Chromium is required."""
    found = os.environ.get("TRACEVIZ_CHROMIUM") or shutil.which("chromium")
    if found:
        return found
    if os.environ.get("TRACEVIZ_REQUIRE_BROWSER"):
        pytest.fail("chromium is not installed, and TRACEVIZ_REQUIRE_BROWSER says that it must be")
    pytest.skip("chromium is not installed (make browser installs it)")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One Chromium for all tests of a worker."""
    path = chromium()
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield started
        started.close()


@dataclass
class Opened:
    """A page that was opened from a file, and events since then.

    Args:
        page: The page.
        errors: Errors of scripts, and errors on the console, including violations of the CSP.
        requests: Addresses that the page requested, in addition to its own file.
        dialogs: Texts of dialogs that appeared.
    """

    page: Page
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)

    def check_quiet(self) -> None:
        """Check that nothing failed, nothing was requested, and no dialog appeared."""
        assert (self.errors, self.requests, self.dialogs) == ([], [], [])


Open = Callable[..., Opened]
MakePage = Callable[..., Path]


@pytest.fixture(scope="session")
def make_page(tmp_path_factory: pytest.TempPathFactory) -> MakePage:
    """Pages by the command line, each made once for all tests of a worker: ``make_page("report", trace, "--all")``."""
    folder = tmp_path_factory.mktemp("pages")
    made: dict[tuple[str, ...], Path] = {}

    def page(*words: str | Path) -> Path:
        key = (*map(str, words),)
        if key not in made:
            path = folder / f"{len(made)}.html"
            done = run(*words, "--format", "html", "-o", path)
            assert (done.returncode, done.stderr) == (0, "")
            made[key] = path
        return made[key]

    return page


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Open]:
    """Open a file in a fresh context: ``open_page(path, width=1400, height=900, scheme="light")``."""
    contexts = []

    def opened(path: Path, width: int = 1400, height: int = 900, scheme: Scheme = "light") -> Opened:
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce"
        )
        contexts.append(context)
        result = Opened(context.new_page())
        own = path.resolve().as_uri()
        page = result.page
        page.on("pageerror", lambda error: result.errors.append(str(error)))
        page.on("console", lambda said: result.errors.append(said.text) if said.type in {"error", "warning"} else None)
        page.on("dialog", lambda dialog: (result.dialogs.append(dialog.message), dialog.dismiss())[1])
        page.on("request", lambda asked: None if asked.url.split("#")[0] == own else result.requests.append(asked.url))
        page.goto(own)
        return result

    yield opened
    for context in contexts:
        context.close()
