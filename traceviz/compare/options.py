"""How to compare: what counts as a difference, and what the user says about the sides."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Against = Literal["", "row", "column", "all", "none"]
"""With which cell the cells of a cross table are compared: the base of their row, of their column, of all; with none.
Empty where that follows from the tags."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What counts as a difference.

    Args:
        min_effect: Smaller differences are no change, however sure they are: the same program differs by as much
            after a restart.
        min_steps: Fewer steady steps than this on a side are not judged.
        widest: An interval that holds zero and reaches further than this share of the base says nothing.
        alone: Of one run on each side, whose time is known without an interval, a difference below this share of the
            base is not judged: starts of one program may differ by as much.
    """

    min_effect: float = 0.01
    min_steps: int = 5
    widest: float = 0.1
    alone: float = 0.2


@dataclass(frozen=True, slots=True)
class Tables:
    """Tables of a study, beside the one with a row for each side.

    Args:
        cross: Whether the first two tags are crossed: rows of one, columns of the other. Two tags alone always are.
        against: With which cell others are compared there.
        curve: Tag over whose numbers there is a curve; empty for none.
        scaling: Tag that counts what shares the work (devices, cores, threads), for efficiency; empty for none.
        measures: Names of the figures shown; what the verdict is about where empty.
    """

    cross: bool = False
    against: Against = ""
    curve: str = ""
    scaling: str = ""
    measures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """How to compare.

    Args:
        limits: What counts as a difference.
        per: Tag of the runs that says how many units of work a step does; then one unit is compared with one.
        same_work: The user vouches that steps do the same work, whatever it looks like.
        measure: What the verdict is about: ``step``, ``total``, ``training``, ``epoch``, ``start``. Where empty, steps,
            or the total time where not every side has steps.
        tables: Further tables.
    """

    limits: Limits = field(default_factory=Limits)
    per: str = ""
    same_work: bool = False
    measure: str = ""
    tables: Tables = field(default_factory=Tables)
