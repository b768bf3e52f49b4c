"""Trend as a report document for all renderers."""

from __future__ import annotations

from collections.abc import Iterator

from traceviz.archive.trends.trend import Change, Direction, Shift, Trajectory, Trend
from traceviz.core.units import counted, format_change, format_ratio, format_value
from traceviz.gates.gates import GateResult, Outcome
from traceviz.report import (
    TREND,
    Audience,
    Block,
    Column,
    Fact,
    Grid,
    Level,
    Point,
    Prose,
    Report,
    Row,
    Section,
    Series,
    Verdict,
)
from traceviz.report.verdicts import VerdictCode

_PLOTS = 4
"""Maximum number of groups plotted for people. JSON has all groups."""
_PLURALS = {"framework": "frameworks", "gpu": "kinds of devices", "job": "jobs"}
_FAR = 10.0
"""Changes larger than this multiple of the previous level are given as factors."""


def document(trend: Trend) -> Report:
    """Return sections ``trend`` (plots and changes) and, if there are groups, ``groups``."""
    sections = [Section("groups", f"By {trend.per}", (_groups(trend),))] if trend.per else []
    meaning = trend.figure.meaning
    title = f"{meaning[:1].upper()}{meaning[1:]} ({trend.figure.name})"
    blocks: tuple[Block, ...] = (
        *(_plot(trend, group, "all" if number < _PLOTS else "machine") for number, group in enumerate(trend.groups)),
        *(_changes(trend), _runs(trend)),
        *map(Prose, _remarks(trend)),
    )
    sections.append(Section("trend", title, blocks))
    return Report(_about(trend), _verdict(trend), tuple(sections), schema=TREND)


def gate(trend: Trend, limit: float) -> tuple[GateResult, ...]:
    """Return the results of ``--fail-on-regression``: one for every group, failed ones first.

    Args:
        trend: The trend.
        limit: Minimum loss of the last level against the best one before it that fails, in the unit of
            :attr:`Shift.change`.
    """
    limit_in_words = f"< {_share(trend, limit)} worse"
    if not trend.groups:
        why = _why_empty(trend)
        return (GateResult("regression", "regression", limit_in_words, "not measured", Outcome.UNKNOWN, why),)
    results = [_gate(trend, trajectory, limit, limit_in_words) for trajectory in trend.groups]
    return tuple(sorted(results, key=lambda result: list(Outcome).index(result.outcome)))


def _gate(trend: Trend, trajectory: Trajectory, limit: float, limit_in_words: str) -> GateResult:
    unknown = trajectory.direction is Direction.UNKNOWN
    outcome = Outcome.UNKNOWN if unknown else Outcome.FAILED if trajectory.is_worse_by(limit) else Outcome.PASSED
    missed = trajectory.detectable if outcome is Outcome.PASSED and not trajectory.last else None
    mixture = f"the runs are of {_kinds(trend)}" if trend.mixed and outcome is Outcome.FAILED else ""
    hidden = f"a lasting change {_reach(trend, missed, 'of less than about')} may be missed" if missed else ""
    return GateResult(
        gate="regression",
        kind="regression",
        limit=limit_in_words,
        measured="not measured" if unknown else _in_short(trend, trajectory),
        outcome=outcome,
        why=trajectory.why or mixture or (hidden if missed and missed > limit else ""),
        side=trajectory.group,
        relation="<",
        limit_value=limit,
        value=trajectory.shift.change if trajectory.shift else None,
        unit="ratio",
    )


def _share(trend: Trend, value: float) -> str:
    """Format a share: ``5.0 %``; for shares ``5.0 points``."""
    text = format_ratio(value)
    return f"{text.removesuffix(' %')} points" if _points(trend) else text


def _reach(trend: Trend, value: float, of: str = "of") -> str:
    """Format a limit: ``of 14.5 %``; ``to 60 times the level`` if the figure must at least double."""
    if _points(trend) or value < 1:
        return f"{of} {_share(trend, value)}"
    return f"to {_times(1 + value)} times the level"


def _times(factor: float) -> str:
    return f"{factor:,.0f}" if factor >= 100 else f"{factor:.3g}"


def _in_short(trend: Trend, trajectory: Trajectory) -> str:
    if trajectory.shift is None:
        return str(trajectory.direction)
    how = "" if trajectory.direction is Direction.REGRESSION else f", {trajectory.direction}"
    return f"{_amount(trend, trajectory.shift)}{how}"


def _about(trend: Trend) -> tuple[Fact, ...]:
    runs = sum(trajectory.runs.height for trajectory in trend.groups)
    return (
        Fact("source", "trend", f"{trend.figure.name} by {trend.by}{f' per {trend.per}' * bool(trend.per)}"),
        Fact("metric", "metric", trend.figure.name),
        Fact("unit", "unit", trend.figure.unit),
        Fact("better", "better", trend.better or None),
        Fact("by", "by", trend.by),
        Fact("per", "per", trend.per or None),
        Fact("runs", "runs", runs, "count"),
        Fact("left_out", "rows without a value or a place", trend.left_out, "count"),
    )


def _verdict(trend: Trend) -> Verdict:
    """Return the sentence on the worst group, and the tally of all groups."""
    if not trend.groups:
        return Verdict(VerdictCode.CANNOT_JUDGE, f"Cannot judge: {_why_empty(trend)}.")
    worst = trend.groups[0]
    head = f"{worst.group}: " if trend.per else ""
    of = f" The runs are of {_kinds(trend)}." if trend.mixed and worst.direction is not Direction.UNKNOWN else ""
    return Verdict(worst.direction.code, f"{head}{_sentence(trend, worst)}{_tally(trend)}{of}")


def _kinds(trend: Trend) -> str:
    """Return the mixed kinds of runs: ``3 frameworks, 2 jobs``."""
    return ", ".join(f"{count:,} {_PLURALS[name]}" for name, count in trend.mixed)


_TALLY_WORDS = {
    Direction.REGRESSION: "worse",
    Direction.CHANGE: "changed",
    Direction.UNKNOWN: "not to be judged",
    Direction.IMPROVEMENT: "better",
    Direction.NO_CHANGE: "as before",
}


def _tally(trend: Trend) -> str:
    """Return the number of groups by direction: ``4 groups: 1 worse, 3 as before.``, after a space."""
    if not trend.per:
        return ""
    counts = (
        (sum(trajectory.direction is direction for trajectory in trend.groups), words)
        for direction, words in _TALLY_WORDS.items()
    )
    counts_in_words = ", ".join(f"{count:,} {words}" for count, words in counts if count)
    return f" {counted(len(trend.groups), 'group')}: {counts_in_words}."


def _why_empty(trend: Trend) -> str:
    if trend.figure.unknown:
        return f"no report tells {trend.figure.name}: {trend.figure.unknown}"
    where = "date" if trend.by == "date" else f"value of {trend.by}"
    return f"no trace has both {trend.figure.name} and a {where}"


def _sentence(trend: Trend, trajectory: Trajectory) -> str:
    name, last = trend.figure.name, trajectory.last
    if trajectory.direction is Direction.UNKNOWN:
        return f"Cannot judge {name}: {trajectory.why}."
    if last is None:
        reach = (
            f"; a lasting one {_reach(trend, trajectory.detectable)} would likely be seen"
            if trajectory.detectable
            else ""
        )
        return f"No change of {name} in {counted(trajectory.runs.height, 'run')}{reach}."
    head = f"{str(trajectory.direction).capitalize()}: {name}"
    if trajectory.loss is not None and trajectory.best is not None and trajectory.best < len(trajectory.levels) - 2:
        until = trajectory.runs["key"][trajectory.levels[trajectory.best + 1][0] - 1]
        was = f"was {format_value(trajectory.loss.before, trend.figure.unit)} until {until}, and is"
        now = f"{format_value(trajectory.loss.after, trend.figure.unit)} from {trajectory.runs['key'][last.start]} on"
        changes = counted(len(trajectory.changes), "change")
        return f"{head} {was} {now} ({_how_much(trend, trajectory.loss)}). {changes} in all."
    went = "rose" if last.shift.after > last.shift.before else "fell"
    levels = (
        f"{format_value(last.shift.before, trend.figure.unit)} → {format_value(last.shift.after, trend.figure.unit)}"
    )
    before = f" {counted(len(trajectory.changes) - 1, 'change')} before it." if len(trajectory.changes) > 1 else ""
    since = trajectory.runs["key"][last.start]
    return f"{head} {went} from {since} on, {levels} ({_how_much(trend, last.shift)}).{before}"


def _how_much(trend: Trend, shift: Shift) -> str:
    sure = f", 95 % interval {_interval(trend, shift)}" if shift.low is not None else ""
    return f"{_amount(trend, shift)}{sure}"


def _points(trend: Trend) -> bool:
    return trend.figure.unit == "ratio"


def _amount(trend: Trend, shift: Shift) -> str:
    """Format ``+12.1 %``, ``+4.0 points``, ``34 times``, or the difference if the level before is zero."""
    if shift.change is None:
        return format_change(shift.after - shift.before, trend.figure.unit)
    if shift.change > _FAR and not _points(trend):
        return f"{_times(1 + shift.change)} times"
    text = format_change(shift.change, "ratio")
    return f"{text.removesuffix(' %')} points" if _points(trend) else text


def _interval(trend: Trend, shift: Shift) -> str:
    """Format ``+9.8 to +14.5 %``; ``1.7 to 20 times`` for factors of ten and more."""
    if shift.low is None or shift.high is None:
        return ""
    if shift.high > _FAR and shift.low > -1 and not _points(trend):
        return f"{_times(1 + shift.low)} to {_times(1 + shift.high)} times"
    ends = [format_change(end, "ratio") for end in (shift.low, shift.high)]
    text = f"{ends[0].removesuffix(' %')} to {ends[1]}"
    return f"{text.removesuffix(' %')} points" if _points(trend) else text


def _plot(trend: Trend, trajectory: Trajectory, audience: Audience) -> Series:
    points = tuple(Point(*row) for row in trajectory.runs.select("key", "value").iter_rows())
    levels = tuple(Level(start, value) for start, value in trajectory.levels)
    name = f"{trajectory.group}: {trend.figure.name}" if trend.per else trend.figure.name
    marks = "; ▲ a change begins, ─ levels" if trajectory.changes else ""
    return Series(
        f"{name}, {counted(trajectory.runs.height, 'run')} by {trend.by}{marks}",
        trend.figure.unit,
        points,
        levels,
        audience,
    )


def _changes(trend: Trend) -> Grid:
    unit, better = trend.figure.unit, trend.better
    columns = (
        Column("group", trend.per or "Group", "text", 0 if trend.per else 9),
        Column("at", f"From {trend.by} on" if trend.by != "date" else "From", "text", 0),
        Column("before", "Before", unit, 0),
        Column("after", "After", unit, 0),
        Column("change", "Change, points" if _points(trend) else "Change", "ratio", 0, signed=True, better=better),
        Column("interval", "95 % interval", "text", 1, shorten=False, restates=True),
        Column("low", "95 % from", "ratio", 9, signed=True, better=better),
        Column("high", "95 % to", "ratio", 9, signed=True, better=better),
        Column("runs_before", "Runs before", "count", 2),
        Column("runs_after", "Runs after", "count", 2),
        Column("p_value", "By chance", "ratio", 3),
        Column("verdict", "Verdict", "text", 0, shorten=False),
        Column("trace_id", "First trace", "text", 4, shorten=False),
    )
    rows = tuple(_change(trend, trajectory, change) for trajectory in trend.groups for change in trajectory.changes)
    return Grid(columns, rows, "Changes", complete=True)


def _change(trend: Trend, trajectory: Trajectory, change: Change) -> Row:
    shift = change.shift
    return (
        trajectory.group or None,
        trajectory.runs["key"][change.start],
        *(shift.before, shift.after, shift.change),
        _interval(trend, shift) or None,
        *(shift.low, shift.high),
        *(change.count_before, change.count_after, change.p_value),
        change.direction.value,
        trajectory.runs["trace_id"][change.start],
    )


def _groups(trend: Trend) -> Grid:
    columns = (
        Column("group", trend.per, "text", 0),
        Column("runs", "Runs", "count", 0),
        Column("level", "Last level", trend.figure.unit, 0),
        Column("at", "Last change", "text", 1),
        Column("change", "Change", "ratio", 0, signed=True, better=trend.better),
        Column("interval", "95 % interval", "text", 2, shorten=False, restates=True),
        Column("low", "95 % from", "ratio", 9, signed=True, better=trend.better),
        Column("high", "95 % to", "ratio", 9, signed=True, better=trend.better),
        Column("detectable", "Would be seen", "ratio", 3),
        Column("verdict", "Verdict", "text", 0, shorten=False),
        Column("why", "Why", "text", 9),
    )
    return Grid(columns, tuple(_group(trend, trajectory) for trajectory in trend.groups), complete=True)


def _group(trend: Trend, trajectory: Trajectory) -> Row:
    last, shift = trajectory.last, trajectory.shift
    return (
        trajectory.group,
        trajectory.runs.height,
        trajectory.levels[-1][1],
        trajectory.runs["key"][last.start] if last else None,
        *((shift.change, _interval(trend, shift) or None, shift.low, shift.high) if shift else (None,) * 4),
        trajectory.detectable,
        trajectory.direction.value,
        trajectory.why or None,
    )


def _runs(trend: Trend) -> Grid:
    """Return every run with its level. This is for programs; people see the plot."""
    columns = (
        Column("group", trend.per or "Group", "text", 9),
        Column("key", trend.by, "text", 9),
        Column("value", trend.figure.name, trend.figure.unit, 9),
        Column("level", "Level", trend.figure.unit, 9),
        Column("recorded_ns", "Recorded", "ns", 9),
        Column("trace_id", "Trace", "text", 9, shorten=False),
        Column("traces", "Traces", "count", 9),
    )
    rows = tuple(row for trajectory in trend.groups for row in _with_levels(trajectory))
    return Grid(columns, rows, "Runs", complete=True)


def _with_levels(trajectory: Trajectory) -> Iterator[Row]:
    starts = dict(trajectory.levels)
    level = trajectory.levels[0][1]
    columns = ("key", "value", "recorded_ns", "trace_id", "traces")
    for position, (key, value, *others) in enumerate(trajectory.runs.select(columns).iter_rows()):
        level = starts.get(position, level)
        yield (trajectory.group or None, key, value, level, *others)


def _remarks(trend: Trend) -> Iterator[str]:
    """Yield why groups cannot be judged, what was left out, and what intervals do not cover."""
    for trajectory in trend.groups:
        if trajectory.why:
            yield f"Cannot judge {trajectory.group or trend.figure.name}: {trajectory.why}."
    hidden = len(trend.groups) - _PLOTS
    if hidden > 0:
        yield f"{counted(hidden, 'more group')} not drawn; JSON has all."
    if trend.mixed:
        yield (
            f"The runs{' of a group' * bool(trend.per)} are of different programs or machines ({_kinds(trend)}): "
            "what looks like a change may be the next program. "
            f"To judge each of them, use --per {trend.mixed[0][0]}; to judge some, use --where."
        )
    if any(trajectory.changes for trajectory in trend.groups):
        yield (
            "Intervals are of the levels as shown. They do not include that every run was searched for a change. "
            f"A change needs {trend.options.search.least} runs on each side: a younger one is not found yet."
        )
    if trend.left_out:
        rows = counted(trend.left_out, "row")
        yield f"{rows} of the catalogue without {trend.figure.name}, or without a {trend.by}, left out."
