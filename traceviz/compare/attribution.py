"""Where the difference of a step lies: its exclusive classes, whose differences add up to it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from traceviz.compare.effect import mean_differences
from traceviz.compare.sides import Side, apportioned


@dataclass(frozen=True, slots=True)
class ClassChange:
    """A class of step time, per step on average.

    ``low_ns`` and ``high_ns`` are the ends of the 95 % interval of the difference: between steps, not between runs.
    """

    key: str
    base_ns: int
    new_ns: int
    low_ns: float
    high_ns: float

    @property
    def difference_ns(self) -> int:
        """Positive where the new side takes longer."""
        return self.new_ns - self.base_ns

    @property
    def is_certain(self) -> bool:
        """Whether the interval leaves out zero."""
        return self.low_ns > 0 or self.high_ns < 0


@dataclass(frozen=True, slots=True)
class Attribution:
    """The mean step of both sides and its classes, which add up to it to the nanosecond, and so do the differences."""

    base_ns: int
    new_ns: int
    classes: tuple[ClassChange, ...]

    @property
    def difference_ns(self) -> int:
        """Positive where the mean step of the new side is longer."""
        return self.new_ns - self.base_ns


def attribute(base: Side, new: Side) -> Attribution | None:
    """Classes of both sides; ``None`` where a side does not tell of them."""
    if not all(side.classes and side.steps for side in (base, new)):
        return None
    keys = list(dict.fromkeys((*base.classes, *new.classes)))
    tables = _table(base, keys), _table(new, keys)
    means = [_means(table, side.per) for table, side in zip(tables, (base, new), strict=True)]
    low, high = mean_differences(base.per_unit(tables[0]), new.per_unit(tables[1]))
    changes = (
        ClassChange(key, means[0][index + 1], means[1][index + 1], float(low[index + 1]), float(high[index + 1]))
        for index, key in enumerate(keys)
    )
    return Attribution(means[0][0], means[1][0], tuple(changes))


def _table(side: Side, keys: list[str]) -> npt.NDArray[np.int64]:
    """Steps by total and classes, ns."""
    nothing = np.zeros(side.steps, np.int64)
    columns = [side.classes.get(key, nothing) for key in keys]
    return np.stack([np.sum(columns, axis=0), *columns], axis=1)


def _means(table: npt.NDArray[np.int64], per: Fraction) -> list[int]:
    """Mean step and mean classes in whole nanoseconds; the classes add up to the step."""
    total, *parts = (Fraction(int(value), len(table)) / per for value in table.sum(axis=0))
    step = round(total)
    return [step, *apportioned(parts, step)]
