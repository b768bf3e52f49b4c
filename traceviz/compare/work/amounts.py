"""Amounts of work per step on two sides, by the tags of the runs, else by the launches of their kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from traceviz.compare.changes.by_name import compare_kernels, match_kernels
from traceviz.compare.kernel_pairs import Events, How, spelling
from traceviz.compare.sides.by_tags import natural
from traceviz.compare.sides.sides import Side, grid, rows, whole
from traceviz.compare.sides.units_of_work import batch_of
from traceviz.compare.work.ingredients import as_often, ingredients
from traceviz.core.units import format_number, format_ratio
from traceviz.report import BY_SHAPE

ENOUGH = 0.5
"""Smallest share of the base's kernel time in kernels of both sides for them to be evidence."""
MOST = 0.8
"""Share of the time of common kernels from which launches count as different."""
AS_OFTEN = Fraction(3, 2)
"""Factor from which kernels count as called more often per step."""

NEARLY_ALL = 0.95
"""Share of kernel time in kernels of both sides from which steps are the same part of a program, ..."""
EXACTLY = Fraction(11, 10)
"""... if they are called equally often, within this factor. A step has several times the calls of a layer."""

PHASES_APART = 0.05
"""Difference of the shares of steps that read prompts from which engines did different work."""
TOKENS_APART = 1.1
"""Factor between the tokens of a step from which engines did different work."""

Shape = tuple[str, str]
"""Spelling and block of a kernel. With another block it was tuned, and its grid is no evidence."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Batch sizes of the runs of a side: the tag that states them, and its distinct values, small ones first.

    Sizes that hooks recorded have the name of the tag as well.
    """

    tag: str
    values: tuple[str, ...]


def batch(side: Side) -> Batch | None:
    """Return the batch sizes of all runs, by their tags, else by hooks; ``None`` if that of a run is unknown."""
    known = [stated for run in side.reports if (stated := batch_of(run)) is not None]
    if not known or len(known) < len(side.reports):
        return None
    sizes = {value.strip() for _, value in known}
    return Batch(known[0][0], tuple(sorted(sizes, key=natural)))


@dataclass(frozen=True, slots=True)
class Served:
    """Work of serving engines in the steps of a side: share that read prompts, and tokens of the mean step."""

    reading: float
    tokens: float | None

    def differs(self, other: Served) -> bool:
        """Return whether steps of ``other`` do different work."""
        if abs(self.reading - other.reading) > PHASES_APART:
            return True
        if not self.tokens or not other.tokens:
            return False
        return not 1 / TOKENS_APART <= other.tokens / self.tokens <= TOKENS_APART

    def __str__(self) -> str:
        tokens = "" if self.tokens is None else f" and {format_number(self.tokens)} tokens a step"
        return f"prompts in {format_ratio(self.reading)} of steps{tokens}"


def served_work(side: Side) -> Served | None:
    """Return the work of a side's serving engines; ``None`` unless all of its runs are of serving."""
    phases = [rows(next(iter(report.grids("serving")), None)) for report in side.reports]
    if not all(phases) or not phases:
        return None
    every = [row for of_run in phases for row in of_run]
    steps = sum(whole(row["steps"]) for row in every)
    reading = sum(whole(row["steps"]) for row in every if row["phase"] in {"prefill", "mixed"})
    tokens = [row["tokens"] for row in every]
    stated = None if None in tokens else sum(whole(number) for number in tokens) / steps
    return Served(reading / steps, stated)


def other_sizes(base: Side, new: Side) -> float | None:
    """Return the share of the time of common kernels that is in launches of other sizes.

    Each kernel's time on either side is distributed over its grids. The part that the two distributions do not share is
    in other sizes. Kernels weigh by their time on the base.

    Returns:
        ``None`` if less than :data:`ENOUGH` of the base's kernel time is in kernels that both sides launch with the
        same block, or launch shapes were not recorded.
    """
    sides = _launches(base), _launches(new)
    weights = {shape: sum(grids.values()) for shape, grids in sides[0].items()}
    common = {shape: weight for shape, weight in weights.items() if weight and sum(sides[1].get(shape, {}).values())}
    shared = sum(common.values())
    launched = (row for report in base.reports for row in rows(grid(report, "kernels", BY_SHAPE)))
    total = sum(whole(row["total_ns"]) for row in launched)  # with or without a known launch shape
    if not shared or shared < ENOUGH * total:
        return None
    return sum(weight * _apart(sides[0][shape], sides[1][shape]) for shape, weight in common.items()) / shared


def _apart(base: Mapping[str, int], new: Mapping[str, int]) -> float:
    """Return the share of the time that two distributions over grids do not have in common."""
    totals = sum(base.values()), sum(new.values())
    return 1.0 - sum(min(base[size] / totals[0], new[size] / totals[1]) for size in base.keys() & new.keys())


def _launches(side: Side) -> dict[Shape, dict[str, int]]:
    """Return the time by grid of every kernel, over the whole captures of all runs."""
    launches: dict[Shape, dict[str, int]] = {}
    for report in side.reports:
        for row in rows(grid(report, "kernels", BY_SHAPE)):
            if row["grid"] is not None and row["block"] is not None:
                grids = launches.setdefault((spelling(str(row["name"])), str(row["block"])), {})
                grids[str(row["grid"])] = grids.get(str(row["grid"]), 0) + whole(row["total_ns"])
    return launches


def calls_per_step(base: Side, new: Side) -> float | None:
    """Return the factor by which the new side runs common kernels more often per step, if nearly all agree.

    Returns:
        The factor of the kernel in the middle by time; ``None`` if common kernels are called about equally often, or
        have less than :data:`ENOUGH` of the base's kernel time.
    """
    before, factors = base.kernels, _factors(base, new)
    total = sum((event.ns for event in before.values()), Fraction(0))
    shared = sum((before[name].ns for _, name in factors), Fraction(0))
    if not shared or shared < ENOUGH * total:
        return None
    others = sum((before[name].ns for factor, name in factors if not 1 / AS_OFTEN < factor < AS_OFTEN), Fraction(0))
    return _middle(factors, before) if others > MOST * shared else None


def same_kernels_per_step(base: Side, new: Side) -> bool:
    """Return whether both sides have nearly the same kernels, and call them equally often per step."""
    before, common = base.kernels, compare_kernels(base, new).common
    as_often_as_there = (name for factor, name in _factors(base, new) if 1 / EXACTLY <= factor <= EXACTLY)
    time = sum((before[name].ns for name in as_often_as_there), Fraction(0))
    total = sum((event.ns for event in before.values()), Fraction(0))
    return common is not None and common >= NEARLY_ALL and total > 0 and time >= NEARLY_ALL * total


def _factors(base: Side, new: Side) -> list[tuple[Fraction, str]]:
    """Return the factor of calls per step, new over base, for each common kernel; the smallest first."""
    before, after = base.kernels, new.kernels
    pairs = [
        (match.base[0], match.new[0])
        for match in match_kernels(base, new)
        if match.how <= How.SPELLING and len(match.base) == len(match.new) == 1 and before[match.base[0]].calls
    ]
    return sorted((after[new_name].calls * new.per / (before[name].calls * base.per), name) for name, new_name in pairs)


def operators_per_step(base: Side, new: Side) -> float | None:
    """Return the factor of calls of every operator per step, new over base; ``None`` if calls are equal."""
    before, after = (ingredients(side).get("operators") for side in (base, new))
    return as_often(before, after) if before and after else None


def _middle(factors: list[tuple[Fraction, str]], events: Events) -> float:
    """Return the factor at the middle of the time."""
    left = sum((events[name].ns for _, name in factors), Fraction(0)) / 2
    for factor, name in factors:
        left -= events[name].ns
        if left <= 0:
            return float(factor)
    return float(factors[-1][0])
