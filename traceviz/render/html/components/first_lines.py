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
    claim = element("p", joined((prose(before), *claimed, prose(after))), class_="tv-verdict") if first.headline else ""
    others = (("tv-consequence", first.consequence), ("tv-caveats", first.caveats))
    return joined((claim, *(element("p", prose(text), class_=name) for name, text in others if text)))
