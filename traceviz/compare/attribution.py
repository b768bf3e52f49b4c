"""Attribution of the step time difference to exclusive classes, whose differences add up to it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from traceviz.compare.effect import mean_differences
from traceviz.compare.options import Limits
from traceviz.compare.sides.sides import Side, apportion

_HOST_KEYS = (
    *("input_wait", "synchronisation", "allocation", "kernel_launch", "compilation"),
    *("host_blocked", "profiler", "host_compute"),
)
"""Classes of device idle time: the host's activity during it."""

_OTHER_BASES_KEYS = (
    *("device_to_device", "device_collectives", "infeed", "outfeed", "compile", "other", "host_to_host"),
    *("kernel", "memcpy", "memset", "runtime", "data_loader", "cpu_exec"),
)
"""Classes by the rules of XProf and Kineto."""

CLASS_KEYS = (
    *("device_compute", "communication", "parameter_transfer", "copy_d2h", "copy_h2d", "other_device"),
    *_HOST_KEYS,
    *_OTHER_BASES_KEYS,
)


MATTERS = 0.01
"""Share of the other side's step time from which a class that one side does not measure matters."""


@dataclass(frozen=True, slots=True)
class ClassChange:
    """A class of step time, per step on average.

    Args:
        key: Key of the class.
        base_ns: Time on the base; 0 if :attr:`in_base` is false.
        new_ns: Time on the new side.
        low_ns: Lower end of the 95 % interval of the difference, between runs if a side has several, else between
            steps. ``None`` if there are too few.
        high_ns: Its upper end.
        in_base: True if the base measured it.
        in_new: True if the new side measured it.
        comparable: True if both sides mean the same by it. If a side does not measure a class, the time is in later
            classes.
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
        """Positive if the new side takes longer."""
        return self.new_ns - self.base_ns

    @property
    def is_certain(self) -> bool | None:
        """True if the interval excludes zero; ``None`` if it is unknown whether the class changed."""
        if self.low_ns is None or self.high_ns is None or not self.comparable:
            return None
        return self.low_ns > 0 or self.high_ns < 0


@dataclass(frozen=True, slots=True)
class Attribution:
    """Mean step of both sides and its classes. Classes and differences add up exactly, to the nanosecond.

    ``is_change`` is true if the mean step changed beyond chance, and by enough for shares of the change to matter.
    """

    base_ns: int
    new_ns: int
    classes: tuple[ClassChange, ...]
    is_change: bool = True

    @property
    def difference_ns(self) -> int:
        """Positive if the mean step of the new side is longer."""
        return self.new_ns - self.base_ns

    def share(self, change: ClassChange) -> float | None:
        """Return the share of the step time difference in a class; ``None`` if the step did not change."""
        return change.difference_ns / self.difference_ns if self.is_change and self.difference_ns else None


def attribute(base: Side, new: Side, limits: Limits | None = None) -> Attribution | None:
    """Compare the classes of both sides; return ``None`` if the report of a side lacks them.

    Args:
        base: The side that the new side is compared with.
        new: The side that may be faster or slower.
        limits: Fewest steps for intervals, and the smallest change that counts as a difference.
    """
    if not all(side.classes and side.steps for side in (base, new)):
        return None
    limits = limits or Limits()
    keys = classes_of((base, new))
    before, after = (mean_classes(side, keys) for side in (base, new))
    ends = _intervals(base, new, keys, limits)
    last = min((_position(key) for key in keys if _is_elsewhere(key, base, new)), default=len(CLASS_KEYS) + 1)
    changes = tuple(
        ClassChange(key, *means, *of_mean, key in base.measured, key in new.measured, _position(key) < last)
        for key, means, of_mean in zip(keys, zip(before[1:], after[1:], strict=True), ends[1:], strict=True)
    )
    low, high = ends[0]
    is_sure = low is not None and high is not None and (low > 0 or high < 0)
    return Attribution(
        before[0], after[0], changes, is_sure and abs(after[0] - before[0]) >= limits.min_effect * before[0]
    )


def classes_of(sides: Iterable[Side]) -> list[str]:
    """Return the keys of the classes that any side has, in the order in which classes take time."""
    return sorted(dict.fromkeys(key for side in sides for key in side.classes), key=_position)


def _position(key: str) -> int:
    """Return the position in the order in which classes take time. Keys that are no known class come last."""
    return CLASS_KEYS.index(key) if key in CLASS_KEYS else len(CLASS_KEYS)


def _is_elsewhere(key: str, base: Side, new: Side) -> bool:
    """Return whether only one side measures a class and has much of it. The other side counts it in later classes."""
    both = ((base, new), (new, base))
    return any(key not in other.measured and share_of(side, key) >= MATTERS for side, other in both)


def share_of(side: Side, key: str) -> float:
    """Return the share of a side's steady step time that a class takes."""
    total = sum(int(times.sum()) for times in side.classes.values())
    return int(side.classes[key].sum()) / total if total and key in side.classes else 0.0


Ends = tuple[float | None, float | None]


def _intervals(base: Side, new: Side, keys: list[str], limits: Limits) -> list[Ends]:
    """Return the interval ends of the step and its classes."""
    if min(base.steps, new.steps) < limits.min_steps:
        return [(None, None)] * (len(keys) + 1)
    low, high = mean_differences(base.tables(keys), new.tables(keys)).tolist()
    return list(zip(low, high, strict=True))


def mean_classes(side: Side, keys: Sequence[str]) -> list[int]:
    """Return the mean step and mean classes in whole nanoseconds. The classes add up to the step."""
    parts = [side.per_step(int(side.classes[key].sum()) if key in side.classes else 0) for key in keys]
    step = round(sum(parts, Fraction(0)))
    return [step, *apportion(parts, step)]
