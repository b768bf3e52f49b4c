"""Whether one side is faster: yes, no, no change, or unknown."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from traceviz.compare.effect import Effect, effect
from traceviz.compare.options import Limits
from traceviz.compare.sides.sides import Side
from traceviz.units import counted, format_change


class Outcome(StrEnum):
    """The verdict on the new side."""

    FASTER = "faster"
    SLOWER = "slower"
    NO_CHANGE = "no change"
    UNKNOWN = "cannot judge"

    @property
    def code(self) -> str:
        """What programs call it: ``cannot-judge``."""
        return self.value.replace(" ", "-")


@dataclass(frozen=True, slots=True)
class Judgement:
    """The outcome, the effect behind it, and why where it is unknown.

    Steps that do not compare have no effect: a difference of different work is none. Of one that may well be chance
    there is an interval.
    """

    outcome: Outcome
    effect: Effect | None = None
    why: str = ""

    @property
    def speedup(self) -> float | None:
        """How many times as fast the new side is; ``None`` where that cannot be judged."""
        return None if self.effect is None or self.outcome is Outcome.UNKNOWN else self.effect.speedup

    def is_slower_by(self, limit: float) -> bool:
        """Whether steps are longer beyond chance, by ``limit`` of the base or more; ``min_effect`` does not matter."""
        if self.outcome is Outcome.UNKNOWN or self.effect is None:
            return False
        return (self.outcome is Outcome.SLOWER or self.effect.low_ns > 0) and self.effect.ratio >= limit


def judge(base: Side, new: Side, limits: Limits, forbidding: str = "") -> Judgement:
    """Compare the steady steps of two sides.

    Args:
        base: What the new side is compared with.
        new: What may be faster or slower.
        limits: What counts as a difference.
        forbidding: Why the sides are not comparable, from :mod:`traceviz.compare.comparability`; empty where they are.
    """
    for side in (base, new):
        if why := _unusable(side, limits):
            return Judgement(Outcome.UNKNOWN, None, why)
    if forbidding:
        return Judgement(Outcome.UNKNOWN, None, forbidding)
    measured = effect(base.runs, new.runs)
    low, high = measured.interval
    if low > 0 or high < 0:
        if abs(measured.ratio) < limits.min_effect:
            return Judgement(Outcome.NO_CHANGE, measured)
        return Judgement(Outcome.SLOWER if measured.ratio > 0 else Outcome.FASTER, measured)
    if max(-low, high) > limits.widest:
        reach = f"the difference may be anything from {format_change(low, 'ratio')} to {format_change(high, 'ratio')}"
        return Judgement(Outcome.UNKNOWN, measured, f"{reach}; more steps, or more runs of each side, would tell")
    return Judgement(Outcome.NO_CHANGE, measured)


def _unusable(side: Side, limits: Limits) -> str:
    """Why the steps of a side cannot be judged; empty where they can."""
    if not side.steps:
        is_partial = any(report.verdict.code == "partial" for report in side.reports)
        return f"{side.label} has no steps{': only some sections were saved, with --section' * is_partial}"
    if side.steps < limits.min_steps:
        return f"{side.label} has {counted(side.steps, 'steady step')}, and {limits.min_steps} are needed"
    if any(not (run > 0).sum() * 2 > run.size for run in side.runs):
        return f"most steps of {side.label} last no time at all"
    return ""
