"""What is said of a change: faster, slower, none, or not to be judged."""

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
        """The code of a comparison with this outcome."""
        return VerdictCode(self.value.replace(" ", "-"))


def outcome_of(ratio: float, interval: tuple[float, float] | None, limits: Limits) -> Outcome:
    """Whether a change of a figure, as share of the base, is a difference: up is slower.

    Args:
        ratio: The change.
        interval: Its 95 % interval; ``None`` of two single figures, of which only a large change is judged.
        limits: What counts as a difference.
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
