"""Ratios over time as small curves."""

from __future__ import annotations

from itertools import groupby

from markupsafe import Markup

from traceviz.core.units import NOT_MEASURED, format_ns, format_ratio
from traceviz.render.html.components.colors import fills
from traceviz.render.html.components.element import element, joined, line, number, shown
from traceviz.render.html.components.names import name
from traceviz.render.terminal.blocks import mean
from traceviz.report import Lane, Timeline

_HEIGHT = 20


def timeline(block: Timeline) -> Markup:
    """Draw a table with a curve and a mean per lane; empty if there are no lanes."""
    if not block.lanes:
        return Markup()
    span = f"{format_ns(block.start_ns)} to {format_ns(block.end_ns)}"
    heads = joined(
        element("th", text, scope="col", class_=kind)
        for text, kind in (("Lane", None), (span, "tv-course"), ("Mean", "tv-number"))
    )
    colors = fills([""] * len(block.lanes))
    rows = joined(_lane(lane, color) for lane, color in zip(block.lanes, colors, strict=True))
    caption = element("caption", line(block.title) or "Over time", class_="tv-unseen")
    table = element("table", caption, element("thead", element("tr", heads)), element("tbody", rows), class_="tv-lanes")
    label = line(block.title) or "over time"
    region = element("div", table, class_="tv-scroll", role="group", tabindex=0, aria_label=label)
    heading = element("h3", line(block.title)) if block.title else ""
    return element("div", heading, region, class_="tv-table-of-lanes")


def _lane(lane: Lane, color: str) -> Markup:
    average = mean(lane.values)
    ratio = NOT_MEASURED if average is None else format_ratio(average)
    said = f"{ratio} of {shown(lane.whole)}" if lane.whole else ratio
    return element(
        "tr",
        element("th", name(lane.label), scope="row"),
        element("td", _curve(lane, color), class_="tv-course"),
        element("td", said, class_="tv-number"),
    )


def _curve(lane: Lane, color: str) -> Markup:
    """Draw slices as steps of an area, with gaps for slices that were not measured."""
    parts = []
    for is_measured, run in groupby(enumerate(lane.values), key=lambda item: item[1] is not None):
        slices = list(run)
        if is_measured:
            tops = (f"V{number(_HEIGHT * (1 - min(max(value or 0.0, 0.0), 1.0)))}h1" for _, value in slices)
            parts.append(f"M{slices[0][0]} {_HEIGHT}{''.join(tops)}V{_HEIGHT}z")
    area = "".join(parts)
    drawn = element("path", d=area, fill=color)
    box = f"0 0 {max(len(lane.values), 1)} {_HEIGHT}"
    return element(
        "svg",
        drawn,
        class_="tv-curve",
        viewBox=box,
        preserveAspectRatio="none",
        role="img",
        aria_label=f"{shown(lane.label)} over time",
    )
