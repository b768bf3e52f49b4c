"""Any block of a section as HTML."""

from __future__ import annotations

from markupsafe import Markup

from traceviz.render.html.components.bars import bars
from traceviz.render.html.components.element import element, prose
from traceviz.render.html.components.facts import facts
from traceviz.render.html.components.grid import GridStyle, grid
from traceviz.render.html.components.series import series
from traceviz.render.html.components.timeline import timeline
from traceviz.report import Bars, Block, Facts, Grid, Prose, Series, Timeline


def block(item: Block, style: GridStyle) -> Markup:
    """Draw a block of any kind; ``style`` is for tables."""
    match item:
        case Facts():
            return facts(item.facts, style.slug)
        case Grid():
            return grid(item, style)
        case Bars():
            return bars(item, style.slug)
        case Timeline():
            return timeline(item)
        case Series():
            return series(item)
        case Prose():
            return element("p", prose(item.text))
