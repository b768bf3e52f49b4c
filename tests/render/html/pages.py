"""The contents of a page, read back from it."""

import json
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

VOID = {"input", "meta", "br", "hr", "col"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str | None]
    children: list["Element | str"] = field(default_factory=list)

    def text(self) -> str:
        return "".join(child if isinstance(child, str) else child.text() for child in self.children)

    def all(self) -> list["Element"]:
        below = (child.all() for child in self.children if isinstance(child, Element))
        return [self, *(element for elements in below for element in elements)]

    def find(self, tag: str, **attributes: str) -> list["Element"]:
        wanted = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
        return [
            element
            for element in self.all()
            if element.tag == tag and all(_has(element, name, value) for name, value in wanted.items())
        ]

    def one(self, tag: str, **attributes: str) -> "Element":
        (found,) = self.find(tag, **attributes)
        return found


def _has(element: Element, name: str, value: str) -> bool:
    found = element.attributes.get(name) or ""
    return value in found.split() if name == "class" else found == value


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("root", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, dict(attrs))
        self.open[-1].children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, f"</{tag}> within <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def parsed(html: str) -> Element:
    """Return the elements of a page; each of them must be closed properly."""
    parser = _Parser()
    parser.feed(html)
    parser.close()
    assert parser.open == [parser.root]
    return parser.root


def report_data(html: str) -> dict[str, Any]:
    """Return the report that a page holds for programs."""
    match = re.search(r'<script type="application/json" id="tv-report">(.*?)</script>', html)
    assert match
    found: dict[str, Any] = json.loads(match[1])
    return found
