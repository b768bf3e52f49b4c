"""Parts of a whole as one stacked bar with its legend."""

from __future__ import annotations

from itertools import accumulate

from markupsafe import Markup

from traceviz.render.html.components.colors import fill
from traceviz.render.html.components.element import element, joined, number, shown
from traceviz.render.html.components.names import name
from traceviz.render.html.components.terms import term
from traceviz.render.rows import bars_heading, number_of
from traceviz.report import Bar, Bars
from traceviz.units import format_ratio, format_value
from traceviz.visible import sentence

_WIDTH = 1000
_HEIGHT = 24


def bars(block: Bars, slug: str = "") -> Markup:
    """A figure: heading, the bar, and a table of its parts with their values."""
    heading = sentence(bars_heading(block))
    return element(
        "figure",
        element("figcaption", heading),
        _stacked(block, heading),
        element("table", _head(), _body(block, slug), class_="tv-legend"),
        class_="tv-bars",
    )


def _stacked(block: Bars, heading: str) -> Markup:
    shares = [min(max(number_of(part.share), 0.0), 1.0) for part in block.bars]
    starts = [0.0, *accumulate(shares)]
    parts = joined(
        element(
            "rect",
            element("title", _said(part, block)),
            x=number(start * _WIDTH),
            y=0,
            width=number(share * _WIDTH),
            height=_HEIGHT,
            fill=fill(part.key, position),
        )
        for position, (part, start, share) in enumerate(zip(block.bars, starts[:-1], shares, strict=True))
        if share > 0
    )
    box = f"0 0 {_WIDTH} {_HEIGHT}"
    said = f"{heading}: {', '.join(f'{shown(part.label)} {format_ratio(part.share)}' for part in block.bars)}"
    return element(
        "svg", parts, class_="tv-stacked", viewBox=box, preserveAspectRatio="none", role="img", aria_label=said
    )


def _said(part: Bar, block: Bars) -> str:
    return f"{shown(part.label)}: {format_value(part.value, block.unit)}, {format_ratio(part.share)}"


def _head() -> Markup:
    heads = ("Part", False), ("Value", True), ("Share", True)
    cells = joined(element("th", text, scope="col", class_="tv-number" if right else None) for text, right in heads)
    return element("thead", element("tr", cells))


def _body(block: Bars, slug: str) -> Markup:
    return element("tbody", joined(_part(part, position, block, slug) for position, part in enumerate(block.bars)))


def _part(part: Bar, position: int, block: Bars, slug: str) -> Markup:
    square = element("rect", width=12, height=12, rx=2, fill=fill(part.key, position))
    swatch = element("svg", square, class_="tv-swatch", viewBox="0 0 12 12", aria_hidden="true")
    known = term(part.label, part.key, slug)
    label = known if known.startswith("<span class") else name(part.label)
    return element(
        "tr",
        element("th", swatch, label, scope="row"),
        element("td", format_value(part.value, block.unit), class_="tv-number"),
        element("td", format_ratio(part.share), class_="tv-number"),
    )
