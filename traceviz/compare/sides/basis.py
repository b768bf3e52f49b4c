"""Basis of a verdict: the mean step, or a time of the whole run, and why a side has no such figure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from traceviz.compare.effect import typical
from traceviz.compare.sides.measures import Measure, endings, measures_of
from traceviz.compare.sides.sides import Side, fact
from traceviz.core.errors import UsageError
from traceviz.core.units import counted
from traceviz.parsers.run.manifest import STOPPED, Ending
from traceviz.report import MEASURES, Report

_ALONE = {"failed": "crashed", "timed-out": "timed out"}
"""Text for outcomes without a known reason."""
_SIGNAL = re.compile(r"signal \d+ \((\w+)\)$")


def failure(report: Report) -> str:
    """Return ``crashed: out of memory``, ``timed out after 60 s``, ``killed (SIGKILL)``; empty if it ended by
    itself.
    """
    outcome, reason = (str(fact(report, MEASURES, key) or "") for key in ("outcome", "reason"))
    if outcome not in STOPPED:
        return ""
    ending = Ending(outcome, _SIGNAL.sub(r"\1", reason))
    return ending.in_words if reason else _ALONE.get(outcome, outcome)


def failures(side: Side) -> Counter[str]:
    """Count the endings of a side's runs, without those that ended by themselves."""
    return Counter(filter(None, map(failure, side.reports)))


def cell(side: Side) -> str:
    """Return how the runs of a side without a figure ended; empty if one ended by itself."""
    found = failures(side)
    return "; ".join(text for text, _ in found.most_common()) if found.total() == len(side.reports) else ""


def sentence(side: Side) -> str:
    """Return ``vgg crashed: out of memory``; empty if a run of the side ended by itself."""
    words = cell(side)
    return f"{side.label} {'was ' * words.startswith(_PASSIVE)}{words}" if words else ""


def counts(side: Side) -> str:
    """Return ``1 of 3 runs crashed: out of memory``; empty if all runs of a side ended by themselves."""
    runs = counted(len(side.reports), "run")
    return ", ".join(
        f"{count:,} of {runs} {'was ' * way.startswith(_PASSIVE)}{way}" for way, count in failures(side).most_common()
    )


_PASSIVE = ("killed", "interrupted")


@dataclass(frozen=True, slots=True)
class Basis:
    """A time by which sides are faster or slower.

    Args:
        name: Its name in options and in JSON.
        key: Its measure in section ``measures``; empty for steps, which are compared one by one.
        words: Display name.
    """

    name: str
    key: str
    words: str

    @property
    def is_step(self) -> bool:
        """True if steps are compared."""
        return not self.key

    def measure(self, side: Side) -> Measure | None:
        """Return the time of every run of a side; ``None`` if it has none, or steps are compared."""
        return measures_of(side).get(self.key)

    def typical_ns(self, side: Side) -> float | None:
        """Return the time of a side; over several runs, their geometric mean. ``None`` if it was not measured."""
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
"""All bases that a verdict may have."""


def basis_of(sides: Sequence[Side], name: str, per: str = "") -> Basis:
    """Return the basis of a comparison: the requested one, else steps, or total time if no two sides have steps.

    Args:
        sides: All of them, the base first.
        name: Name of one of :data:`BASES`; empty for the default.
        per: Tag of the work per step, if the time per unit is compared.

    Raises:
        UsageError: there is no such measure, or ``per`` is given with a measure other than the step.
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
    has_stopped = any(map(endings, sides))  # a stop then explains why nothing can be compared
    return TOTAL if (by_total or has_stopped) and not by_steps else STEP
