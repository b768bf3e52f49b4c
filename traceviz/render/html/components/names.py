"""Names from a trace, which may be long: signatures of kernels, queries, commands."""

from __future__ import annotations

from markupsafe import Markup, escape

from traceviz.render.html.components.element import element, shown
from traceviz.render.text import ELLIPSIS, simplify_signature

_MOST = 120
_TAIL = 30


def name(text: str) -> Markup:
    """Draw a name: a signature without its boilerplate, a long name as its start and end.

    A shortened name can be opened to show all of it.
    """
    whole = shown(text)
    short = simplify_signature(whole)
    if len(short) > _MOST:
        short = f"{short[: _MOST - _TAIL]}{ELLIPSIS}{short[-_TAIL:]}"
    if short == whole:
        return escape(whole)
    return element("details", element("summary", short), element("span", whole), class_="tv-long")
