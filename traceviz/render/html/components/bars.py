"""Parts of a whole as one stacked bar with its legend."""

from __future__ import annotations

from itertools import accumulate

from markupsafe import Markup

from traceviz.core.units import Unit, format_ratio, format_value
from traceviz.render.html.components.colors import fills
from traceviz.render.html.components.element import element, joined, line, number, shown
from traceviz.render.html.components.terms import term
from traceviz.render.rows import bars_heading, number_of
from traceviz.report import Bar, Bars

_WIDTH = 1000
_HEIGHT = 24


def bars(block: Bars, slug: str = "") -> Markup:
    """Draw a figure: heading, the bar, and a table of its parts with their values; empty parts are only named."""
    heading = line(bars_heading(block))
    colors = fills([part.key for part in block.bars])
    parts = [(part, color) for part, color in zip(block.bars, colors, strict=True) if part.share > 0]
    return element(
        "figure",
        element("figcaption", heading),
        _stacked(block, parts, heading),
        element(
            "table",
            _head(),
            element("tbody", joined(_part(part, color, block.unit, slug) for part, color in parts)),
            class_="tv-legend",
        )
        if parts
        else "",
        _nothing(block, slug),
        class_="tv-bars",
    )


def _stacked(block: Bars, parts: list[tuple[Bar, str]], heading: str) -> Markup:
    shares = [min(number_of(part.share), 1.0) for part, _ in parts]
    drawn = joined(
        element(
            "rect",
            element("title", _said(part, block.unit)),
            x=number(start * _WIDTH),
            y=0,
            width=number(share * _WIDTH),
            height=_HEIGHT,
            fill=color,
        )
        for (part, color), start, share in zip(parts, accumulate(shares, initial=0.0), shares, strict=False)
    )
    said = f"{heading}: {', '.join(f'{shown(part.label)} {format_ratio(part.share)}' for part, _ in parts)}"
    return element(
        "svg",
        drawn,
        class_="tv-stacked",
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        preserveAspectRatio="none",
        role="img",
        aria_label=said,
    )


def _said(part: Bar, unit: Unit) -> str:
    return f"{shown(part.label)}: {_value(part, unit)}, {format_ratio(part.share)}"


def _value(part: Bar, unit: Unit) -> str:
    return shown(format_value(part.value, unit))


def _head() -> Markup:
    heads = ("Part", False), ("Value", True), ("Share", True)
    cells = joined(element("th", text, scope="col", class_="tv-number" if right else None) for text, right in heads)
    return element("thead", element("tr", cells))


def _part(part: Bar, color: str, unit: Unit, slug: str) -> Markup:
    square = element("rect", width=12, height=12, rx=2, fill=color)
    swatch = element("svg", square, class_="tv-swatch", viewBox="0 0 12 12", aria_hidden="true")
    return element(
        "tr",
        element("th", swatch, term(part.label, part.key, slug), scope="row"),
        element("td", _value(part, unit), class_="tv-number"),
        element("td", format_ratio(part.share), class_="tv-number"),
    )


def _nothing(block: Bars, slug: str) -> Markup:
    """List the parts that take no time."""
    parts = [part for part in block.bars if part.share <= 0]
    if not parts:
        return Markup()
    names = Markup(", ").join(term(part.label, part.key, slug) for part in parts)
    return element("p", f"{_value(parts[0], block.unit)}: ", names, class_="tv-none")
