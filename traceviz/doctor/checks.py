"""One check of ``traceviz doctor`` and its result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Condition = Literal["ok", "limited", "missing"]
CONDITIONS: tuple[Condition, ...] = ("ok", "limited", "missing")


@dataclass(frozen=True, slots=True)
class Check:
    """The result of looking at one thing.

    Args:
        group: Name of its group; checks of one group follow one another.
        name: Name of the thing.
        condition: ``ok``, ``limited`` where something is lost, ``missing`` where it is not there.
        detail: The facts, and what they mean.
        fix: How to mend it, ideally a command; empty where nothing needs mending, or nothing can be done.
    """

    group: str
    name: str
    condition: Condition
    detail: str
    fix: str = ""
