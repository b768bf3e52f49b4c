"""The verdict on a pair: faster, slower, no change, or unknown."""

from __future__ import annotations

from dataclasses import dataclass

from traceviz.compare.effect import Effect, Outcome, effect, effect_of_runs, outcome_of
from traceviz.compare.options import Limits
from traceviz.compare.sides.basis import STEP, Basis, sentence
from traceviz.compare.sides.measures import was_busy
from traceviz.compare.sides.sides import Side
from traceviz.core.units import counted, format_change
from traceviz.report.verdicts import VerdictCode


@dataclass(frozen=True, slots=True)
class Judgement:
    """The outcome, the effect behind it, and the reason if it is unknown.

    Steps that cannot be compared have no effect. A difference that may be chance has an interval. ``basis`` is the
    figure that the verdict is about.
    """

    outcome: Outcome
    effect: Effect | None = None
    why: str = ""
    basis: Basis = STEP

    @property
    def speedup(self) -> float | None:
        """Speed of the new side as a multiple of the base's; ``None`` if it cannot be judged."""
        return None if self.effect is None or self.outcome is Outcome.UNKNOWN else self.effect.speedup

    def is_slower_by(self, limit: float) -> bool:
        """Return whether steps are longer beyond chance, by at least ``limit`` of the base; ignore ``min_effect``."""
        if self.outcome is Outcome.UNKNOWN or self.effect is None:
            return False
        return (self.outcome is Outcome.SLOWER or (self.effect.low_ns or 0) > 0) and self.effect.ratio >= limit


def judge(base: Side, new: Side, limits: Limits, forbidding: str = "", basis: Basis = STEP) -> Judgement:
    """Judge whether the new side is faster.

    Args:
        base: The side that the new side is compared with.
        new: The side that may be faster or slower.
        limits: The smallest change that counts as a difference.
        forbidding: Why the sides are not comparable (:mod:`traceviz.compare.comparability`); empty if they are.
        basis: The compared figure: steady steps, or a time of the whole runs.
    """
    if basis.is_step:
        why = next((why for side in (base, new) if (why := _explain_unusable(side, limits))), "") or forbidding
        return (
            Judgement(Outcome.UNKNOWN, None, why) if why else _judge_effect(effect(base.runs, new.runs), limits, STEP)
        )
    measured = [basis.measure(side) for side in (base, new)]
    why = next((why for side in (base, new) if (why := _explain_unmeasured(side, basis))), "") or forbidding
    before, after = measured
    if why or before is None or after is None:
        return Judgement(Outcome.UNKNOWN, None, why, basis)
    difference = effect_of_runs(before.values, after.values, (before.within, after.within))
    if not difference.runs and difference.ratio and (was_busy(base) or was_busy(new)):
        why = "one run of each side, on a machine that other programs used; more runs of each side would tell"
        return Judgement(Outcome.UNKNOWN, difference, why, basis)
    return _judge_effect(difference, limits, basis)


def _judge_effect(measured: Effect, limits: Limits, basis: Basis) -> Judgement:
    """Judge a difference. If it may be chance, state which recordings would settle it."""
    told = outcome_of(measured.ratio, measured.interval, limits)
    if told is not Outcome.UNKNOWN:
        return Judgement(told, measured, "", basis)
    more = "more steps, or more runs of each side, would tell" if basis.is_step else "more runs of each side would tell"
    if measured.interval is None:
        change = f"a difference of {format_change(measured.ratio, 'ratio')}"
        return Judgement(told, measured, f"one run of each side, and {change} may be chance; {more}", basis)
    low, high = (format_change(end, "ratio") for end in measured.interval)
    return Judgement(told, measured, f"the difference may be anything from {low} to {high}; {more}", basis)


def _explain_unmeasured(side: Side, basis: Basis) -> str:
    """Return why a time of whole runs cannot be judged; empty if it can."""
    measure = basis.measure(side)
    if measure is not None:
        return "" if min(measure.values) > 0 else f"the {basis.words} of {side.label} is 0"
    return without_figure(side, basis) or f"{side.label} does not state its {basis.words}"


def without_figure(side: Side, basis: Basis) -> str:
    """Return how the runs of a side without a figure ended, if none ended by itself; else empty."""
    has_figure, said = side.steps if basis.is_step else basis.measure(side), sentence(side)
    if has_figure or not said:
        return ""
    return said if basis.is_step else f"{said}, and so has no {basis.words}"


def _explain_unusable(side: Side, limits: Limits) -> str:
    """Return why the steps of a side cannot be judged; empty if they can."""
    if not side.steps:
        is_partial = any(report.verdict.code == VerdictCode.PARTIAL for report in side.reports)
        return f"{side.label} has no steps{': only some sections were saved, with --section' * is_partial}"
    if side.steps < limits.min_steps:
        return f"{side.label} has {counted(side.steps, 'steady step')}, and {limits.min_steps} are needed"
    if any(not (run > 0).sum() * 2 > run.size for run in side.runs):
        return f"most steps of {side.label} last no time at all"
    return ""
