"""Outcomes of a change: faster, slower, no change, or not to be judged."""

from __future__ import annotations

from enum import StrEnum

from traceviz.compare.options import Limits
from traceviz.report.verdicts import VerdictCode


class Outcome(StrEnum):
    """The verdict on the new side."""

    FASTER = "faster"
    SLOWER = "slower"
    NO_CHANGE = "no change"
    UNKNOWN = "cannot judge"

    @property
    def code(self) -> VerdictCode:
        """The verdict code of a comparison with this outcome."""
        return VerdictCode(self.value.replace(" ", "-"))


def outcome_of(ratio: float, interval: tuple[float, float] | None, limits: Limits) -> Outcome:
    """Return the outcome of a change of a figure, as share of the base. An increase is slower.

    Args:
        ratio: The change.
        interval: Its 95 % interval; ``None`` for two single figures, where only a large change is judged.
        limits: Limits from which a change counts as a difference.
    """
    if interval is None:
        is_difference = abs(ratio) >= limits.alone
    else:
        low, high = interval
        is_difference = low > 0 or high < 0
        if not is_difference and max(-low, high) <= limits.widest:
            return Outcome.NO_CHANGE
        if is_difference and abs(ratio) < limits.min_effect:
            return Outcome.NO_CHANGE
    if not is_difference:
        return Outcome.UNKNOWN
    return Outcome.SLOWER if ratio > 0 else Outcome.FASTER
