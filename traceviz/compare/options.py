"""Options of a comparison: the smallest difference that counts, and the user's statements about the sides."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Against = Literal["", "row", "column", "all", "none"]
"""The cell with which the cells of a cross table are compared: the base of their row, of their column, of all, or none.
Empty if it follows from the tags."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits from which a change counts as a difference.

    Args:
        min_effect: Smaller differences are no change, however certain: a restart of the same program changes as much.
        min_steps: A side with fewer steady steps is not judged.
        widest: An interval that contains zero and reaches further than this share of the base is inconclusive.
        alone: For one run per side without an interval, a difference below this share of the base is not judged.
            Restarts of one program may differ as much.
        clock: Smaller differences of the work of whole captures are no change: the clock of a device varies as much.
    """

    min_effect: float = 0.01
    min_steps: int = 5
    widest: float = 0.1
    alone: float = 0.2
    clock: float = 0.02


@dataclass(frozen=True, slots=True)
class Tables:
    """Tables of a study, in addition to the one with a row per side.

    Args:
        cross: True to cross the first two tags: rows of one, columns of the other. Two tags alone are always crossed.
        against: The cell that others are compared with there.
        curve: Tag whose numbers are the x axis of a curve; empty for none.
        scaling: Tag that counts the workers (devices, cores, threads), for efficiency; empty for none.
        measures: Names of the shown figures; if empty, the figure that the verdict is about.
    """

    cross: bool = False
    against: Against = ""
    curve: str = ""
    scaling: str = ""
    measures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """Options of a comparison.

    Args:
        limits: Limits from which a change counts as a difference.
        per: Tag of the runs that gives the units of work per step; the time per unit is then compared.
        same_work: The user vouches that steps do the same work, despite any sign of the contrary.
        measure: The figure that the verdict is about: ``step``, ``total``, ``training``, ``epoch``, ``start``. If
            empty, steps, or the total time if not every side has steps.
        tables: Further tables.
    """

    limits: Limits = field(default_factory=Limits)
    per: str = ""
    same_work: bool = False
    measure: str = ""
    tables: Tables = field(default_factory=Tables)
