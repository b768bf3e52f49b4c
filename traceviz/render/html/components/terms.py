"""Names of figures, with their definition on hover and on focus."""

from __future__ import annotations

from markupsafe import Markup

from traceviz.render.definitions import definition
from traceviz.render.html.components.element import element, shown


def term(label: str, key: str, slug: str = "") -> Markup:
    """Draw the label of a figure, with its definition as title if the catalogue has one."""
    meaning = definition(key, slug)
    if not meaning:
        return element("span", shown(label))
    return element("span", shown(label), class_="tv-term", tabindex=0, title=meaning)
