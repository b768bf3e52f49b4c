"""One check of ``traceviz doctor`` and its result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Condition = Literal["ok", "limited", "missing"]
CONDITIONS: tuple[Condition, ...] = ("ok", "limited", "missing")


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check.

    Args:
        group: Name of its group; checks of one group follow one another.
        name: Name of the checked thing.
        condition: ``ok``, ``limited`` if something is lost, ``missing`` if it is absent.
        detail: The facts, and their meaning.
        fix: How to fix it, ideally a command; empty if nothing needs a fix, or none exists.
    """

    group: str
    name: str
    condition: Condition
    detail: str
    fix: str = ""
