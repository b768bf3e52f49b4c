"""The harness itself notices what a page must not do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.conftest import Open

pytestmark = pytest.mark.browser


def written(folder: Path, body: str) -> Path:
    path = folder / "page.html"
    path.write_text(f'<!doctype html><html lang="en"><title>page</title><body>{body}</body></html>')
    return path


def test_a_plain_page_is_quiet(open_page: Open, tmp_path: Path) -> None:
    opened = open_page(written(tmp_path, "<h1>21</h1>"), width=800)
    opened.check_quiet()
    assert opened.page.evaluate("[innerWidth, document.querySelector('h1').textContent]") == [800, "21"]


def test_requests_errors_and_dialogs_are_noticed(open_page: Open, tmp_path: Path) -> None:
    hostile = '<img src="http://127.0.0.1:9/x.png"><script>alert(7)</script><script>throw new Error("bad")</script>'
    opened = open_page(written(tmp_path, hostile))
    assert opened.requests == ["http://127.0.0.1:9/x.png"]
    assert opened.dialogs == ["7"]
    assert any("bad" in text for text in opened.errors)


def test_a_dark_page_is_dark(open_page: Open, tmp_path: Path) -> None:
    opened = open_page(written(tmp_path, ""), scheme="dark")
    assert opened.page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") is True
