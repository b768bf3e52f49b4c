"""A trend as a report document, so that every renderer serves it."""

from __future__ import annotations

from collections.abc import Iterator

from traceviz.archive.trends.trend import Change, Direction, Shift, Trajectory, Trend
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
from traceviz.units import counted, format_change, format_ratio, format_value

_PLOTS = 4
"""Groups that are drawn for people; JSON has all."""
_PLURALS = {"framework": "frameworks", "gpu": "kinds of devices", "job": "jobs"}
_FAR = 10.0
"""Changes by more times the level before than this are told as factors."""


def document(found: Trend) -> Report:
    """Sections ``trend`` (plots and changes) and, where groups are told apart, ``groups``."""
    sections = [Section("groups", f"By {found.per}", (_groups(found),))] if found.per else []
    sections.append(Section("trend", _title(found), tuple(_blocks(found))))
    return Report(_about(found), _verdict(found), tuple(sections), schema=TREND)


def gate(found: Trend, limit: float) -> tuple[GateResult, ...]:
    """What becomes of ``--fail-on-regression``: one result for every group, failed ones first.

    Args:
        found: The trend.
        limit: A last level that is worse than the best before it by this much or more fails, as :attr:`Shift.change`
            counts.
    """
    if not found.groups:
        unknown = GateResult(
            "regression", "regression", _limit(found, limit), "not measured", Outcome.UNKNOWN, _nothing(found)
        )
        return (unknown,)
    results = [_gate(found, one, limit) for one in found.groups]
    return tuple(sorted(results, key=lambda result: list(Outcome).index(result.outcome)))


def _gate(found: Trend, one: Trajectory, limit: float) -> GateResult:
    unknown = one.direction is Direction.UNKNOWN
    outcome = Outcome.UNKNOWN if unknown else Outcome.FAILED if one.is_worse_by(limit) else Outcome.PASSED
    missed = one.detectable if outcome is Outcome.PASSED and not one.last else None
    mixture = f"the runs are of {_kinds(found)}" if found.mixed and outcome is Outcome.FAILED else ""
    hidden = f"a lasting change {_reach(found, missed, 'of less than about')} may be missed" if missed else ""
    return GateResult(
        gate="regression",
        kind="regression",
        limit=_limit(found, limit),
        measured="not measured" if unknown else _in_short(found, one),
        outcome=outcome,
        why=one.why or mixture or (hidden if missed and missed > limit else ""),
        side=one.group,
        relation="<",
        limit_value=limit,
        value=one.shift.change if one.shift else None,
        unit="ratio",
    )


def _limit(found: Trend, limit: float) -> str:
    return f"< {_share(found, limit)} worse"


def _share(found: Trend, value: float) -> str:
    """``5.0 %``; of shares ``5.0 points``."""
    text = format_ratio(value)
    return f"{text.removesuffix(' %')} points" if _points(found) else text


def _reach(found: Trend, value: float, of: str = "of") -> str:
    """``of 14.5 %``; of what would have to double or more, ``to 60 times the level``."""
    if _points(found) or value < 1:
        return f"{of} {_share(found, value)}"
    return f"to {_times(1 + value)} times the level"


def _times(factor: float) -> str:
    return f"{factor:,.0f}" if factor >= 100 else f"{factor:.3g}"


def _in_short(found: Trend, one: Trajectory) -> str:
    if one.shift is None:
        return str(one.direction)
    how = "" if one.direction is Direction.REGRESSION else f", {one.direction}"
    return f"{_amount(found, one.shift)}{how}"


def _about(found: Trend) -> tuple[Fact, ...]:
    runs = sum(one.runs.height for one in found.groups)
    return (
        Fact("source", "trend", f"{found.figure.name} by {found.by}{f' per {found.per}' * bool(found.per)}"),
        Fact("metric", "metric", found.figure.name),
        Fact("unit", "unit", found.figure.unit),
        Fact("better", "better", found.better or None),
        Fact("by", "by", found.by),
        Fact("per", "per", found.per or None),
        Fact("runs", "runs", runs, "count"),
        Fact("left_out", "rows without a value or a place", found.left_out, "count"),
    )


def _title(found: Trend) -> str:
    meaning = found.figure.meaning
    return f"{meaning[:1].upper()}{meaning[1:]} ({found.figure.name})"


def _verdict(found: Trend) -> Verdict:
    """The sentence on the worst group, and how many others there are."""
    if not found.groups:
        return Verdict("cannot-judge", f"Cannot judge: {_nothing(found)}.")
    worst = found.groups[0]
    head = f"{worst.group}: " if found.per else ""
    of = f" The runs are of {_kinds(found)}." if found.mixed else ""
    return Verdict(worst.direction.value.replace(" ", "-"), f"{head}{_sentence(found, worst)}{_tally(found)}{of}")


def _kinds(found: Trend) -> str:
    """``3 frameworks, 2 jobs``."""
    return ", ".join(f"{count:,} {_PLURALS[name]}" for name, count in found.mixed)


_SO = {
    Direction.REGRESSION: "worse",
    Direction.CHANGE: "changed",
    Direction.UNKNOWN: "not to be judged",
    Direction.IMPROVEMENT: "better",
    Direction.NO_CHANGE: "as before",
}


def _tally(found: Trend) -> str:
    """How many groups went which way: ``4 groups: 1 worse, 3 as before.``, after a space."""
    if not found.per:
        return ""
    counts = ((sum(one.direction is what for one in found.groups), words) for what, words in _SO.items())
    told = ", ".join(f"{count:,} {words}" for count, words in counts if count)
    return f" {counted(len(found.groups), 'group')}: {told}."


def _nothing(found: Trend) -> str:
    if found.figure.unknown:
        return f"no report tells {found.figure.name}: {found.figure.unknown}"
    where = "date" if found.by == "date" else f"value of {found.by}"
    return f"no trace has both {found.figure.name} and a {where}"


def _sentence(found: Trend, one: Trajectory) -> str:
    name, last = found.figure.name, one.last
    if one.direction is Direction.UNKNOWN:
        return f"Cannot judge {name}: {one.why}."
    if last is None:
        reach = f"; a lasting one {_reach(found, one.detectable)} would likely be seen" if one.detectable else ""
        return f"No change of {name} in {counted(one.runs.height, 'run')}{reach}."
    head = f"{str(one.direction).capitalize()}: {name}"
    if one.loss is not None and one.best is not None and one.best < len(one.levels) - 2:
        until = one.runs["key"][one.levels[one.best + 1][0] - 1]
        what = f"was {format_value(one.loss.before, found.figure.unit)} until {until}, and is"
        now = f"{format_value(one.loss.after, found.figure.unit)} from {one.runs['key'][last.start]} on"
        return f"{head} {what} {now} ({_how_much(found, one.loss)}). {counted(len(one.changes), 'change')} in all."
    went = "rose" if last.shift.after > last.shift.before else "fell"
    levels = (
        f"{format_value(last.shift.before, found.figure.unit)} → {format_value(last.shift.after, found.figure.unit)}"
    )
    before = f" {counted(len(one.changes) - 1, 'change')} before it." if len(one.changes) > 1 else ""
    since = one.runs["key"][last.start]
    return f"{head} {went} from {since} on, {levels} ({_how_much(found, last.shift)}).{before}"


def _how_much(found: Trend, one: Shift) -> str:
    sure = f", 95 % interval {_interval(found, one)}" if one.low is not None else ""
    return f"{_amount(found, one)}{sure}"


def _points(found: Trend) -> bool:
    return found.figure.unit == "ratio"


def _amount(found: Trend, one: Shift) -> str:
    """``+12.1 %``, ``+4.0 points``, ``34 times``, or the difference where the level before is zero."""
    if one.change is None:
        return format_change(one.after - one.before, found.figure.unit)
    if one.change > _FAR and not _points(found):
        return f"{_times(1 + one.change)} times"
    text = format_change(one.change, "ratio")
    return f"{text.removesuffix(' %')} points" if _points(found) else text


def _interval(found: Trend, one: Shift) -> str:
    """``+9.8 to +14.5 %``; ``1.7 to 20 times`` where it is tenfold."""
    if one.low is None or one.high is None:
        return ""
    if one.high > _FAR and one.low > -1 and not _points(found):
        return f"{_times(1 + one.low)} to {_times(1 + one.high)} times"
    ends = [format_change(end, "ratio") for end in (one.low, one.high)]
    text = f"{ends[0].removesuffix(' %')} to {ends[1]}"
    return f"{text.removesuffix(' %')} points" if _points(found) else text


def _blocks(found: Trend) -> Iterator[Block]:
    for number, one in enumerate(found.groups):
        yield _plot(found, one, "all" if number < _PLOTS else "machine")
    yield _changes(found)
    yield _runs(found)
    yield from (Prose(text) for text in _remarks(found))


def _plot(found: Trend, one: Trajectory, audience: Audience) -> Series:
    points = tuple(Point(*row) for row in one.runs.select("key", "value").iter_rows())
    levels = tuple(Level(start, value) for start, value in one.levels)
    what = f"{one.group}: {found.figure.name}" if found.per else found.figure.name
    marks = "; ▲ a change begins, ─ levels" if one.changes else ""
    return Series(
        f"{what}, {counted(one.runs.height, 'run')} by {found.by}{marks}", found.figure.unit, points, levels, audience
    )


def _change_columns(found: Trend) -> tuple[Column, ...]:
    unit, better = found.figure.unit, found.better
    return (
        Column("group", found.per or "Group", "text", 0 if found.per else 9),
        Column("at", f"From {found.by} on" if found.by != "date" else "From", "text", 0),
        Column("before", "Before", unit, 0),
        Column("after", "After", unit, 0),
        Column("change", "Change, points" if _points(found) else "Change", "ratio", 0, signed=True, better=better),
        Column("interval", "95 % interval", "text", 1),
        Column("low", "95 % from", "ratio", 9, signed=True, better=better),
        Column("high", "95 % to", "ratio", 9, signed=True, better=better),
        Column("runs_before", "Runs before", "count", 2),
        Column("runs_after", "Runs after", "count", 2),
        Column("p_value", "By chance", "ratio", 3),
        Column("verdict", "Verdict", "text", 0),
        Column("trace_id", "First trace", "text", 4),
    )


def _changes(found: Trend) -> Grid:
    rows = tuple(_change(found, one, change) for one in found.groups for change in one.changes)
    return Grid(_change_columns(found), rows, "Changes", complete=True)


def _change(found: Trend, one: Trajectory, change: Change) -> Row:
    shift = change.shift
    return (
        one.group or None,
        one.runs["key"][change.start],
        *(shift.before, shift.after, shift.change),
        _interval(found, shift) or None,
        *(shift.low, shift.high),
        *(change.count_before, change.count_after, change.p_value),
        change.direction.value,
        one.runs["trace_id"][change.start],
    )


def _groups(found: Trend) -> Grid:
    columns = (
        Column("group", found.per, "text", 0),
        Column("runs", "Runs", "count", 0),
        Column("level", "Last level", found.figure.unit, 0),
        Column("at", "Last change", "text", 1),
        Column("change", "Change", "ratio", 0, signed=True, better=found.better),
        Column("interval", "95 % interval", "text", 2),
        Column("low", "95 % from", "ratio", 9, signed=True, better=found.better),
        Column("high", "95 % to", "ratio", 9, signed=True, better=found.better),
        Column("detectable", "Would be seen", "ratio", 3),
        Column("verdict", "Verdict", "text", 0),
        Column("why", "Why", "text", 9),
    )
    return Grid(columns, tuple(_group(found, one) for one in found.groups), complete=True)


def _group(found: Trend, one: Trajectory) -> Row:
    last, told = one.last, one.shift
    return (
        one.group,
        one.runs.height,
        one.levels[-1][1],
        one.runs["key"][last.start] if last else None,
        *((told.change, _interval(found, told) or None, told.low, told.high) if told else (None,) * 4),
        one.detectable,
        one.direction.value,
        one.why or None,
    )


def _runs(found: Trend) -> Grid:
    """Every run with the level that it is part of: for programs, since people see the plot."""
    columns = (
        Column("group", found.per or "Group", "text", 9),
        Column("key", found.by, "text", 9),
        Column("value", found.figure.name, found.figure.unit, 9),
        Column("level", "Level", found.figure.unit, 9),
        Column("recorded_ns", "Recorded", "ns", 9),
        Column("trace_id", "Trace", "text", 9),
        Column("traces", "Traces", "count", 9),
    )
    rows = tuple(row for one in found.groups for row in _with_levels(one))
    return Grid(columns, rows, "Runs", complete=True)


def _with_levels(one: Trajectory) -> Iterator[Row]:
    starts = dict(one.levels)
    level = one.levels[0][1]
    columns = ("key", "value", "recorded_ns", "trace_id", "traces")
    for place, (key, value, *others) in enumerate(one.runs.select(columns).iter_rows()):
        level = starts.get(place, level)
        yield (one.group or None, key, value, level, *others)


def _remarks(found: Trend) -> Iterator[str]:
    """Why groups cannot be judged, what was left out, and what intervals do not hold."""
    for one in found.groups:
        if one.why:
            yield f"Cannot judge {one.group or found.figure.name}: {one.why}."
    hidden = len(found.groups) - _PLOTS
    if hidden > 0:
        yield f"{counted(hidden, 'more group')} not drawn; JSON has all."
    if found.mixed:
        yield (
            f"The runs{' of a group' * bool(found.per)} are of different programs or machines ({_kinds(found)}): "
            "what looks like a change may be the next program. "
            f"Judge them apart: --per {found.mixed[0][0]}; or some of them: --where."
        )
    if any(one.changes for one in found.groups):
        yield (
            "Intervals are of the levels as they are cut: that a change was looked for at every run is not in them. "
            f"A change needs {found.options.search.least} runs on each side: one that is younger is not seen yet."
        )
    if found.left_out:
        what = counted(found.left_out, "row")
        yield f"{what} of the catalogue without {found.figure.name}, or without a {found.by}, left out."
