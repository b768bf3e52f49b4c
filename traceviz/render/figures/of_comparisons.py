"""Figures of a comparison of sides: their times, parts, changes by name, and resources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import cast

from traceviz.core.units import UNITS, Unit, Value, counted, format_speed, format_value
from traceviz.render.figures.reading import (
    Row,
    about,
    api_name,
    column,
    grid_with,
    number,
    quantity,
    rows,
    text,
    timelines,
)
from traceviz.render.figures.values import (
    Axis,
    CurvePoint,
    Curves,
    Interval,
    Intervals,
    Line,
    NoFigure,
    Panel,
    Part,
    SignedBar,
    SignedBars,
    StackedBars,
    StackedRow,
)
from traceviz.report import AMOUNTS_OF_LANES, CLASSES_OF_SIDES, PARTS_OF_SIDES, Better, Lane, Report, Timeline

_EFFECT = "effect"
_BASE = "base"
_DIFFERENT = frozenset({"faster", "slower"})
"""Verdicts that state a speed-up."""


def sides(report: Report) -> Intervals | NoFigure:
    """Draw the time of each side with its 95 % interval, followed by its speed-up."""
    grid = grid_with(report, _EFFECT, "side", "mean_ns", "low_ns", "high_ns")
    if grid is None or not any(number(row["mean_ns"]) is not None for row in rows(grid)):
        return NoFigure("no side has a time")
    table = list(rows(grid))
    base = next((row for row in table if row["verdict"] == _BASE), table[0])
    several = any((number(row["runs"]) or 0) > 1 for row in table)
    has_ends = any(number(row["low_ns"]) is not None for row in table)
    of = "between runs where a side has several" if several else "of the steps of one run"
    label = column(grid, "mean_ns").label
    return Intervals(
        f"{label} of each side",
        about(report),
        Axis(label.lower(), "ns"),
        tuple(
            Interval(
                text(row["side"]),
                text(row["side"]),
                number(row["mean_ns"]),
                number(row["low_ns"]),
                number(row["high_ns"]),
                detail=_detail(row["speedup_low"], row["speedup_high"]),
                beside=_beside(row["mean_ns"], row["speedup"], text(row["verdict"])),
            )
            for row in table
        ),
        interval=f"95 % interval, {of}" if has_ends else "",
        reference=number(base["mean_ns"]),
        reference_label=text(base["side"]),
    )


def _beside(time: Value, speedup: Value, verdict: str) -> str:
    """Return ``6.27 s · 2.78× faster``; for a side without a time, the reason: ``crashed: out of memory``."""
    factor = number(speedup)
    judged = verdict if factor is None or verdict not in _DIFFERENT else format_speed(factor)
    return judged if number(time) is None else f"{format_value(time, 'ns')} · {judged}"


def _detail(low: Value, high: Value) -> str:
    ends = [end for value in (low, high) if (end := number(value)) is not None]
    return f"{' to '.join(map(format_speed, ends))}, 95 % interval" if len(ends) == 2 else ""


def classes(report: Report) -> StackedBars | NoFigure:
    """Draw the mean step of each side by its exclusive classes."""
    return _stacked(report, CLASSES_OF_SIDES, "class", "Mean step by class of time", "mean step")


def parts(report: Report) -> StackedBars | NoFigure:
    """Draw the whole run of each side by its exclusive parts."""
    return _stacked(report, PARTS_OF_SIDES, "part", "Whole run by its parts", "time of the run")


def _stacked(report: Report, title: str, key: str, heading: str, axis: str) -> StackedBars | NoFigure:
    grid = grid_with(report, _EFFECT, title=title)
    if grid is None:
        return NoFigure("the reports do not list the classes of every step" if key == "class" else "no run has parts")
    table = list(rows(grid))
    # The order of the side with the most parts, since parts follow each other in time.
    of_sides: dict[str, list[str]] = {}
    for row in table:
        if quantity(row["mean_ns"]) > 0:
            of_sides.setdefault(text(row["side"]), []).append(text(row[key]))
    drawn = list(dict.fromkeys(one for names in sorted(of_sides.values(), key=len, reverse=True) for one in names))
    labels = {text(row[key]): text(row["label"]) for row in reversed(table)}
    times = {(text(row["side"]), text(row[key])): number(row["mean_ns"]) for row in table}
    bars = []
    for side in dict.fromkeys(text(row["side"]) for row in table):
        of_side = {one: max(times.get((side, one)) or 0.0, 0.0) for one in drawn}
        whole = sum(of_side.values())
        bars.append(
            StackedRow(
                side,
                tuple(
                    Part(one if key == "class" else f"part {one}", labels[one], time, time / whole if whole else 0.0)
                    for one, time in of_side.items()
                ),
            )
        )
    if not drawn:
        return NoFigure("no side has a time")
    missing = [(side.label, labels[one]) for side in bars for one in drawn if times.get((side.label, one), 0.0) is None]
    notes = tuple(f"{side} does not measure {name}: its time there is in other classes." for side, name in missing[:3])
    return StackedBars(heading, about(report), Axis(axis, "ns"), tuple(bars), rows_label="side", notes=notes)


MOST_CHANGES = 12
"""Limit of the bars of a figure; a note sums the smaller changes."""
_LEAST = 0.002
"""Share of the largest change below which a change is too small to draw."""


def kernels(report: Report) -> SignedBars | NoFigure:
    """Draw kernel time per step of the base and the new side, by kernel."""
    grid = grid_with(report, "kernels", "name", "status", "difference_ns")
    if grid is None:
        return NoFigure("kernels were not compared")
    return _changes("Kernels that changed most", _pair(report, grid.title), list(rows(grid)), "kernel", _KERNELS)


def api_changes(report: Report) -> SignedBars | NoFigure:
    """Draw time in functions of the CUDA API per step; without steady steps, shares of the API time."""
    grid = grid_with(report, "cuda_api", "name", "share_difference", "difference_ns")
    if grid is None:
        return NoFigure("calls of the devices' API were not compared")
    table = list(rows(grid))
    title = f"{api_name(report).removesuffix(' API')} functions that changed most"
    if any(number(row["difference_ns"]) is not None for row in table):
        return _changes(title, _pair(report, "per step, on average"), table, "function", "functions")
    names = ("base_share", "new_share", "share_difference")
    return _changes(title, _pair(report, "whole captures"), table, "function", "functions", names, "ratio")


def _pair(report: Report, of: str) -> str:
    """Name both sides: ``slow → fast: per step, on average``."""
    facts = {fact.key: text(fact.value) for fact in report.run}
    between = f"{facts.get('base', '')} → {facts.get('new', '')}"
    return of if of.startswith(between) else f"{between}: {of}"


_KERNELS = "kernels"
_SAME = "same"
"""Status of names whose time did not change."""
_TIMES = ("base_ns", "new_ns", "difference_ns")


def _changes(  # noqa: PLR0917 (what is drawn, and its words)
    title: str,
    subtitle: str,
    table: Sequence[Row],
    noun: str,
    nouns: str,
    names: tuple[str, str, str] = _TIMES,
    unit: Unit = "ns",
) -> SignedBars | NoFigure:
    base, new, difference = names
    changed = [(row, change) for row in table if row.get("status") != _SAME and (change := number(row[difference]))]
    ordered = sorted(changed, key=lambda pair: -abs(pair[1]))
    drawn = [pair for pair in ordered[:MOST_CHANGES] if abs(pair[1]) >= _LEAST * abs(ordered[0][1])]
    if not drawn:
        return NoFigure(f"no {noun} changed")
    bars = tuple(
        SignedBar(
            text(row["name"]),
            text(row["name"]),
            change,
            f"{format_value(row[base], unit)} → {format_value(row[new], unit)}",
            # The bar shows other changes than those of the name.
            status if (status := text(row.get("status"))) in {"new", "gone", "renamed"} else "",
        )
        for row, change in drawn
    )
    left = ordered[len(drawn) :]
    rest = format_value(round(sum(change for _, change in left)), "ns") if unit == "ns" else ""
    more = f"{len(left):,} more {nouns if len(left) > 1 else noun} changed{f', by {rest} together' if rest else ''}."
    label = "change of time" if unit == "ns" else "change of the share of API time"
    better: Better = "lower" if nouns == _KERNELS else ""  # a longer call may wait for work that got faster
    return SignedBars(title, subtitle, Axis(label, unit), bars, better, (more,) if left else ())


NOTABLE = 0.01
"""Functions with at least this share in any bar get a part of their own."""
MOST_FUNCTIONS = 11
"""Limit of parts of their own; more colours could not be distinguished."""
OTHER = "other"
"""Key of the part of all other functions."""

Shares = dict[str, dict[str, float]]
"""Shares by function, by the name of the bar."""


def api(report: Report) -> StackedBars | NoFigure:
    """Draw shares of the API time of the whole captures, for each side that recorded it."""
    every = grid_with(report, "cuda_api", "side", "name", "share_of_api")
    of_two = grid_with(report, "cuda_api", "name", "base_share", "new_share", "share_difference")
    if every is not None:
        shares = shares_by((text(row["side"]), text(row["name"]), row["share_of_api"]) for row in rows(every))
    else:
        names = {fact.key: text(fact.value) for fact in report.run}
        table = list(rows(of_two)) if of_two is not None else []
        shares = shares_by(
            (names.get(side, side), text(row["name"]), row[f"{side}_share"])
            for side in ("base", "new")
            for row in table
        )
    if len(shares) < 2:
        return NoFigure("calls of the devices' API were not recorded on two sides")
    name = api_name(report)
    return stacked_shares(f"{name} time by function", f"{about(report)}: whole captures", shares, "side", name)


def shares_by(triples: Iterable[tuple[str, str, Value]]) -> Shares:
    """Collect shares by bar and function, in their order."""
    found: Shares = {}
    for bar, name, share in triples:
        of_bar = found.setdefault(bar, {})
        of_bar[name] = of_bar.get(name, 0.0) + max(quantity(share), 0.0)
    return found


def stacked_shares(title: str, subtitle: str, shares: Shares, rows_label: str, api: str = "CUDA API") -> StackedBars:
    """Draw bars of all shares: functions with 1 % in any bar, the largest first, and the sum of the others."""
    most = {
        name: max(of_bar.get(name, 0.0) for of_bar in shares.values()) for of_bar in shares.values() for name in of_bar
    }
    notable = sorted((name for name in most if most[name] >= NOTABLE), key=lambda name: (-most[name], name))[
        :MOST_FUNCTIONS
    ]
    hidden = len(most) - len(notable)
    bars = []
    for bar, of_bar in shares.items():
        parts = [Part(name, name, of_bar.get(name, 0.0), of_bar.get(name, 0.0)) for name in notable]
        rest = sum(share for name, share in of_bar.items() if name not in notable)
        bars.append(StackedRow(bar, (*parts, *([Part(OTHER, "other functions", rest, rest)] if rest > 0 else ()))))
    notes = (f"{counted(hidden, 'other function')}, none with much time in any bar.",) if hidden else ()
    return StackedBars(
        title, subtitle, Axis(f"share of {api} time", "ratio", 0.0, 1.0), tuple(bars), rows_label, notes=notes
    )


_SECTIONS = ("resources", "device_use")
"""Sections with lanes: samples of the host and its devices, and work of the devices."""
MOST_RESOURCES = 4
"""Limit of panels."""


def resources(report: Report) -> Curves | NoFigure:
    """Draw a panel for each resource and a line for each side; time counts from the start of each run."""
    found = [(slug, timeline) for slug in _SECTIONS for timeline in timelines(report, slug)[:1]]
    panels = [panel for slug, timeline in found for panel in _panels(report, slug, timeline)]
    if not panels:
        return NoFigure("resources over time are not in the reports of two sides")
    panels.sort(key=lambda panel: [not panel.axis.label.startswith(start) for start in _FIRST])
    left = len(panels) - MOST_RESOURCES
    end_ns = max(timeline.end_ns for _, timeline in found)
    drawn = len({line.key for panel in panels for line in panel.lines})
    sides = next((number(fact.value) for fact in report.run if fact.key == "sides"), None) or drawn
    missing = f"{drawn} of {sides:.0f} sides: others were not sampled, or come after them."
    return Curves(
        "Resources over time",
        f"{about(report)}: each run from its start",
        Axis("time since the start of the run", "ns", 0, end_ns),
        tuple(panels[:MOST_RESOURCES]),
        notes=(
            *((missing,) if drawn < sides else ()),
            *((f"{left} more not drawn: section resources has them.",) if left > 0 else ()),
        ),
    )


_FIRST = ("CPU", "memory", "GPU", "threads")
"""Starts of labels, the most informative first."""


def _panels(report: Report, slug: str, timeline: Timeline) -> Iterator[Panel]:
    grid = grid_with(report, slug, title=AMOUNTS_OF_LANES)
    lanes = {lane.label: lane for lane in timeline.lanes}
    table = [row for row in rows(grid) if text(row["lane"]) in lanes] if grid is not None else []
    for label in dict.fromkeys(text(row["label"]) for row in table):
        same = [row for row in table if text(row["label"]) == label]
        unit, whole = text(same[0]["unit"]), text(same[0]["whole"])
        of_devices = " busy" * (slug == "device_use")
        axis = Axis(f"{label}{of_devices}", cast("Unit", unit) if unit in UNITS else "number", 0)
        if axis.unit == "ratio":
            axis = Axis(axis.label, "ratio", 0, 1)
        lines = tuple(_line(row, lanes[text(row["lane"])], timeline) for row in same)
        yield Panel(axis, lines, full=whole if axis.unit == "ratio" and not whole.endswith("%") else "")


def _line(row: Row, lane: Lane, timeline: Timeline) -> Line:
    """Return the means of equal slices; each holds until the start of the next."""
    amount = quantity(row["amount"])
    width = (timeline.end_ns - timeline.start_ns) / max(len(lane.values), 1)
    # The run ends with the last slice that was measured.
    count = 1 + max((index for index, value in enumerate(lane.values) if value is not None), default=-1)
    points = [
        CurvePoint(timeline.start_ns + index * width, None if value is None else value * amount)
        for index, value in enumerate(lane.values[:count])
    ]
    end = [CurvePoint(points[-1].x + width, None)] if points else []
    side = text(row["side"])
    return Line(side, side, (*points, *end), "steps")
