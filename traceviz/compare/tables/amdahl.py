"""The part of a program that more devices do not make faster.

Amdahl (1967): of n devices, each does its share of what can be divided, and one does the rest: a run takes
``a + b / n``, and the serial share is ``a / (a + b)``. No number of devices makes it faster than ``1 / share``.
Karp and Flatt (1990) give the share that a single measured speed-up implies: where it grows with n, the cost of
dividing the work grows, and the law of Amdahl is too hopeful.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from traceviz.core.resampling import student

_FEWEST = 3
"""Fewer numbers of devices fit any two parameters."""


@dataclass(frozen=True, slots=True)
class SerialShare:
    """The fitted law.

    Args:
        share: Serial share of the time of one device, from 0 to 1.
        low: Lower end of its 95 % interval; ``None`` where observations are too few.
        high: Its upper end.
        largest_error: How far the law is from what was measured, at most, as a share of that.
    """

    share: float
    low: float | None
    high: float | None
    largest_error: float

    @property
    def most(self) -> float | None:
        """Speed-up that no number of devices exceeds; ``None`` where there is no bound."""
        return 1 / self.share if self.share > 0 else None

    def speedup(self, devices: float, base: float) -> float:
        """Speed-up of a number of devices against that of the base."""
        return self._time(base) / self._time(devices)

    def _time(self, devices: float) -> float:
        return self.share + (1 - self.share) / devices


def fit(devices: Sequence[float], times: Sequence[float]) -> SerialShare | None:
    """Fit Amdahl's law by least squares of relative errors.

    Args:
        devices: Number of devices of every run, above zero.
        times: Its time, above zero, in any unit.

    Returns:
        The share; ``None`` of fewer than three numbers of devices.
    """
    if len(set(devices)) < _FEWEST:
        return None
    numbers, measured = np.array(devices, float), np.array(times, float)
    table = np.stack([np.ones_like(numbers), 1 / numbers], axis=1) / measured[:, None]
    (serial, divided), *_ = np.linalg.lstsq(table, np.ones_like(measured), rcond=None)
    total = serial + divided
    if total <= 0:
        return None
    share = _share(float(serial / total))
    fitted = (total * share + total * (1 - share) / numbers) / measured - 1
    low, high = _interval(table, fitted, float(serial), float(divided))
    return SerialShare(share, low, high, float(np.abs(fitted).max()))


def _interval(
    table: np.ndarray, errors: np.ndarray, serial: float, divided: float
) -> tuple[float | None, float | None]:
    """95 % interval of ``serial / (serial + divided)``: the delta method."""
    freedom = len(errors) - 2
    if freedom < 1:
        return None, None
    covariance = np.linalg.pinv(table.T @ table) * float(errors @ errors) / freedom
    total = serial + divided
    slope = np.array([divided, -serial]) / total**2
    half = student(freedom) * math.sqrt(max(float(slope @ covariance @ slope), 0.0))
    share = serial / total
    if not math.isfinite(half):  # times that differ by more than numbers tell apart
        return None, None
    return _share(share - half), _share(share + half)


def _share(value: float) -> float:
    """From 0 to 1; what rounding leaves of nothing is nothing."""
    return round(min(max(value, 0.0), 1.0), 9)


def karp_flatt(speedup: float, times_devices: float) -> float | None:
    """Serial share that a measured speed-up of ``times_devices`` as many devices implies; below 0 beyond ideal."""
    if times_devices <= 1 or speedup <= 0:
        return None
    return (1 / speedup - 1 / times_devices) / (1 - 1 / times_devices)
