"""Figures of a comparison in sentences."""

from __future__ import annotations

from traceviz.compare.attribution import Attribution, ClassChange
from traceviz.compare.changes.quality import BETTER, WORSE
from traceviz.compare.compare import Comparison, Pair
from traceviz.compare.effect import Effect
from traceviz.compare.outcome import Outcome
from traceviz.compare.report.measure_section import FAR, epochs_words
from traceviz.compare.report.quality_section import quality_words
from traceviz.compare.sides.basis import TOTAL
from traceviz.compare.sides.sides import Side
from traceviz.compare.sides.units_of_work import unit_of
from traceviz.core.units import format_change, format_ns, format_value

_APART = 0.05
"""Medians are told where they changed by so much more or less than means, as shares of the base."""
_MOSTLY = 0.5
"""A class of a smaller share of the gain or loss is not named in the verdict."""


def verdict_sentence(comparison: Comparison) -> str:
    """``2.99× faster: mean step 205 → 68.5 ms (−66.5 %, 95 % interval −71.8 to −50.3 %). 93 % of the gain ...``."""
    pair = comparison.shown
    many = len(comparison.sides) > 2
    head, effect = outcome_words(pair), pair.judgement.effect
    who = f"{pair.new.label}: " if many else ""
    head = f"{head[:1].lower()}{head[1:]}" if many else head
    against = f" than {pair.base.label}" if many and pair.judgement.outcome in _CHANGED else ""
    if pair.judgement.outcome is Outcome.UNKNOWN:
        figures = f" {_capital(measured(comparison))} {from_to(effect.base_ns, effect.new_ns)}." if effect else ""
        return f"{who}{head}: {pair.judgement.why.removesuffix('.')}.{figures}{quality_words(pair.quality)}"
    assert effect is not None
    caveats = f" But: {', '.join(pair.caveats)}." if pair.caveats else ""
    figures = f"{measured(comparison)} {effect_words(effect)}.{_medians(comparison, effect)}"
    quality = quality_words(pair.quality, _GOES.get(pair.judgement.outcome, ""))
    reason = _reason(pair) if comparison.basis.is_step else _part(pair) if comparison.basis is TOTAL else ""
    return f"{who}{head}{against}: {figures}{reason}{_whole_run(comparison)}{quality}{_changed(pair)}{caveats}"


_GOES = {Outcome.FASTER: BETTER, Outcome.SLOWER: WORSE}
_CHANGED = frozenset(_GOES)


def outcome_words(pair: Pair) -> str:
    """``2.99× faster``, ``1.10× slower``, ``No change``, ``Cannot judge``."""
    outcome, effect = pair.judgement.outcome, pair.judgement.effect
    if effect is None or outcome not in _CHANGED:
        return _capital(outcome.value)
    factor = effect.speedup if outcome is Outcome.FASTER else 1 / effect.speedup
    return f"{format_value(factor, 'factor')} {outcome.value}"


def measured(comparison: Comparison, average: str = "mean", *, of_steps: bool = False) -> str:
    """The figure that is compared: ``mean step``, ``mean time per sample``, ``total time``.

    Classes and events add up to that of steps, whatever the verdict is about.
    """
    if not comparison.basis.is_step and not of_steps:
        return comparison.basis.words
    per = comparison.options.per
    return f"{average} time per {unit_of(per)}" if per else f"{average} step"


def on_average(comparison: Comparison) -> str:
    """Unit of calls and times in words: ``per step, on average``."""
    return f"per {unit_of(comparison.options.per)}, on average" if comparison.options.per else "per step, on average"


def between(pair: Pair) -> str:
    """Title of a pair: ``slow → repaired``."""
    return f"{pair.base.label} → {pair.new.label}"


def effect_words(effect: Effect) -> str:
    """``205 → 68.5 ms (−66.5 %, 95 % interval −71.8 to −50.3 %)``."""
    of_chance = "one run of each side" if effect.interval is None else f"95 % interval {interval(effect)}"
    return f"{from_to(effect.base_ns, effect.new_ns)} ({format_change(effect.ratio, 'ratio')}, {of_chance})"


def _medians(comparison: Comparison, effect: Effect) -> str:
    """`` Median step 153 → 53.7 ms (−65.0 %).``, where it tells of another change than the mean; else nothing."""
    change, ends = effect.median_ratio, effect.interval
    if change is None or effect.base_median_ns is None or effect.new_median_ns is None or ends is None:
        return ""
    if ends[0] <= change <= ends[1] or abs(change - effect.ratio) < _APART:
        return ""
    medians = from_to(effect.base_median_ns, effect.new_median_ns)
    return f" {_capital(measured(comparison, 'median'))} {medians} ({format_change(change, 'ratio')})."


def from_to(base_ns: float, new_ns: float) -> str:
    """Two durations; the unit stands once where it is the same."""
    base, new = format_ns(base_ns), format_ns(new_ns)
    number, _, unit = base.rpartition(" ")
    return f"{number if unit == new.rpartition(' ')[2] else base} → {new}"


def interval(effect: Effect) -> str:
    """``−71.8 to −50.3 %``; an end beyond tenfold is shown as that, as nobody reads its digits. Empty without one."""
    if effect.interval is None:
        return ""
    low, high = (format_change(end, "ratio") if end <= FAR else f">+{FAR * 100:.0f} %" for end in effect.interval)
    return f"{low.removesuffix(' %')} to {high}"


def interval_ns(low_ns: float | None, high_ns: float | None) -> str | None:
    """``−131 to −106 ms``; ``None`` where there is none."""
    if low_ns is None or high_ns is None:
        return None
    low, high = (format_change(end, "ns") for end in (low_ns, high_ns))
    number, _, unit = low.rpartition(" ")
    return f"{number if unit == high.rpartition(' ')[2] else low} to {high}"


def _reason(pair: Pair) -> str:
    """`` 93 % of the gain is input wait.``; nothing where no class stands out, or none beyond chance."""
    if pair.judgement.outcome not in _CHANGED or pair.attribution is None:
        return ""
    largest = main_cause(pair.attribution)
    assert pair.judgement.effect is not None
    is_gain, total = pair.judgement.outcome is Outcome.FASTER, pair.attribution.difference_ns
    if largest is None or (total < 0) != is_gain:
        return ""
    name, share = class_name(pair, largest.key), largest.difference_ns / total
    if share > _ALL:
        went = f"{'fell' if is_gain else 'rose'} by {format_ns(abs(largest.difference_ns))}"
        return f" {_capital(name)} alone {went} on average; other classes took some of it back."
    return f" {share * 100:.0f} % of the {'gain' if is_gain else 'loss'} is {name}."


def _part(pair: Pair) -> str:
    """`` 71 % of the gain is start-up.``: the part of the run that makes most of the difference; or nothing."""
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
"""Parts of a run that say nothing of why it takes longer."""
_ALL = 1.005
"""A part with a larger share of the difference than this is not said to be one of it: other parts took some back."""


def _whole_run(comparison: Comparison) -> str:
    """`` Total time 62.1 → 41.0 s (−34.0 %).``, and how many epochs it took; nothing where that is not known."""
    measures, said = comparison.shown.measures, ""
    total = measures.of(TOTAL.key)
    if total is not None and total.ratio is not None and comparison.basis is not TOTAL:
        chance = ", which may be chance" * (total.verdict == Outcome.UNKNOWN)
        change = f"{format_change(total.ratio, 'ratio')}{chance}"
        said = f" {_capital(TOTAL.words)} {from_to(total.base, total.new)} ({change})."
    epochs = epochs_words(measures)
    return f"{said} {epochs}" if epochs else said


_NAMED = 3
"""Changes that the verdict names."""


def _changed(pair: Pair) -> str:
    """`` Changed: matrix products in f16 rather than tf32.``; nothing where the reports show no change."""
    named = [change.brief for change in pair.changed if change.brief]
    more = len(named) - _NAMED
    return f" Changed: {'; '.join(named[:_NAMED])}{f'; {more} more' if more > 0 else ''}." if named else ""


def class_name(pair: Pair, key: str) -> str:
    """What people call a class of step time."""
    return class_name_of((pair.base, pair.new), key)


def class_name_of(sides: tuple[Side, ...], key: str) -> str:
    """What people call a class of step time, by the first side that has it."""
    return next((side.class_labels[key] for side in sides if key in side.class_labels), key)


def main_cause(attribution: Attribution) -> ClassChange | None:
    """The class that makes most of the difference, if it makes at least half of it, beyond chance."""
    total = attribution.difference_ns
    if not total or not attribution.classes:
        return None
    largest = max(attribution.classes, key=lambda change: change.difference_ns * (1 if total > 0 else -1))
    return largest if largest.is_certain and largest.difference_ns / total >= _MOSTLY else None


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
