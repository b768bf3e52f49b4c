"""How to compare: what counts as a difference, and what the user says about the sides."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Limits:
    """What counts as a difference.

    Args:
        min_effect: Smaller differences are no change, however sure they are: the same program differs by as much
            after a restart.
        min_steps: Fewer steady steps than this on a side are not judged.
        widest: An interval that holds zero and reaches further than this share of the base says nothing.
    """

    min_effect: float = 0.01
    min_steps: int = 5
    widest: float = 0.1


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """How to compare.

    Args:
        limits: What counts as a difference.
        per: Tag of the runs that says how many units of work a step does; then one unit is compared with one.
        same_work: The user vouches that steps do the same work, whatever it looks like.
    """

    limits: Limits = field(default_factory=Limits)
    per: str = ""
    same_work: bool = False
