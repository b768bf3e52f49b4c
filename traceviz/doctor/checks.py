"""What a check of ``traceviz doctor`` finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Condition = Literal["ok", "limited", "missing"]
CONDITIONS: tuple[Condition, ...] = ("ok", "limited", "missing")


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at.

    Args:
        group: What it belongs to; checks of one group follow one another.
        name: What was looked at.
        condition: ``ok``, ``limited`` where something is lost, ``missing`` where it is not there.
        detail: What was found, and what that means.
        fix: What mends it, ideally a command; empty where nothing needs mending, or nothing can be done.
    """

    group: str
    name: str
    condition: Condition
    detail: str
    fix: str = ""
