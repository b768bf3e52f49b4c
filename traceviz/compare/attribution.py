"""Where the difference of a step lies: its exclusive classes, whose differences add up to it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from traceviz.compare.classes import CLASS_KEYS
from traceviz.compare.effect import mean_differences
from traceviz.compare.options import Limits
from traceviz.compare.sides.sides import Side, apportioned

MATTERS = 0.01
"""A class that one side does not measure matters from this share of the other's steps on."""


@dataclass(frozen=True, slots=True)
class ClassChange:
    """A class of step time, per step on average.

    Args:
        key: Of the class.
        base_ns: Time on the base; 0 where :attr:`in_base` says that it was not measured.
        new_ns: The same of the new side.
        low_ns: Lower end of the 95 % interval of the difference: between runs where a side has several, else between
            steps. ``None`` where there are too few.
        high_ns: Its upper end.
        in_base: Whether the base measured it.
        in_new: Whether the new side did.
        comparable: Whether both sides mean the same by it. Where a side does not measure a class, its time is in the
            classes after it.
    """

    key: str
    base_ns: int
    new_ns: int
    low_ns: float | None
    high_ns: float | None
    in_base: bool = True
    in_new: bool = True
    comparable: bool = True

    @property
    def difference_ns(self) -> int:
        """Positive where the new side takes longer."""
        return self.new_ns - self.base_ns

    @property
    def is_certain(self) -> bool | None:
        """Whether the interval leaves out zero; ``None`` where it is unknown whether the class changed."""
        if self.low_ns is None or self.high_ns is None or not self.comparable:
            return None
        return self.low_ns > 0 or self.high_ns < 0


@dataclass(frozen=True, slots=True)
class Attribution:
    """The mean step of both sides and its classes, which add up to it to the nanosecond, and so do the differences.

    ``is_change`` tells whether the mean step changed beyond chance, and by enough for shares of the change to matter.
    """

    base_ns: int
    new_ns: int
    classes: tuple[ClassChange, ...]
    is_change: bool = True

    @property
    def difference_ns(self) -> int:
        """Positive where the mean step of the new side is longer."""
        return self.new_ns - self.base_ns

    def share(self, change: ClassChange) -> float | None:
        """The share of the difference that a class makes; ``None`` where the step did not change."""
        return change.difference_ns / self.difference_ns if self.is_change and self.difference_ns else None


def attribute(base: Side, new: Side, limits: Limits | None = None) -> Attribution | None:
    """Classes of both sides; ``None`` where the report of a side does not have them.

    Args:
        base: What the new side is compared with.
        new: What may be faster or slower.
        limits: From how many steps on there are intervals, and what counts as a difference.
    """
    if not all(side.classes and side.steps for side in (base, new)):
        return None
    limits = limits or Limits()
    keys = classes_of((base, new))
    before, after = (mean_classes(side, keys) for side in (base, new))
    ends = _intervals(base, new, keys, limits)
    last = min((_place(key) for key in keys if _is_elsewhere(key, base, new)), default=len(CLASS_KEYS) + 1)
    changes = tuple(
        ClassChange(key, *means, *of_mean, key in base.measured, key in new.measured, _place(key) < last)
        for key, means, of_mean in zip(keys, zip(before[1:], after[1:], strict=True), ends[1:], strict=True)
    )
    low, high = ends[0]
    is_sure = low is not None and high is not None and (low > 0 or high < 0)
    return Attribution(
        before[0], after[0], changes, is_sure and abs(after[0] - before[0]) >= limits.min_effect * before[0]
    )


def classes_of(sides: Iterable[Side]) -> list[str]:
    """Keys of the classes that any side has, in the order in which they take time."""
    return sorted(dict.fromkeys(key for side in sides for key in side.classes), key=_place)


def _place(key: str) -> int:
    """Position in the order in which classes take time; keys that are no known class come last."""
    return CLASS_KEYS.index(key) if key in CLASS_KEYS else len(CLASS_KEYS)


def _is_elsewhere(key: str, base: Side, new: Side) -> bool:
    """Whether only one side measures a class, and has much of it: on the other, that is in the classes after it."""
    both = ((base, new), (new, base))
    return any(key not in other.measured and share_of(side, key) >= MATTERS for side, other in both)


def share_of(side: Side, key: str) -> float:
    """Share of the steady step time of a side in a class."""
    total = sum(int(times.sum()) for times in side.classes.values())
    return int(side.classes[key].sum()) / total if total and key in side.classes else 0.0


Ends = tuple[float | None, float | None]


def _intervals(base: Side, new: Side, keys: list[str], limits: Limits) -> list[Ends]:
    """Ends of the intervals of the step and its classes."""
    if min(base.steps, new.steps) < limits.min_steps:
        return [(None, None)] * (len(keys) + 1)
    low, high = mean_differences(base.tables(keys), new.tables(keys)).tolist()
    return list(zip(low, high, strict=True))


def mean_classes(side: Side, keys: Sequence[str]) -> list[int]:
    """Mean step and mean classes in whole nanoseconds; the classes add up to the step."""
    parts = [side.per_step(int(side.classes[key].sum()) if key in side.classes else 0) for key in keys]
    step = round(sum(parts, Fraction(0)))
    return [step, *apportioned(parts, step)]
