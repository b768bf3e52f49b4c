"""Figures as SVG: small, deterministic, and readable without scripts."""

from __future__ import annotations

from typing import ClassVar

from traceviz.render.figures.reading import in_words
from traceviz.render.figures.registry import figure
from traceviz.render.figures.values import Curves, Figure, Intervals, RankedBars, SignedBars, StackedBars
from traceviz.render.options import RenderOptions
from traceviz.render.svg import curves, stacked
from traceviz.render.svg.elements import BACKGROUND, FONTS, Element, dark_style, element, group, identity, rect, written
from traceviz.render.svg.layout import MARGIN, Drawing, Key, below_each_other, heading, legend, notes
from traceviz.render.svg.rows import draw_intervals, draw_ranked, draw_signed
from traceviz.report import Report

WIDTH = 720
LEAST_WIDTH = 320
"""Least width of a figure in pixels; letters need some room."""
_GAP = 12.0


def svg(figure: Figure, width: int = WIDTH, *, height: int | None = None, standalone: bool = True) -> str:
    """Draw the figure as an ``<svg>`` element.

    Args:
        figure: The figure.
        width: Pixels, at least 320.
        height: Pixels of upright bars and of curves, including letters and axes; rows one below another take the height
            that they need. ``None`` for a height that suits the figure.
        standalone: True for colours and a background of its own, which are dark if the reader's pages are. False for
            the colours of the page around it (``--tv-…``), and no background.
    """
    wide = max(width, LEAST_WIDTH)
    inner = wide - 2 * MARGIN
    head = heading(figure.title, figure.subtitle, inner)
    keys: tuple[Key, ...] = ()
    if isinstance(figure, StackedBars):
        keys = stacked.keys(figure)
    elif isinstance(figure, Curves):
        keys = curves.keys(figure)
    explained, foot = legend(keys, inner), notes(figure.notes, inner)
    around = sum(part.height + _GAP for part in (head, explained, foot) if part.elements) + 2 * MARGIN
    body = _body(figure, inner, None if height is None else height - around)
    drawn = below_each_other((head, explained, body, foot), MARGIN, MARGIN, _GAP)
    return _document(figure, drawn, wide, round(drawn.height + MARGIN), standalone=standalone)


def _body(figure: Figure, width: float, height: float | None) -> Drawing:
    match figure:
        case StackedBars():
            return stacked.draw(figure, width, height)
        case RankedBars():
            return draw_ranked(figure, width)
        case SignedBars():
            return draw_signed(figure, width)
        case Intervals():
            return draw_intervals(figure, width)
        case Curves():
            return curves.draw(figure, width, height)


def _document(figure: Figure, drawn: Drawing, width: int, height: int, *, standalone: bool) -> str:
    name = identity(f"{figure!r}{width}{height}")
    background = (rect(0, 0, width, height, fill=BACKGROUND),) if standalone else ()
    content = (*background, *drawn.elements)
    style = (Element("style", (), (dark_style(group(*content)),)),) if standalone else ()
    return written(
        element(
            "svg",
            element("title", figure.title, id=f"{name}-title"),
            element("desc", in_words(figure), id=f"{name}-desc"),
            *style,
            *content,
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {width} {height}",
            width=width,
            height=height,
            role="img",
            aria_labelledby=f"{name}-title {name}-desc",
            class_="tv-figure",
            font_family=FONTS,
        ),
        standalone=standalone,
    )


class SvgRenderer:
    """The requested figure, or the most informative one; text layout options have no effect."""

    name: ClassVar[str] = "svg"

    def render(self, report: Report, options: RenderOptions) -> str:
        """Render a standalone ``<svg>`` element.

        Raises:
            UsageError: there is no such figure, or this report does not have it; the error lists the available ones.
        """
        return svg(figure(report, options.figure), options.pixels or WIDTH) + "\n"
