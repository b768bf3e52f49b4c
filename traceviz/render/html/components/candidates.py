"""Candidate causes, with their confidence."""

from __future__ import annotations

from markupsafe import Markup

from traceviz.render.html.components.grid import GridStyle, grid
from traceviz.render.why import candidates_grid
from traceviz.report import Verdict

_CAPTION = "What may take the time, and how sure that is"


def candidates(verdict: Verdict) -> Markup:
    """Draw a table of the candidates for the verdict; empty if there are none."""
    return grid(candidates_grid(verdict), GridStyle(caption=_CAPTION, slug="why")) if verdict.candidates else Markup()
