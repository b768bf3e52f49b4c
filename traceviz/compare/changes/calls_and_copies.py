"""Functions of the CUDA API on both sides (shares of API time, calls and time per steady step), and copies by kind."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from traceviz.compare.changes.events import EventChange, Status, changes_by_name, total_ns
from traceviz.compare.changes.figures import why_not
from traceviz.compare.sides.sides import Side, apportion, grid, rows, whole
from traceviz.report import IN_STEPS, Grid


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
    return dict(zip(exact, apportion(list(exact.values()), round(sum(exact.values(), Fraction(0)))), strict=True))


NOTABLE = 0.01
"""Smallest share of API time, on either side, that is worth a line."""
NEVER = ("", 0.0)
"""Domain and share of a function that a side never calls."""


@dataclass(frozen=True, slots=True)
class ApiChange:
    """A function of the CUDA API on both sides.

    Args:
        name: Name of the function.
        domain: ``runtime`` or ``driver``.
        base_share: Share of the API time of the whole capture, start-up included, 0 to 1, as profilers print it.
        new_share: The same for the new side.
        steady: Calls and time per steady step; ``None`` if a side has no steady steps.
    """

    name: str
    domain: str
    base_share: float
    new_share: float
    steady: EventChange | None

    @property
    def is_notable(self) -> bool:
        """True if it takes 1 % of the API time on either side."""
        return max(self.base_share, self.new_share) >= NOTABLE


@dataclass(frozen=True, slots=True)
class ApiChanges:
    """Functions of both sides, the largest share on either side first; API time per steady step, if there are steps."""

    changes: tuple[ApiChange, ...] = ()
    base_ns: int | None = None
    new_ns: int | None = None
    why_not: str = ""

    @property
    def notable(self) -> tuple[ApiChange, ...]:
        """Functions that take 1 % of the API time on either side."""
        return tuple(change for change in self.changes if change.is_notable)


def compare_api(base: Side, new: Side) -> ApiChanges:
    """Compare the CUDA API calls of both sides."""
    if why := why_not(base, new, "cuda_api", "CUDA API calls"):
        return ApiChanges(why_not=why)
    before, after = api_shares(base), api_shares(new)
    steady, totals = _api_in_steps(base, new)
    never = Fraction(0)  # calls in steady steps of a function that only start-up calls
    changes = [
        ApiChange(
            name=name,
            domain=(before.get(name) or after[name])[0],
            base_share=before.get(name, NEVER)[1],
            new_share=after.get(name, NEVER)[1],
            steady=steady.get(name, EventChange(name, "", never, never, 0, 0, Status.SAME)) if totals else None,
        )
        for name in dict.fromkeys((*before, *after))
    ]
    changes.sort(key=lambda change: (-max(change.base_share, change.new_share), change.name))
    return ApiChanges(tuple(changes), *(totals or (None, None)))


def _api_in_steps(base: Side, new: Side) -> tuple[dict[str, EventChange], tuple[int, int] | None]:
    """Return functions per steady step, and the time of all; nothing if a side has no steady steps."""
    if why_not(base, new, "cuda_api", "CUDA API calls", IN_STEPS):
        return {}, None
    before, after = (side.events("cuda_api", group="domain") for side in (base, new))
    changes = {change.name: change for change in changes_by_name(before, after)}
    return changes, (round(total_ns(before.values())), round(total_ns(after.values())))


def api_shares(side: Side) -> dict[str, tuple[str, float]]:
    """Return domain and share of API time by function, over the whole captures of all runs.

    It is empty if no API call was recorded.
    """
    totals: dict[str, tuple[str, int]] = {}
    for report in side.reports:
        for row in rows(grid(report, "cuda_api", "") or Grid((), ())):
            name = str(row["name"])
            totals[name] = str(row["domain"]), totals.get(name, ("", 0))[1] + whole(row["total_ns"])
    everything = sum(total for _, total in totals.values())
    return {name: (domain, total / everything if everything else 0.0) for name, (domain, total) in totals.items()}
