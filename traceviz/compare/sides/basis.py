"""What a verdict is about: the mean step, or a time of the whole run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from traceviz.compare.effect import typical
from traceviz.compare.sides.measures import Measure, endings, measures_of
from traceviz.compare.sides.sides import Side
from traceviz.core.errors import UsageError


@dataclass(frozen=True, slots=True)
class Basis:
    """A time by which sides are faster or slower.

    Args:
        name: Its name in options and in JSON.
        key: Its measure in section ``measures``; empty of steps, which are compared one by one.
        words: What people call it.
    """

    name: str
    key: str
    words: str

    @property
    def is_step(self) -> bool:
        """Whether steps are compared."""
        return not self.key

    def measure(self, side: Side) -> Measure | None:
        """The time of every run of a side; ``None`` where it has none, or steps are compared."""
        return measures_of(side).get(self.key)

    def typical_ns(self, side: Side) -> float | None:
        """The time of a side, over several runs the geometric mean of theirs; ``None`` where it was not measured."""
        if self.is_step:
            return side.mean_ns
        measure = self.measure(side)
        return None if measure is None else typical(np.array(measure.values))


STEP = Basis("step", "", "mean step")
TOTAL = Basis("total", "total_ns", "total time")
BASES = (
    STEP,
    TOTAL,
    Basis("training", "training_ns", "time to the end of training"),
    Basis("epoch", "epoch_ns", "time per epoch"),
    Basis("start", "start_ns", "time to the first step"),
)
"""All that a verdict may be about."""


def basis_of(sides: Sequence[Side], name: str, per: str = "") -> Basis:
    """What sides are compared by: what was asked for, else steps, or the total time where no two sides have steps.

    Args:
        sides: All of them, the base first.
        name: Name of one of :data:`BASES`; empty where nobody asked.
        per: Tag of the work that a step does, where one unit of it is compared with one.

    Raises:
        UsageError: there is no such measure, or it is not that of a step, and ``per`` is given.
    """
    known = {basis.name: basis for basis in BASES}
    if name and name not in known:
        raise UsageError.unknown("measure", name, known)
    if per and name not in {"", STEP.name}:
        raise UsageError(
            f"--per {per} compares steps, and --measure {name} does not.",
            f"The {known[name].words} is that of a whole run, whatever a step does.",
            "Leave out one of the two.",
        )
    if name or per:
        return known[name or STEP.name]
    base, *others = sides
    by_steps = base.steps and any(side.steps for side in others)
    by_total = TOTAL.measure(base) and any(TOTAL.measure(side) for side in others)
    has_stopped = any(map(endings, sides))  # then that is why there is nothing to compare, and not missing steps
    return TOTAL if (by_total or has_stopped) and not by_steps else STEP
