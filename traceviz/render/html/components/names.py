"""Names from a trace, which may be long: signatures of kernels, queries, commands."""

from __future__ import annotations

from markupsafe import Markup

from traceviz.render.html.components.element import element, shown
from traceviz.render.text import ELLIPSIS

_MOST = 120
_TAIL = 30


def name(text: str) -> Markup:
    """The name; a long one as its start and end, which open to all of it."""
    whole = shown(text)
    if len(whole) <= _MOST:
        return Markup("{}").format(whole)
    short = f"{whole[: _MOST - _TAIL]}{ELLIPSIS}{whole[-_TAIL:]}"
    return element("details", element("summary", short), element("span", whole), class_="tv-long")
