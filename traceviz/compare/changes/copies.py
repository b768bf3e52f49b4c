"""Copies and fills of both sides by kind, with their bytes."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from traceviz.compare.changes.events import EventChange, changes_by_name
from traceviz.compare.changes.recorded import why_not
from traceviz.compare.sides.sides import Side, apportioned, grid, rows, whole
from traceviz.report import IN_STEPS


@dataclass(frozen=True, slots=True)
class CopyChange:
    """Copies of one kind (``h2d``, ``d2h``, ``d2d``, ``memset``, ...); ``bytes`` per steady step, whole."""

    times: EventChange
    base_bytes: int
    new_bytes: int

    @property
    def kind(self) -> str:
        """The kind of copy: its source and destination."""
        return self.times.name


@dataclass(frozen=True, slots=True)
class CopyChanges:
    """Kinds of copies of both sides, the largest difference first."""

    changes: tuple[CopyChange, ...] = ()
    why_not: str = ""


def compare_copies(base: Side, new: Side) -> CopyChanges:
    """Compare copies and fills by kind."""
    if why := why_not(base, new, "copies", "copies", IN_STEPS):
        return CopyChanges(why_not=why)
    changes = changes_by_name(base.events("copies", "kind"), new.events("copies", "kind"))
    sizes = [_whole_bytes(side) for side in (base, new)]
    return CopyChanges(tuple(CopyChange(times, *(size.get(times.name, 0) for size in sizes)) for times in changes))


def bytes_by_kind(side: Side) -> dict[str, Fraction]:
    """Return the bytes copied per steady step, by kind; empty if copies were not recorded."""
    totals: dict[str, int] = {}
    for report in side.reports:
        for row in rows(grid(report, "copies", IN_STEPS)):
            totals[str(row["kind"])] = totals.get(str(row["kind"]), 0) + whole(row["bytes"])
    return {kind: side.per_step(total) for kind, total in totals.items()}


def _whole_bytes(side: Side) -> dict[str, int]:
    """Return the same in whole bytes that add up to the rounded sum."""
    exact = bytes_by_kind(side)
    return dict(zip(exact, apportioned(list(exact.values()), round(sum(exact.values(), Fraction(0)))), strict=True))
