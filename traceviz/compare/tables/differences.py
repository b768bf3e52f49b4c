"""Difference of two sides by a figure, and whether it may be chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from traceviz.compare.comparability import remarks
from traceviz.compare.compare import Comparison
from traceviz.compare.effect import Outcome, outcome_of
from traceviz.compare.judge import Judgement, judge
from traceviz.compare.remark import Remark
from traceviz.compare.sides.measures import was_busy
from traceviz.compare.sides.sides import Side
from traceviz.compare.tables.figures import Ends, Figure
from traceviz.compare.work.remarks import OTHER_WORK

UNCLEAR = "unclear"
"""Replaces a factor that may be chance."""
OTHER = "other work"
"""Replaces a factor of sides that do not do the same work."""
NOT_JUDGED = "not judged"
"""Replaces a factor that something else forbids: few steps, or one recording on both sides."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A side compared with another.

    Args:
        factor: How many times as good it is; ``None`` if unknown.
        interval: Its 95 % interval; ``None`` if there is none.
        why_not: The text that replaces the factor, if figures of both sides are known.
    """

    factor: float | None = None
    interval: Ends | None = None
    why_not: str = ""


def difference(comparison: Comparison, figure: Figure, base: Side, new: Side) -> Difference:
    """Compare two sides by a figure. The figure of the comparison gets the same judgement as there."""
    gain, ratio = figure.gain(base, new), figure.ratio(base, new)
    if ratio is None:
        return Difference()
    if base is new:
        return Difference(1.0, (1.0, 1.0)) if figure.has_factor else Difference()
    if figure.name == comparison.basis.name and not figure.per:
        judgement, known = _judge(comparison, base, new)
        if judgement.effect is None:
            is_other = any(remark.forbids and remark.code in OTHER_WORK for remark in known)
            return Difference(why_not=OTHER if is_other else NOT_JUDGED)
        interval, is_told = judgement.effect.interval, judgement.outcome is not Outcome.UNKNOWN
    else:
        interval = figure.change(base, new)
        outcome = outcome_of(ratio - 1, interval, comparison.options.limits)
        is_told = outcome is not Outcome.UNKNOWN and not (ratio != 1 and _may_be_others(figure, base, new))
    factors = _factors(figure, interval) if interval is not None and figure.has_factor else None
    return Difference(gain, factors) if is_told else Difference(None, factors, UNCLEAR)


def _may_be_others(figure: Figure, base: Side, new: Side) -> bool:
    """Return whether a speed of one run per side may result from other programs on the machine."""
    runs = len(figure.values(base)) + len(figure.values(new))
    return figure.is_speed and runs == len((base, new)) and (was_busy(base) or was_busy(new))


def _factors(figure: Figure, interval: Ends) -> Ends:
    """Convert an interval of a change, as shares of the base, to an interval of the factor."""
    low, high = 1 + interval[0], 1 + interval[1]
    return (low, high) if figure.better == "higher" else (1 / high, 1 / low)


def _judge(comparison: Comparison, base: Side, new: Side) -> tuple[Judgement, Sequence[Remark]]:
    """Judge whether a side is faster than another; return also the remarks on the two."""
    if base is comparison.sides[0]:
        pair = next(pair for pair in comparison.pairs if pair.new is new)
        return pair.judgement, pair.remarks
    options, basis = comparison.options, comparison.basis
    known = remarks(base, new, options, basis)
    forbidding = (
        remark.text for remark in known if remark.forbids == "verdict" or (remark.forbids and remark.code in OTHER_WORK)
    )
    return judge(base, new, options.limits, next(forbidding, ""), basis), known
