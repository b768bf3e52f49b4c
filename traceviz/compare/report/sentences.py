"""Figures of a comparison in sentences."""

from __future__ import annotations

from traceviz.compare.attribution import Attribution, ClassChange
from traceviz.compare.compare import Comparison, Pair
from traceviz.compare.effect import Effect
from traceviz.compare.judge import Outcome
from traceviz.compare.sides.sides import Side
from traceviz.compare.sides.units_of_work import unit_of
from traceviz.units import format_change, format_ns, format_value

_FAR = 10.0
"""Changes by more times the base than this are shown as more than it."""
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
        return f"{who}{head}: {pair.judgement.why.removesuffix('.')}.{figures}"
    assert effect is not None
    caveats = f" But: {', '.join(pair.caveats)}." if pair.caveats else ""
    figures = f"{measured(comparison)} {effect_words(effect)}.{_medians(comparison, effect)}"
    return f"{who}{head}{against}: {figures}{_reason(pair)}{_changed(pair)}{caveats}"


_CHANGED = frozenset({Outcome.FASTER, Outcome.SLOWER})


def outcome_words(pair: Pair) -> str:
    """``2.99× faster``, ``1.10× slower``, ``No change``, ``Cannot judge``."""
    outcome, effect = pair.judgement.outcome, pair.judgement.effect
    if effect is None or outcome not in _CHANGED:
        return _capital(outcome.value)
    factor = effect.speedup if outcome is Outcome.FASTER else 1 / effect.speedup
    return f"{format_value(factor, 'factor')} {outcome.value}"


def measured(comparison: Comparison, average: str = "mean") -> str:
    """The figure that is compared, and that classes and events add up to: ``mean step``, ``mean time per sample``."""
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
    change = f"{format_change(effect.ratio, 'ratio')}, 95 % interval {interval(effect)}"
    return f"{from_to(effect.base_ns, effect.new_ns)} ({change})"


def _medians(comparison: Comparison, effect: Effect) -> str:
    """`` Median step 153 → 53.7 ms (−65.0 %).``, where it tells of another change than the mean; else nothing."""
    change, (low, high) = effect.median_ratio, effect.interval
    if low <= change <= high or abs(change - effect.ratio) < _APART:
        return ""
    medians = from_to(effect.base_median_ns, effect.new_median_ns)
    return f" {_capital(measured(comparison, 'median'))} {medians} ({format_change(change, 'ratio')})."


def from_to(base_ns: float, new_ns: float) -> str:
    """Two durations; the unit stands once where it is the same."""
    base, new = format_ns(base_ns), format_ns(new_ns)
    number, _, unit = base.rpartition(" ")
    return f"{number if unit == new.rpartition(' ')[2] else base} → {new}"


def interval(effect: Effect) -> str:
    """``−71.8 to −50.3 %``; an end beyond tenfold is shown as that, as nobody reads its digits."""
    low, high = (format_change(end, "ratio") if end <= _FAR else f">+{_FAR * 100:.0f} %" for end in effect.interval)
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
    if share > 1.005:
        went = f"{'fell' if is_gain else 'rose'} by {format_ns(abs(largest.difference_ns))}"
        return f" {_capital(name)} alone {went} on average; other classes took some of it back."
    return f" {share * 100:.0f} % of the {'gain' if is_gain else 'loss'} is {name}."


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
