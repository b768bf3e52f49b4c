"""Figures of a report on one trace: steps, use of devices and host, calls of the CUDA API."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from traceviz.core.units import Value, counted, format_ratio, format_value
from traceviz.render.figures.reading import Row, about, api_name, grid_with, number, of_trace, quantity, rows, timelines
from traceviz.render.figures.values import (
    Axis,
    CurvePoint,
    Curves,
    Figure,
    Line,
    NoFigure,
    Panel,
    Part,
    RankedBar,
    RankedBars,
    StackedBars,
    StackedRow,
    spans_decades,
)
from traceviz.report import BY_STEP, EVERY_STEP, OVER_TIME, STATED, Bars, Lane, Report, Timeline

MOST_BARS = 120
"""Limit of the bars of a figure; with more steps, a bar is the mean of several consecutive ones."""
MOST_RANKS = 4
"""Limit of ranks with a bar each per step; with more, a bar is the mean of all ranks."""


@dataclass(frozen=True, slots=True)
class _Step:
    """A step of one rank: its number, and the time of each class in order."""

    number: Value
    rank: Value
    times: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class _Steps:
    """Steps in order of their numbers, and key and label of each class."""

    classes: tuple[tuple[str, str], ...]
    steps: tuple[_Step, ...]

    @property
    def ranks(self) -> tuple[Value, ...]:
        """Each rank once, in order."""
        return tuple(sorted({step.rank for step in self.steps}, key=quantity))


def steps(report: Report) -> Figure | NoFigure:
    """Draw the classes of each steady step; the whole step if the report has no classes."""
    found = _classified(report) or _plain(report)
    if found is None or not found.steps:
        return NoFigure("no single step is known in it")
    ranks = found.ranks
    numbers = tuple(dict.fromkeys(step.number for step in found.steps))
    side_by_side = len(ranks) <= MOST_RANKS
    # A bar covers 1, 2, 5, 10, 20, 50, ... steps.
    least = len(numbers) * (len(ranks) if side_by_side else 1) / MOST_BARS
    power: int = 10 ** math.floor(math.log10(max(least, 1)))
    each = next(part * power for part in (1, 2, 5, 10) if part * power >= least)
    bars = tuple(_rows(found, numbers, each, ranks if side_by_side else ()))
    how = counted(len(numbers), "steady step")
    of_ranks = f" on {counted(len(ranks), 'rank')}" if len(ranks) > 1 else ""
    # The report also states the classes of all steps together.
    known: Mapping[str, Part] = {
        bar.key: Part(bar.key, bar.label, quantity(bar.value), bar.share)
        for block in report.blocks("breakdown")
        if isinstance(block, Bars)
        for bar in block.bars
    }
    whole = tuple(known[key] for key, _ in found.classes if key in known)
    return StackedBars(
        title="Time of every step" + (", by class" if len(found.classes) > 1 else ""),
        subtitle=f"{how}{of_ranks} {of_trace(report)}".strip(),
        axis=Axis("step time", "ns"),
        rows=bars,
        rows_label="step" if each == 1 else "steps",
        upright=True,
        whole=whole,
        notes=tuple(_notes(report, each, ranks, side_by_side=side_by_side)),
    )


def _classified(report: Report) -> _Steps | None:
    """Return steps with their classes, without classes that take no time in any step."""
    grid = grid_with(report, "breakdown", "step", title=BY_STEP)
    if grid is None:
        return None
    columns = [column for column in grid.columns if column.unit == "ns" and column.name != "dur_ns"]
    of_steps = list(rows(grid))
    classes = [column for column in columns if any(quantity(row[column.name]) for row in of_steps)]
    if not classes:
        return None
    found = [_Step(row["step"], row.get("process"), tuple(_time(row[one.name]) for one in classes)) for row in of_steps]
    return _Steps(tuple((column.name, column.label) for column in classes), tuple(found))


def _plain(report: Report) -> _Steps | None:
    """Return steps without their classes, except warm-up and cut ones."""
    grid = grid_with(report, "steps", "step", "dur_ns", title=EVERY_STEP)
    if grid is None:
        return None
    of_steps = [row for row in rows(grid) if not row.get("warmup") and not row.get("cut")]
    found = [_Step(row["step"], row.get("process"), (_time(row["dur_ns"]),)) for row in of_steps]
    return _Steps((("step", "step"),), tuple(found))


def _time(value: Value) -> float:
    return max(quantity(value), 0.0)


def _rows(found: _Steps, numbers: Sequence[Value], each: int, ranks: Sequence[Value]) -> Iterator[StackedRow]:
    """Return a bar per ``each`` steps and rank; of all ranks together if there are fewer than two."""
    by_number: dict[Value, list[_Step]] = {}
    for step in found.steps:
        by_number.setdefault(step.number, []).append(step)
    for begin in range(0, len(numbers), each):
        some = numbers[begin : begin + each]
        label, to = str(some[0]), "" if len(some) == 1 else f"to {some[-1]}"
        within = [step for number in some for step in by_number[number]]
        if len(ranks) < 2:
            yield _bar(label, to, found.classes, within)
            continue
        for rank in ranks:
            of_rank = [step for step in within if step.rank == rank]
            if of_rank:
                of = " ".join(filter(None, (to, f"of rank {rank}")))
                yield _bar(label, of, found.classes, of_rank, group=label)


def _bar(
    label: str, remark: str, classes: Sequence[tuple[str, str]], steps: Sequence[_Step], group: str = ""
) -> StackedRow:
    """Return a bar with the mean of some steps, and a mark for the longest."""
    means = [sum(step.times[number] for step in steps) / len(steps) for number in range(len(classes))]
    total = sum(means)
    parts = (
        Part(key, name, mean, mean / total if total else None) for (key, name), mean in zip(classes, means, strict=True)
    )
    most = max(sum(step.times) for step in steps) if len(steps) > 1 else None
    return StackedRow(label, tuple(parts), remark, most, group)


def _notes(report: Report, each: int, ranks: Sequence[Value], *, side_by_side: bool) -> Iterator[str]:
    if len(ranks) > 1 and side_by_side:
        named = ", ".join(str(rank) for rank in ranks)
        yield f"Each {'step' if each == 1 else 'place'} has a bar for each rank, from left to right: {named}."
    if each > 1:
        yield f"Each bar is the mean of {each} steps; the line above it is the longest of them."
    elif len(ranks) > 1 and not side_by_side:
        yield "Each bar is the mean of all ranks; the line above it is the slowest of them."
    warmup = [row for row in _every_step(report) if row.get("warmup")]
    if warmup:
        longest = format_value(max(quantity(row["dur_ns"]) for row in warmup), "ns")
        took = f"it took {longest}" if len(warmup) == 1 else f"the longest took {longest}"
        yield f"{counted(len(warmup), 'warm-up step')} left out: {took}."


def _every_step(report: Report) -> Iterator[Row]:
    grid = grid_with(report, "steps", "step", "dur_ns", title=EVERY_STEP)
    return iter(()) if grid is None else rows(grid)


_DEVICES, _HOST, _MEMORY = "device_use", "host", "memory"
_SLUGS = (_DEVICES, _HOST, _MEMORY)
"""Sections whose timelines share the trace's clock, in drawing order."""
_LEAST = 0.001
"""Smallest share that can be distinguished from zero."""
_MOST_LANES = 16
"""Limit of the lanes of a figure; more could not be distinguished."""


def utilization(report: Report) -> Figure | NoFigure:
    """Draw a panel for each device and each resource of the host."""
    found = [(slug, timeline) for slug in _SLUGS for timeline in timelines(report, slug)]
    # Curves that are a line at zero show nothing.
    if all(
        all(value is None or value < _LEAST for value in lane.values)
        for _, timeline in found
        for lane in timeline.lanes
    ):
        return NoFigure("neither devices nor the host were busy in it, or nobody sampled them")
    panels = tuple(panel for slug, timeline in found for panel in _panels(slug, timeline))
    start = min(timeline.start_ns for _, timeline in found)
    end = max(timeline.end_ns for _, timeline in found)
    left_out = len(panels) - _MOST_LANES
    return Curves(
        title=_title_of_use({slug for slug, _ in found}),
        subtitle=about(report),
        x=Axis("time", "ns", start, end),
        panels=panels[:_MOST_LANES],
        notes=(f"{left_out} more are left out.",) if left_out > 0 else (),
    )


def _title_of_use(slugs: set[str]) -> str:
    if slugs == {_MEMORY}:
        return "Use of device memory over time"
    of_devices = "devices" if slugs - {_HOST} else ""
    of_host = "the host" if _HOST in slugs else ""
    return f"Use of {' and '.join(filter(None, (of_devices, of_host)))} over time"


_USE_KEYS = {_DEVICES: "device_compute", _HOST: "host_compute", _MEMORY: "allocation"}
"""Colour keys by section."""


def _panels(slug: str, timeline: Timeline) -> Iterator[Panel]:
    for lane in timeline.lanes:
        measured = [value for value in lane.values if value is not None]
        if measured:
            mean = "" if lane.whole else f"mean {format_ratio(sum(measured) / len(measured))}"
            label = f"memory of {lane.label}" if slug == _MEMORY else lane.label
            lines: tuple[Line, ...] = (Line(_USE_KEYS[slug], label, tuple(_points(timeline, lane.values)), "area"),)
            if lane.parts:
                lines = tuple(_stacked(timeline, lane)) or lines
            yield Panel(Axis(label, "ratio", 0.0, 1.0), lines, full=lane.whole, remark=mean)


def _stacked(timeline: Timeline, lane: Lane) -> Iterator[Line]:
    """Return a line for each kind that occurs, as high as it and the kinds before it: the highest is drawn first."""
    sums = [sum(shares) for shares in zip(*(shares for *_, shares in lane.parts), strict=True)]
    for key, label, shares in reversed(lane.parts):
        if max(shares, default=0.0) >= _LEAST:
            yield Line(key, label, tuple(_points(timeline, sums)), "stacked")
        sums = [total - share for total, share in zip(sums, shares, strict=True)]


def _points(timeline: Timeline, values: Sequence[float | None]) -> Iterator[CurvePoint]:
    """Return one point at the start of each slice; its value holds until the next one."""
    span = timeline.end_ns - timeline.start_ns
    for place, value in enumerate(values):
        yield CurvePoint(timeline.start_ns + span * place / len(values), value)
    yield CurvePoint(timeline.end_ns, None)


_QUALITY = "quality"
_MOST_FIGURES = 4
"""Limit of the panels with figures of quality."""
_COURSE_OF = 3
"""Least number of values for a curve."""


def quality(report: Report) -> Curves | NoFigure:
    """Draw the learning curves: a panel for each figure of quality, and a line for each run."""
    grid = grid_with(report, _QUALITY, "label", "epoch", "step", "start_ns", "value", title=OVER_TIME)
    stated = grid_with(report, _QUALITY, "label", "better", "last", title=STATED)
    table = list(rows(grid)) if grid is not None else []
    judged = {str(row["label"]) for row in rows(stated) if row["better"]} if stated is not None else None
    curves: dict[str, dict[tuple[str, str], list[Row]]] = {}
    for row in table:
        if judged is None or row["label"] in judged:
            of_run = str(row.get("side", _QUALITY)), str(row.get("run", row["label"]))
            curves.setdefault(str(row["label"]), {}).setdefault(of_run, []).append(row)
    drawn = {
        label: long
        for label, runs in curves.items()
        if (long := {run: course for run, course in runs.items() if len(course) >= _COURSE_OF})
    }
    if not drawn:
        return NoFigure("no figure of quality has several values")
    shown = dict(list(drawn.items())[:_MOST_FIGURES])
    x = next(
        (name for name in ("epoch", "step") if all(_counts(c, name) for runs in shown.values() for c in runs.values())),
        "start_ns",
    )
    first = {run: min(quantity(row["start_ns"]) for row in c) for runs in shown.values() for run, c in runs.items()}
    panels = tuple(_quality_panel(label, runs, x, first) for label, runs in shown.items())
    left = len(drawn) - len(shown)
    return Curves(
        "Learning curves",
        about(report),
        Axis("time since the first value", "ns") if x == "start_ns" else Axis(x),
        panels,
        notes=(f"{left} more figures are in section quality.",) if left > 0 else (),
    )


def _counts(course: Sequence[Row], name: str) -> bool:
    """Return whether each value of a curve has an epoch, or a step, of its own."""
    return None not in {row[name] for row in course} and len({row[name] for row in course}) == len(course)


def _quality_panel(
    label: str, runs: Mapping[tuple[str, str], Sequence[Row]], x: str, first: Mapping[tuple[str, str], float]
) -> Panel:
    """Scale the panel to its values: from zero, changes of a loss from 2.31 to 2.29 would not be visible."""
    lines = []
    for (side, name), course in runs.items():
        begin = first[side, name] if x == "start_ns" else 0.0
        points = (CurvePoint(quantity(row[x]) - begin, number(row["value"])) for row in course)
        lines.append(Line(side, name, tuple(points)))
    values = [point.y for line in lines for point in line.points if point.y is not None]
    is_log = spans_decades(values, "number")
    low, high = min(values, default=0.0), max(values, default=0.0)
    is_close = high > low and not is_log
    return Panel(Axis(label, "number", start=low if is_close else None, log=is_log), tuple(lines))


LEAST_SHARE = 0.01
"""Functions with a smaller share are combined in one bar."""
_MOST_CALLS = 20
"""Limit of bars, not counting the bar of the rest."""
_API = "cuda_api"


def api(report: Report) -> Figure | NoFigure:
    """Draw a bar for each function with at least 1 % of the time of all calls, and one for the rest."""
    grid = grid_with(report, _API, "name", "calls", "total_ns", "share_of_api")
    if grid is None:
        return NoFigure("no call of the device's API was recorded")
    calls = sorted(rows(grid), key=lambda call: -quantity(call["share_of_api"]))
    shown = [call for call in calls if quantity(call["share_of_api"]) >= LEAST_SHARE][:_MOST_CALLS]
    rest = calls[len(shown) :]
    total = format_value(sum(int(quantity(call["total_ns"])) for call in calls), "ns")
    count = counted(sum(int(quantity(call["calls"])) for call in calls), "call")
    return RankedBars(
        title=f"{api_name(report)} time by function",
        subtitle=", ".join(filter(None, (count, f"{total} on all threads", of_trace(report)))),
        axis=Axis(f"share of {api_name(report)} time", "ratio"),
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
