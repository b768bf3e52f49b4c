"""Headline, consequence and caveats of a report, for pages and notebooks."""

from __future__ import annotations

from markupsafe import Markup

from traceviz.render.html.components.element import element, joined, prose
from traceviz.render.verdict_text import first_lines
from traceviz.report import Verdict


def draw_first_lines(verdict: Verdict) -> Markup:
    """Draw the headline with its figure emphasised, then the consequence, and the caveats small; may be empty."""
    first = first_lines(verdict)
    before, figure, after = first.split(first.headline)
    claimed = (" ", element("strong", prose(figure), class_="tv-claimed"), " ") if figure else ("",)
    said = (prose(before), *claimed, prose(after))
    return joined(
        element("p", joined(part) if name == "tv-verdict" else prose(part), class_=name)
        for name, part in (("tv-verdict", said), ("tv-consequence", first.consequence), ("tv-caveats", first.caveats))
        if any(part)
    )
