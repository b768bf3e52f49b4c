"""Names of figures, with what they mean on hover and on focus."""

from __future__ import annotations

from markupsafe import Markup

from traceviz.render.definitions import definition
from traceviz.render.html.components.element import element, shown


def term(label: str, key: str, slug: str = "") -> Markup:
    """The label of a figure; where the catalogue defines its key, with the definition as its title."""
    meaning = definition(key, slug)
    if not meaning:
        return element("span", shown(label))
    return element("span", shown(label), class_="tv-term", tabindex=0, title=meaning)
