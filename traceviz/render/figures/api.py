"""The share of each CUDA function in the time of all calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from traceviz.core.units import counted, format_value
from traceviz.render.figures.reading import Row, grid_with, of_trace, quantity, rows
from traceviz.render.figures.values import Axis, Figure, NoFigure, RankedBar, RankedBars
from traceviz.report import Report

LEAST_SHARE = 0.01
"""Functions with a smaller share are combined in one bar."""
_MOST = 20
"""Limit of bars, not counting the bar of the rest."""
_SLUG = "cuda_api"


def api(report: Report) -> Figure | NoFigure:
    """Draw a bar for each function with at least 1 % of the time of all calls, and one for the rest."""
    grid = grid_with(report, _SLUG, "name", "calls", "total_ns", "share_of_api")
    if grid is None:
        return NoFigure("no CUDA call was recorded")
    calls = sorted(rows(grid), key=lambda call: -quantity(call["share_of_api"]))
    shown = [call for call in calls if quantity(call["share_of_api"]) >= LEAST_SHARE][:_MOST]
    rest = calls[len(shown) :]
    total = format_value(sum(int(quantity(call["total_ns"])) for call in calls), "ns")
    count = counted(sum(int(quantity(call["calls"])) for call in calls), "call")
    return RankedBars(
        title="CUDA API time by function",
        subtitle=f"{count}, {total} on all threads, {of_trace(report)}".removesuffix(", "),
        axis=Axis("share of CUDA API time", "ratio"),
        bars=(*_bars(shown), *_rest(rest)),
    )


def _bars(calls: Sequence[Row]) -> Iterator[RankedBar]:
    """Return one bar per function; labels include the API if two functions share a name."""
    names = Counter(str(call["name"]) for call in calls)
    for call in calls:
        name = str(call["name"])
        label = name if names[name] == 1 else f"{name} ({call.get('domain')})"
        yield RankedBar(name, label, quantity(call["share_of_api"]), detail=_detail([call]))


def _rest(calls: Sequence[Row]) -> Iterator[RankedBar]:
    share = sum(quantity(call["share_of_api"]) for call in calls)
    if share > 0:
        yield RankedBar("other", counted(len(calls), "other function"), share, detail=_detail(calls))


def _detail(calls: Sequence[Row]) -> str:
    """Describe time and number of calls: ``92.0 ms in 4 calls``."""
    total = format_value(sum(int(quantity(call["total_ns"])) for call in calls), "ns")
    return f"{total} in {counted(sum(int(quantity(call['calls'])) for call in calls), 'call')}"
