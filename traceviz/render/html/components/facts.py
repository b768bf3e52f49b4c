"""Named values."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup

from traceviz.core.units import format_value
from traceviz.render.html.components.element import element, joined, shown
from traceviz.render.html.components.names import name
from traceviz.render.html.components.terms import term
from traceviz.report import Fact


def facts(items: Iterable[Fact], slug: str = "") -> Markup:
    """Draw a list of labels and values; empty if there are none."""
    entries = joined(_fact(fact, slug) for fact in items)
    return element("dl", entries, class_="tv-facts") if entries else Markup()


def _fact(fact: Fact, slug: str) -> Markup:
    text = format_value(fact.value, fact.unit)
    value = name(text) if isinstance(fact.value, str) else shown(text)
    return element(
        "div",
        element("dt", term(fact.label, fact.key, slug)),
        element("dd", value, class_=None if fact.unit == "text" else "tv-figure"),
    )
