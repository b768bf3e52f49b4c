"""The contents of an SVG, read back: rectangles, texts, tooltips of marks."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import dataclass

NAMESPACE = "{http://www.w3.org/2000/svg}"


@dataclass(frozen=True)
class Rectangle:
    """A rectangle and its text."""

    x: float
    y: float
    width: float
    height: float
    said: str


def parsed(svg: str) -> ET.Element:
    return ET.fromstring(svg)


def found(svg: str, tag: str) -> list[ET.Element]:
    return list(parsed(svg).iter(f"{NAMESPACE}{tag}"))


def said(element: ET.Element) -> str:
    title = element.find(f"{NAMESPACE}title")
    return "" if title is None else title.text or ""


def rectangles(svg: str) -> list[Rectangle]:
    """Return rectangles with text: parts of bars."""
    return [
        Rectangle(*(float(rect.get(name, "nan")) for name in ("x", "y", "width", "height")), said(rect))
        for rect in found(svg, "rect")
        if said(rect)
    ]


def texts(svg: str) -> list[str]:
    return [text.text or "" for text in found(svg, "text")]


def titles(svg: str) -> list[str]:
    """Return the tooltips of marks; the first is the title of the figure."""
    return [title.text or "" for title in found(svg, "title")]
