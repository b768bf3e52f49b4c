"""The samples from which pages are made, and the tests' operations on a page."""

from __future__ import annotations

import base64
import hashlib
import re
import tomllib
from pathlib import Path

from playwright.sync_api import Page

from tests.conftest import REPOSITORY
from traceviz.render.html.inline import module, style

SAMPLES = REPOSITORY / "sample_traces"
_TIMELINE = re.compile(r'<section [^>]*id="timeline".*?</section>', re.DOTALL)
_ASSETS = REPOSITORY / "traceviz" / "render" / "html" / "assets"
_INLINE = re.compile(r"<(script|style)([^>]*)>(.*?)</\1>", re.DOTALL)
_POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">')
_OVERFLOW = """async () => {
  for (let frame = 0; frame < 3; frame += 1) await new Promise((done) => requestAnimationFrame(done));
  return document.documentElement.scrollWidth - document.documentElement.clientWidth;
}"""
UNFOLD = """() => {
  for (const details of document.querySelectorAll("details")) details.open = true;
  for (const more of document.querySelectorAll(".tv-more")) more.click();
}"""


def all_samples() -> list[str]:
    """Return every shipped sample, ranks of a job as their folder; what only nsys can open is left out."""
    entries = tomllib.loads((SAMPLES / "MANIFEST.toml").read_text(encoding="utf-8"))["trace"]
    named = dict.fromkeys(entry.get("folder", entry["file"]) for entry in entries)
    return [name for name in named if not name.endswith(".nsys-rep")]


def without_timeline(page: Path) -> int:
    """Return bytes of a page without its timeline: the section with the data, its scripts and its style."""
    text, sections = _TIMELINE.subn("", page.read_text(encoding="utf-8"))
    if not sections:
        return len(text.encode())
    scripts = sum(len(module(file.name).encode()) for file in _ASSETS.glob("timeline*.js"))
    return len(text.encode()) - scripts - len(style(["timeline.css"]).encode())


def policy(text: str) -> dict[str, str]:
    """Return the directives of a page's Content-Security-Policy."""
    found = _POLICY.search(text)
    assert found is not None
    stated = found[1].replace("&#39;", "'")
    return dict(part.strip().partition(" ")[::2] for part in stated.split(";"))


def without_policy(text: str) -> str:
    """Return the page as if it had no policy: what it escapes has to be enough."""
    changed, count = _POLICY.subn("", text)
    assert count == 1
    return changed


def inline(text: str) -> list[tuple[str, str]]:
    """Return ``script`` or ``style``, and the hash of its text, of all that runs or applies."""
    return [
        (tag, f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'")
        for tag, attributes, content in _INLINE.findall(text)
        if "application/" not in attributes
    ]


def overflow(page: Page) -> int:
    """Return pixels by which the page is wider than its window, once what is drawn has its new size."""
    return int(page.evaluate(_OVERFLOW))
