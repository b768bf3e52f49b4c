"""Predictions of steps without a cause as values, and speed-ups as text.

The headline knows these without loading what computes them: predictions are made on request only.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Prediction:
    """The steps without a cause.

    Args:
        key: Part of the judged time.
        label: Its name for readers.
        time_ns: Exclusive time of the cause in all steady steps.
        share: That time as a share of steady step time.
        step_ns: Mean steady step.
        low_ns: Least mean step without the cause.
        high_ns: Most.
        reason: Why no gain is proven; empty if one is.
    """

    key: str
    label: str
    time_ns: int
    share: float
    step_ns: float
    low_ns: float
    high_ns: float
    reason: str = ""

    @property
    def low(self) -> float:
        """Least speed-up."""
        return self.step_ns / self.high_ns if self.high_ns > 0 else 1.0

    @property
    def high(self) -> float | None:
        """Greatest speed-up; ``None`` if there is no upper bound."""
        return self.step_ns / self.low_ns if self.low_ns > 0 else None


@dataclass(frozen=True, slots=True)
class WhatIf:
    """Predictions, the mean step, how many of the steady steps were replayed, and whether device work was recorded."""

    found: tuple[Prediction, ...]
    step_ns: float
    replayed: int
    steady: int
    has_device: bool


def describe_speedup(low: float, high: float | None) -> str:
    """Return a speed-up as text: ``1.9 to 2.6×``; ``at best 2.6×`` if none is proven.

    Args:
        low: Least speed-up, 1 if no gain is proven.
        high: Greatest; ``None`` if there is no upper bound.
    """
    least = f"{low:.1f}"
    if high is None:
        return "not known" if least == "1.0" else f"at least {least}×"
    most = f"{max(low, high):.1f}"
    if least == "1.0":
        return f"at best {most}×"
    return f"{most}×" if least == most else f"{least} to {most}×"
