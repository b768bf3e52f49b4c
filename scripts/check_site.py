"""Check the built site: it loads nothing from elsewhere, and every link in it leads to a file and an anchor.

::

    python scripts/check_site.py build/site
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADING = {"link": "href", "script": "src", "img": "src", "iframe": "src", "source": "src", "object": "data"}
"""Elements that load a file when a page opens, with the attribute that names it."""
HINTS = {"canonical", "alternate", "edit", "license"}
"""Values of ``rel`` with which a ``link`` loads nothing."""


class Page(HTMLParser):
    """Files that one page loads, its links and its anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the references and anchors of an element."""
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif tag in LOADING and LOADING[tag] in values and values.get("rel") not in HINTS:
            self.loaded.append(values[LOADING[tag]])


def faults(site: Path) -> list[str]:
    """Return what is wrong with the pages of ``site``: one line for each reference."""
    pages = {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    found = [f"{site}: no pages"] if not pages else []
    for path, page in pages.items():
        name = path.relative_to(site.resolve())
        found += [f"{name}: loads {url}" for url in page.loaded if urlsplit(url).scheme or url.startswith("//")]
        for url in (*page.loaded, *page.links):
            parts = urlsplit(url)
            if parts.scheme or parts.netloc or url.startswith("/"):
                continue  # the page of an unknown address has absolute links, as it may stand in any folder
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file():
                found.append(f"{name}: {url} leads nowhere")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                found.append(f"{name}: {url} names no anchor")
    for style in site.rglob("*.css"):
        text = style.read_text(encoding="utf-8")
        found += [
            f"{style.relative_to(site)}: loads from {sign}"
            for sign in ("url(http", "url(//", "@import")
            if sign in text
        ]
    return found


def main(arguments: list[str]) -> int:
    """Print the faults of the site in the folder given; return the exit code."""
    found = faults(Path(arguments[0]))
    sys.stderr.writelines(f"{fault}\n" for fault in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
