"""The main table of a study: side, time of a step, speed-up, and verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from traceviz.compare.attribution import Attribution, ClassChange
from traceviz.compare.changes.by_name import sees_input
from traceviz.compare.compare import Comparison, Pair, PathChange
from traceviz.compare.effect import Effect, Ends, Outcome
from traceviz.compare.judge import Judgement, without_figure
from traceviz.compare.report.change_table import from_to
from traceviz.compare.report.sentences import class_name, class_name_of, interval, main_cause, measured, speed_words
from traceviz.compare.sides.basis import cell as how_it_ended
from traceviz.compare.sides.sides import Side
from traceviz.compare.sides.units_of_work import unit_of
from traceviz.compare.tables.figures import Known
from traceviz.core.units import Unit, Value, counted, format_ratio
from traceviz.report import TAG, Audience, Block, Column, Fact, Facts, Grid, Prose, Row, Section

BASE = "base"
"""Verdict text for the row of the base."""


def effect_section(comparison: Comparison) -> Section:
    """Return facts of the shown pair, a row for every side, the path, and remarks on the intervals.

    The fastest side is at the top, and sides without a rank are at the end. Sides by tags keep the order of the tags.
    """
    ranking = () if comparison.by else comparison.ranking
    order = {ranked.side.label: place for place, ranked in enumerate(ranking)}
    sides = sorted(_with_pairs(comparison), key=lambda one: order.get(one[0].label, len(order)))
    rows = tuple(_row(comparison, side, pair) for side, pair in sides)
    blocks: list[Block] = [_facts(comparison), Grid(_columns(comparison), rows, complete=True)]
    if comparison.path:
        blocks.append(_path(comparison))
    blocks += [Prose(text) for text in _remarks(comparison)]
    return Section("effect", f"{measured(comparison).capitalize()}", tuple(blocks))


_FIGURES: tuple[tuple[str, str, Unit, Callable[[Effect], Value]], ...] = (
    ("difference_ns", "difference", "ns", lambda effect: effect.difference_ns),
    ("ratio", "difference of the base", "ratio", lambda effect: effect.ratio),
    ("low_ratio", "95 % interval from", "ratio", lambda effect: _of(effect.interval)[0]),
    ("high_ratio", "95 % interval to", "ratio", lambda effect: _of(effect.interval)[1]),
    ("median_ratio", "difference of the medians", "ratio", lambda effect: effect.median_ratio),
    ("between_runs", "interval of runs", "bool", lambda effect: effect.runs),
)
_SPEEDUPS: tuple[tuple[str, str, Callable[[Effect], Value]], ...] = (
    ("speedup", "speed-up", lambda effect: effect.speedup),
    ("speedup_low", "speed-up, 95 % interval from", lambda effect: _of(effect.speedup_interval)[0]),
    ("speedup_high", "speed-up, 95 % interval to", lambda effect: _of(effect.speedup_interval)[1]),
)
"""Only for effects that can be judged."""


def _of(ends: Ends | None) -> tuple[float | None, float | None]:
    return ends or (None, None)


def _facts(comparison: Comparison) -> Facts:
    shown = comparison.shown
    judgement, effect, basis = shown.judgement, shown.judgement.effect, comparison.basis
    judged = None if judgement.speedup is None else effect
    return Facts(
        (
            Fact("outcome", "outcome", judgement.outcome.code),
            Fact("why", "why", judgement.why or None),
            Fact("basis", "basis", basis.name),
            Fact("base_ns", "base", basis.typical_ns(shown.base), "ns"),
            Fact("new_ns", "new", basis.typical_ns(shown.new), "ns"),
            Fact("base_median_ns", "median of the base", shown.base.median_ns if basis.is_step else None, "ns"),
            Fact("new_median_ns", "median of the new side", shown.new.median_ns if basis.is_step else None, "ns"),
            *(Fact(key, label, None if effect is None else read(effect), unit) for key, label, unit, read in _FIGURES),
            *(Fact(key, label, None if judged is None else read(judged), "factor") for key, label, read in _SPEEDUPS),
        ),
        audience="machine",
    )


def _columns(comparison: Comparison) -> tuple[Column, ...]:
    per, basis = comparison.options.per, comparison.basis
    is_judged = any(pair.judgement.speedup is not None for pair in comparison.pairs)
    repeated = any(len(side.reports) > 1 for side in comparison.sides)
    of_steps = 0 if basis.is_step else 9  # a whole run has no steps, and one time
    is_base_fastest = not comparison.ranking or comparison.ranking[0].side is comparison.sides[0]
    return (
        Column("side", "Side", "text", 9 if comparison.by else 0),
        *(Column(f"{TAG}{tag}", tag, "text", 0) for tag in comparison.by),
        Column("runs", "Runs", "count", 2 if repeated else 5),
        Column("steps", "Steady steps, all runs" if repeated else "Steady steps", "count", max(of_steps, 1)),
        Column(
            "mean_ns",
            f"Per {unit_of(per)}" if per else f"{basis.words[:1].upper()}{basis.words[1:]}",
            "ns",
            0,
            bar=True,
        ),
        Column("median_ns", "Median", "ns", max(of_steps, 4)),
        Column("period", "Period", "count", 9),
        Column(
            "per_second",
            f"{unit_of(per).capitalize()}s per s" if per else "Steps per s",
            "number",
            max(of_steps, 6),
        ),
        Column("difference_ns", "Difference", "ns", 9, signed=True, better="lower", additive=True),
        Column("ratio", "Change", "ratio", 1, signed=True, better="lower"),
        Column("interval", "95 % interval, %", "text", 1, shorten=False, restates=True),
        Column("input_share", "Input share", "ratio", max(of_steps, 3)),
        Column("low_ratio", "95 % from", "ratio", 9, signed=True, better="lower"),
        Column("high_ratio", "95 % to", "ratio", 9, signed=True, better="lower"),
        Column("compared", "Against the base" if is_judged else "Verdict", "text", 0, shorten=False, restates=True),
        Column("against_fastest", "Against the fastest", "text", 9 if is_base_fastest else 0, shorten=False),
        Column("cause", "Mostly", "text", 2 if len(comparison.pairs) > 1 else 9),
        Column("speedup", "Speed-up", "factor", 9),
        Column("verdict", "Verdict", "text", 9),
        Column("why", "Why", "text", 9),
        Column("basis", "Basis", "text", 9),
        Column("low_ns", "95 % from", "ns", 9),
        Column("high_ns", "95 % to", "ns", 9),
        Column("speedup_low", "Speed-up, 95 % from", "factor", 9),
        Column("speedup_high", "Speed-up, 95 % to", "factor", 9),
    )


def _with_pairs(comparison: Comparison) -> Iterator[tuple[Side, Pair | None]]:
    base, *others = comparison.sides
    yield base, None
    yield from zip(others, comparison.pairs, strict=True)


def _row(comparison: Comparison, side: Side, pair: Pair | None) -> Row:
    judgement = pair.judgement if pair else Judgement(Outcome.NO_CHANGE)
    effect, basis = judgement.effect, comparison.basis
    mean = basis.typical_ns(side)
    is_base_of_any = pair is None and any(other.judgement.speedup is not None for other in comparison.pairs)
    known = Known(comparison).figures.get(basis.name)
    value = known.value(side) if known else None
    own_interval = value.interval if value else None  # between its runs, or within a single one
    ended = how_it_ended(side) if without_figure(side, basis) else ""
    cause = _main_cause(pair.judgement, pair.attribution) if pair else None
    return (
        side.label,
        *(side.groups.get(tag) for tag in comparison.by),
        len(side.reports),
        side.steps,
        mean,
        side.median_ns if basis.is_step else None,
        side.period,
        1e9 / mean if mean and basis.is_step else None,
        *_differences(effect)[:3],
        side.mean("input_pipeline", "input_share") if sees_input(side) else None,
        *_differences(effect)[3:],
        (ended or speed_words(judgement)) if pair else BASE,
        _against_fastest(comparison, side),
        class_name(pair, cause.key) if pair and cause else None,
        1.0 if is_base_of_any else judgement.speedup,
        (ended or judgement.outcome.value) if pair else BASE,
        judgement.why or None,
        basis.name,
        *_of(own_interval),
        *_of(effect.speedup_interval if effect and judgement.speedup is not None else None),
    )


def _against_fastest(comparison: Comparison, side: Side) -> str | None:
    """Return ``fastest``, ``1.25× slower``, ``no change`` or ``cannot judge``; ``None`` for sides without a rank."""
    ranked = next((one for one in comparison.ranking if one.side is side), None)
    if ranked is None:
        return None
    return "fastest" if ranked.against_fastest is None else speed_words(ranked.against_fastest)


def _main_cause(judgement: Judgement, attribution: Attribution | None) -> ClassChange | None:
    """Return the class with most of a difference that was judged."""
    return main_cause(attribution) if attribution and judgement.outcome is not Outcome.UNKNOWN else None


def _differences(effect: Effect | None) -> tuple[Value, ...]:
    if effect is None:
        return (None,) * 5
    return effect.difference_ns, effect.ratio, _ends(effect), *_of(effect.interval)


def _ends(effect: Effect) -> str | None:
    """Format ``−71.8, −50.3`` in percent, which the heading states; text columns never get narrower than this."""
    return interval(effect).removesuffix(" %").replace(" to ", ", ") or None


_LONGEST_PATH = 8
"""Longest path shown to people; longer ones are for machines only."""
PATH_COLUMNS = (
    Column("before", "From", "text", 1),
    Column("after", "To", "text", 0),
    Column("before_ns", "Before", "ns", 9),
    Column("after_ns", "After", "ns", 9),
    Column("difference_ns", "Change", "ns", 0, bar=True, signed=True, better="lower", additive=True),
    Column("ratio", "Relative change", "ratio", 3, signed=True, better="lower"),
    Column("interval", "95 % interval, %", "text", 4, shorten=False, restates=True),
    Column("compared", "Verdict", "text", 0, shorten=False, restates=True),
    Column("speedup", "Speed-up", "factor", 9),
    Column("verdict", "Outcome", "text", 9),
    Column("cause", "Mostly", "text", 2),
    Column("cause_share", "Share of the change", "ratio", 9),
    Column("changed", "Changed", "text", 9),
)


def _path(comparison: Comparison) -> Grid:
    """Return every change and the total: differences add up to it, speed-ups multiply to it."""
    base, last = comparison.sides[0], comparison.sides[-1]
    total = comparison.pairs[-1]
    whole = PathChange(base, last, total.judgement, total.attribution, total.changed)
    rows = (*map(_step, comparison.path), ("all", "all together", *_step(whole)[2:]))
    audience: Audience = "all" if len(comparison.path) <= _LONGEST_PATH else "machine"
    return Grid(PATH_COLUMNS, rows, "Change from the previous side", complete=True, audience=audience)


def _step(change: PathChange) -> Row:
    attribution, cause = change.attribution, _main_cause(change.judgement, change.attribution)
    return (
        change.before.label,
        change.after.label,
        *_of_change(change.judgement),
        change.judgement.outcome.value,
        class_name_of((change.before, change.after), cause.key) if cause else None,
        cause.difference_ns / attribution.difference_ns if cause and attribution else None,
        "; ".join(one.brief or f"{one.label} {one.new}" for one in change.changed) or None,
    )


def _of_change(judgement: Judgement) -> tuple[Value, ...]:
    effect = judgement.effect
    if effect is None:
        return *(None,) * 5, speed_words(judgement), None
    measured_values = effect.base_ns, effect.new_ns, effect.difference_ns, effect.ratio, _ends(effect)
    return *measured_values, speed_words(judgement), judgement.speedup


def _explain_unknown(comparison: Comparison, pair: Pair) -> str:
    """Return why a side cannot be judged.

    Wide intervals get the same text on every side, as the table has their ends.
    """
    if pair.judgement.effect is None or pair.judgement.effect.interval is None:
        return pair.judgement.why.removesuffix(".")
    widest = format_ratio(comparison.options.limits.widest)
    return f"intervals that hold zero and reach beyond {widest} of the base; more steps, or more runs, would tell"


def _remarks(comparison: Comparison) -> Iterator[str]:
    """Yield why some sides have no verdict, and what the intervals do not cover."""
    if len(comparison.pairs) > 1:
        unknown: dict[str, list[str]] = {}
        for pair in comparison.pairs:
            if pair.judgement.outcome is Outcome.UNKNOWN and not without_figure(pair.new, comparison.basis):
                unknown.setdefault(_explain_unknown(comparison, pair), []).append(pair.new.label)
        yield from (f"Cannot judge {'; '.join(sides)}: {why}." for why, sides in unknown.items())
    if comparison.left_out:
        names = ", ".join(comparison.left_out)
        left = counted(len(comparison.left_out), "run")
        yield f"{left} without a tag of {', '.join(comparison.by)} left out: {names}."
    if comparison.basis.is_step:
        yield from _describe_turns(comparison)
    effects = [pair.judgement.effect for pair in comparison.pairs if pair.judgement.effect]
    if any(effect.interval is None for effect in effects):
        yield (
            f"One run has one {comparison.basis.words}: how much a restart of the program alone changes is not known, "
            "and a difference of less than a fifth is not judged. To include it, give each side several runs (--group)."
        )
    elif comparison.basis.work and any(not effect.runs for effect in effects):
        yield (
            "Intervals cover the scatter of launches in one run per side; variation between runs is not included. To "
            "include it, give each side several runs (--group)."
        )
    elif any(not effect.runs for effect in effects):
        yield (
            "Intervals cover one run per side; variation between runs is not included. To include it, give each side "
            "several runs (--group)."
        )


_SLOW_WORKERS = "TV109"
"""Finding on loader workers without a ready batch: they finish together, then one step after the other waits."""
_LONG = 1.2
"""Ratio of long to short steps from which they are reported to take turns."""


def _describe_turns(comparison: Comparison) -> Iterator[str]:
    """Report sides whose steps take turns. Their median is one kind of step."""
    sides = [f"{side.label} {turn}" for side in comparison.sides if (turn := _describe_turn(side))]
    if sides:
        yield (
            f"Long and short steps take turns in {'; '.join(sides)}. The mean counts both, as throughput does, and "
            "intervals hold whole turns; the median is one kind of step, or lies between them."
        )


def _describe_turn(side: Side) -> str:
    """Return ``every 2 steps (8.00 to 242 ms)``, 5th to 95th percentile; nothing if all steps are similar."""
    if side.period in (None, 1):
        return ""
    short, long = np.quantile(np.concatenate(side.runs), (0.05, 0.95))
    if long < _LONG * short:
        return ""
    codes = {finding.code for report in side.reports for finding in report.findings}
    workers = f", as {side.period} loader workers that fetch side by side hand out batches" * (_SLOW_WORKERS in codes)
    return f"every {side.period} steps ({from_to(short, long).replace(' → ', ' to ')}{workers})"
