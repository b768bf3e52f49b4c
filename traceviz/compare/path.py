"""Sides as a path, each a change to the one before: what every change gained."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from traceviz.compare.attribution import Attribution
from traceviz.compare.judge import Judgement
from traceviz.compare.sides.sides import Side


@dataclass(frozen=True, slots=True)
class Change:
    """One side against the one before it.

    Args:
        before: The one before.
        after: The side.
        judgement: Whether it is faster. The speed-ups of all changes multiply to that of the last side against the
            first, and their differences add up to it.
        attribution: Where the difference lies; ``None`` where it cannot be told.
    """

    before: Side
    after: Side
    judgement: Judgement
    attribution: Attribution | None


Told = Callable[[Side, Side], tuple[Judgement, Attribution | None]]


def changes_along(sides: Sequence[Side], told: Told) -> tuple[Change, ...]:
    """Every side but the first against the one before it, as ``told`` judges and explains the two."""
    pairs = pairwise(sides)
    return tuple(Change(before, after, *told(before, after)) for before, after in pairs)
