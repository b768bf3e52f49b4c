"""Figures of a comparison as sentences."""

from __future__ import annotations

from collections.abc import Sequence

from traceviz.compare.attribution import Attribution, ClassChange
from traceviz.compare.changes.whole_runs import BETTER, WORSE
from traceviz.compare.compare import Comparison, Pair, Ranked
from traceviz.compare.effect import Effect, Outcome
from traceviz.compare.judge import Judgement
from traceviz.compare.remark import in_capital
from traceviz.compare.report.capture_sentences import describe_captures, describe_changes, name_within
from traceviz.compare.report.change_table import from_to, percent_ends
from traceviz.compare.report.whole_runs import epochs_words, quality_words
from traceviz.compare.sides.basis import TOTAL
from traceviz.compare.sides.load_sides import shorten_names
from traceviz.compare.sides.sides import Side
from traceviz.compare.sides.units_of_work import unit_of
from traceviz.core.units import counted, format_change, format_ns, format_speed

_APART = 0.05
"""Medians are shown if their relative change differs from that of the means by at least this much."""
_MOSTLY = 0.5
"""Smallest share of the gain or loss for which the verdict names a class."""


def verdict_sentence(comparison: Comparison) -> str:
    """Return the verdict.

    ``2.99× faster: mean step 205 → 68.5 ms (−66.5 %, 95 % interval −71.8 to −50.3 %). 93 % of the gain ...``.
    """
    sentence = _sentence(comparison)
    names = [side.label for side in comparison.sides]
    for name, short in sorted(zip(names, shorten_names(names), strict=True), key=lambda pair: -len(pair[0])):
        sentence = sentence.replace(name, short)
    return sentence


def _sentence(comparison: Comparison) -> str:
    pair = comparison.shown
    many, ranking = len(comparison.sides) > 2, comparison.ranking
    head, effect = outcome_words(pair), pair.judgement.effect
    who = f"{pair.new.label}: " if many else ""
    head = f"{head[:1].lower()}{head[1:]}" if many else head
    against = f" than {pair.base.label}" if many and pair.judgement.outcome in _CHANGED else ""
    if ranking:
        ranks = f"{_name_fastest(comparison, ranking)}{_name_slower(comparison, ranking)}"
        if ranking[0].side is not pair.new:
            return ranks
        who, head, against = f"{ranks} ", f"From {pair.base.label} to {pair.new.label}", ""
    if pair.judgement.outcome is Outcome.UNKNOWN:
        return _unjudged(comparison, pair, who, head)
    assert effect is not None
    caveats = f" But: {', '.join(pair.caveats)}." if pair.caveats else ""
    what = "" if comparison.basis.work and pair.judgement.outcome in _CHANGED else f"{measured(comparison)} "
    figures = f"{what}{effect_words(effect)}.{_format_medians(comparison, effect)}"
    quality = quality_words(pair.quality, _GOES.get(pair.judgement.outcome, ""))
    reason = _name_cause(pair) if comparison.basis.is_step else _name_part(pair) if comparison.basis is TOTAL else ""
    reason = reason or describe_captures(pair, comparison.basis)
    whole_run, total = "", pair.measures.of(TOTAL.key)
    if total is not None and total.ratio is not None and comparison.basis is not TOTAL:
        chance = ", which may be chance" * (total.verdict == Outcome.UNKNOWN)
        change = f"{format_change(total.ratio, 'ratio')}{chance}"
        whole_run = f" {in_capital(TOTAL.words)} {from_to(total.base, total.new)} ({change})."
    if epochs := epochs_words(pair.measures):
        whole_run += f" {epochs}"
    reason += "" if comparison.basis.work else _name_function(pair)  # the work of a device is not the host's
    reason += _note_steps(pair)
    return f"{who}{head}{against}: {figures}{reason}{whole_run}{quality}{_name_changes(pair)}{caveats}"


def _name_fastest(comparison: Comparison, ranking: Sequence[Ranked]) -> str:
    """Return ``Fastest of 3 sides: b, mean step 58.1 ms.``; of captures ``Shortest kernel time of 3 sides: ...``."""
    fastest, basis = ranking[0].side, comparison.basis
    sides = counted(len(comparison.sides), "side")
    head = f"Shortest {basis.words} of {sides}" if basis.work else f"Fastest of {sides}"
    what = "" if basis.work else f"{measured(comparison)} "
    return f"{head}: {fastest.label}, {what}{format_ns(basis.typical_ns(fastest) or 0)}."


_RANKED = 4
"""Most sides that the verdict compares with the fastest one."""


def _name_slower(comparison: Comparison, ranking: Sequence[Ranked]) -> str:
    """Return `` a is 1.20× slower, c 2.79× slower. d: no change. Cannot judge e.``; each against the fastest side."""
    others = [(one.side.label, one.against_fastest) for one in ranking if one.against_fastest is not None]
    slower = [(label, speed_words(judgement)) for label, judgement in others if judgement.outcome in _CHANGED]
    texts = [f"{label} {'' if place else 'is '}{words}" for place, (label, words) in enumerate(slower[:_RANKED])]
    more = [f"{len(slower) - _RANKED} more are slower"] if len(slower) > _RANKED else []
    said = f" {', '.join((*texts, *more))}." if slower else ""
    for outcome, words in ((Outcome.NO_CHANGE, "As fast as it"), (Outcome.UNKNOWN, "May be as fast as it")):
        labels = [label for label, judgement in others if judgement.outcome is outcome]
        said += f" {words}: {_list(labels)}." if labels else ""
    ranked = {one.side.label for one in ranking}
    unjudged = [side.label for side in comparison.sides if side.label not in ranked]
    return f"{said} Cannot judge {_list(unjudged)}." if unjudged else said


def _list(labels: Sequence[str]) -> str:
    more = [f"{len(labels) - _RANKED} more"] if len(labels) > _RANKED else []
    return ", ".join((*labels[:_RANKED], *more))


def _unjudged(comparison: Comparison, pair: Pair, who: str, head: str) -> str:
    """Return what changed, and then why it is not judged; different programs are reported first."""
    effect, basis = pair.judgement.effect, comparison.basis
    why = f"{in_capital(head)}: {pair.judgement.why.removesuffix('.')}."
    is_sized = any(remark.code in _SIZED and remark.forbids for remark in pair.remarks)
    seen = "" if is_sized else describe_changes(pair, basis)
    is_other = any(remark.code == "program" and remark.forbids for remark in pair.remarks)
    changed = _name_changes(pair) if seen and not is_other else ""  # other programs have other settings
    if not seen and effect:
        seen = f" {in_capital(measured(comparison))} {from_to(effect.base_ns, effect.new_ns)}."
    why += _note_steps(pair)
    if any(remark.code == "copies" for remark in pair.remarks):
        seen = " Both sides have the same steps to the nanosecond: one recording, or copies of it."
    leads = basis.is_step or basis.work is not None
    parts = (seen, changed, f" {why}") if seen and leads and not is_other else (f" {why}", seen, changed)
    text = "".join(parts).strip()
    return f"{who}{text}{quality_words(pair.quality)}"


_SIZED = frozenset({"batch", "requests"})
"""Remarks on known amounts of work: only the time per unit, with --per, says something then."""


def _note_steps(pair: Pair) -> str:
    """Return `` Steps are not compared: b has none.``, if captures are compared and one side has steps."""
    without = [side.label for side in (pair.base, pair.new) if not side.steps]
    is_one = pair.judgement.basis.work is not None and len(without) == 1
    return f" Steps are not compared: {without[0]} has none." if is_one else ""


_GOES = {Outcome.FASTER: BETTER, Outcome.SLOWER: WORSE}
_CHANGED = frozenset(_GOES)


def speed_words(judgement: Judgement) -> str:
    """Return ``2.99× faster``, ``1.10× slower``, ``no change`` or ``cannot judge``; of captures ``1.20× shorter``."""
    if judgement.effect is None or judgement.outcome not in _CHANGED:
        return judgement.outcome.value
    words = format_speed(judgement.effect.speedup)
    return words.replace("faster", "shorter").replace("slower", "longer") if judgement.basis.work else words


def outcome_words(pair: Pair) -> str:
    """Return ``2.99× faster``, ``1.10× slower``, ``No change`` or ``Cannot judge``; of captures ``Kernel time 1.2×
    shorter``, as their work says nothing of how long the program takes.
    """
    outcome, effect = pair.judgement.outcome, pair.judgement.effect
    if effect is None or outcome not in _CHANGED:
        return in_capital(outcome.value)
    words = speed_words(pair.judgement)
    return f"{in_capital(pair.judgement.basis.words)} {words}" if pair.judgement.basis.work else words


def measured(comparison: Comparison, average: str = "mean", *, of_steps: bool = False) -> str:
    """Return the name of the compared figure: ``mean step``, ``mean time per sample``, ``total time``.

    Classes and events always add up to the time of steps, even if the verdict is about whole runs.
    """
    if not comparison.basis.is_step and not of_steps:
        return comparison.basis.words
    per = comparison.options.per
    return f"{average} time per {unit_of(per)}" if per else f"{average} step"


def on_average(comparison: Comparison) -> str:
    """Return the unit of calls and times as text: ``per step, on average``, ``in the whole captures``."""
    if comparison.sides[0].of_captures:
        several = any(len(side.reports) > 1 for side in comparison.sides)
        return "per run, on average" if several else "in the whole captures"
    return f"per {unit_of(comparison.options.per)}, on average" if comparison.options.per else "per step, on average"


def between(pair: Pair) -> str:
    """Return the title of a pair: ``slow → repaired``."""
    return f"{pair.base.label} → {pair.new.label}"


def effect_words(effect: Effect) -> str:
    """Format ``205 → 68.5 ms (−66.5 %, 95 % interval −71.8 to −50.3 %)``."""
    of_chance = "one run of each side" if effect.interval is None else f"95 % interval {interval(effect)}"
    return f"{from_to(effect.base_ns, effect.new_ns)} ({format_change(effect.ratio, 'ratio')}, {of_chance})"


def _format_medians(comparison: Comparison, effect: Effect) -> str:
    """Format `` Median step 153 → 53.7 ms (−65.0 %).`` if the change differs from that of the mean; else nothing."""
    change, ends = effect.median_ratio, effect.interval
    if change is None or effect.base_median_ns is None or effect.new_median_ns is None or ends is None:
        return ""
    if ends[0] <= change <= ends[1] or abs(change - effect.ratio) < _APART:
        return ""
    medians = from_to(effect.base_median_ns, effect.new_median_ns)
    return f" {in_capital(measured(comparison, 'median'))} {medians} ({format_change(change, 'ratio')})."


def interval(effect: Effect) -> str:
    """Format ``−71.8 to −50.3 %``; an end beyond tenfold is shown only as that. Empty without an interval."""
    return "" if effect.interval is None else " to ".join(percent_ends(effect.interval, " %"))


def interval_ns(low_ns: float | None, high_ns: float | None) -> str | None:
    """Format ``−131 to −106 ms``; ``None`` if there is no interval."""
    if low_ns is None or high_ns is None:
        return None
    low, high = (format_change(end, "ns") for end in (low_ns, high_ns))
    number, _, unit = low.rpartition(" ")
    return f"{number if unit == high.rpartition(' ')[2] else low} to {high}"


def _name_cause(pair: Pair) -> str:
    """Return `` 93 % of the gain is input wait.``; nothing if no class stands out, or none beyond chance."""
    if pair.judgement.outcome not in _CHANGED or pair.attribution is None:
        return ""
    largest = main_cause(pair.attribution)
    assert pair.judgement.effect is not None
    is_gain, total = pair.judgement.outcome is Outcome.FASTER, pair.attribution.difference_ns
    if largest is None:
        return _name_host_time(pair, is_gain=is_gain)
    if (total < 0) != is_gain:
        return ""
    name, share = f"{class_name(pair, largest.key)}{name_within(pair, largest)}", largest.difference_ns / total
    if share > _ALL:
        went = f"{'fell' if is_gain else 'rose'} by {format_ns(abs(largest.difference_ns))}"
        return f" {in_capital(name)} alone {went} on average; other classes took some of it back."
    return f" {share * 100:.0f} % of the {'gain' if is_gain else 'loss'} is {name}."


def _name_host_time(pair: Pair, *, is_gain: bool) -> str:
    """Return `` 98 % of the loss is host time that the sides divide in other ways (input wait ...).``; or nothing.

    Only one side may measure a class, such as the wait for input. The other has that time in another class.
    """
    assert pair.attribution is not None
    apart = [change for change in pair.attribution.classes if not change.comparable and change.key not in _OF_DEVICE]
    share = sum(change.difference_ns for change in apart) / (pair.attribution.difference_ns or 1)
    if share < _MOSTLY or (pair.attribution.difference_ns < 0) != is_gain:
        return ""
    before = class_name(pair, max(apart, key=lambda one: one.base_ns).key)
    after = class_name(pair, max(apart, key=lambda one: one.new_ns).key)
    named = f"most of all {before} in {pair.base.label}, {after} in "
    said = f"{min(share, 1) * 100:.0f} % of the {'gain' if is_gain else 'loss'}"
    return f" {said} is time without device work that the sides divide in other ways ({named}{pair.new.label})."


_OF_DEVICE = frozenset({"device_compute", "communication", "copy_d2h", "copy_h2d", "other_device", "device_to_device"})
"""Classes of step time in which a device works."""


def _name_part(pair: Pair) -> str:
    """Return `` 71 % of the gain is start-up.`` for the part of the run with most of the difference; or nothing."""
    parts, effect = pair.measures.parts, pair.judgement.effect
    total = sum(part.difference_ns for part in parts)
    if pair.judgement.outcome not in _CHANGED or effect is None or total * effect.difference_ns <= 0:
        return ""
    largest = max(parts, key=lambda part: part.difference_ns / total)
    share = largest.difference_ns / total
    if largest.key in _NO_CAUSE or not _MOSTLY <= share <= _ALL:
        return ""
    return f" {share * 100:.0f} % of the {'gain' if total < 0 else 'loss'} is {largest.label}."


_NO_CAUSE = frozenset({"other", "unexplained"})
"""Parts of a run that do not explain why it takes longer."""
_ALL = 1.005
"""Largest share of the difference reported as a share. A part beyond it was partly offset by other parts."""


def _name_function(pair: Pair) -> str:
    """Return `` 95 % of the gain is monitor (train.py), mostly run (subprocess.py): 12.1 ms → none per step.``."""
    found, effect = pair.function, pair.judgement.effect
    if found is None or effect is None or pair.judgement.outcome not in _CHANGED:
        return ""
    if (found.new_ns - found.base_ns) * effect.difference_ns <= 0:
        return ""
    times = from_to(found.base_ns, found.new_ns)
    called = f", above all {found.called}" if found.called else ""
    change = "gain" if effect.difference_ns < 0 else "loss"
    share = "All" if found.share > _ALL else f"{found.share * 100:.0f} %"
    where = "per step" if found.per_step else "in all"
    return f" {share} of the {change} in the main thread is {found.name}{called} ({times} {where}, by samples)."


_NAMED = 3
"""Most changes that the verdict names."""


def _name_changes(pair: Pair) -> str:
    """Return `` Changed: matrix products in f16 rather than tf32.``; nothing if the reports show no change."""
    named = [change.brief for change in pair.changed if change.brief]
    more = len(named) - _NAMED
    return f" Changed: {'; '.join(named[:_NAMED])}{f'; {more} more' if more > 0 else ''}." if named else ""


def class_name(pair: Pair, key: str) -> str:
    """Return the display name of a class of step time."""
    return class_name_of((pair.base, pair.new), key)


def class_name_of(sides: tuple[Side, ...], key: str) -> str:
    """Return the display name of a class of step time, from the first side that has it."""
    return next((side.class_labels[key] for side in sides if key in side.class_labels), key)


def main_cause(attribution: Attribution) -> ClassChange | None:
    """Return the class that makes most of the difference, if it makes at least half of it, beyond chance."""
    total = attribution.difference_ns
    if not total or not attribution.classes:
        return None
    largest = max(attribution.classes, key=lambda change: change.difference_ns * (1 if total > 0 else -1))
    return largest if largest.is_certain and largest.difference_ns / total >= _MOSTLY else None
