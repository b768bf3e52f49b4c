"""Figures of both sides with their units (means over the runs of a side), and why events cannot be compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from traceviz.compare.sides.sides import Side, grid, rows
from traceviz.core.units import Unit, Value
from traceviz.report import Report


def why_not(base: Side, new: Side, slug: str, events: str, title: str = "") -> str:
    """Return why a section cannot be compared; empty if it can.

    Args:
        base: One side.
        new: The other.
        slug: The section.
        events: Text for the events of the section.
        title: Its grid of steady steps, if that is needed.
    """
    missing = {side.label: why for side in (base, new) if (why := _missing(side, slug, events))}
    if len(missing) == 2 and len(set(missing.values())) == 1:
        return f"neither {base.label} nor {new.label} recorded {events}{_because(base, slug)}"
    if missing:
        return "; ".join(f"{label} {why}" for label, why in missing.items())
    if not title:
        return ""
    if not (base.steps and new.steps):
        return no_steps(base, new)
    older = [side.label for side in (base, new) if any(grid(report, slug, title) is None for report in side.reports)]
    why = f"the report of {' and '.join(older)} does not tell of {events} per step: make it again from the trace"
    return why if older else ""


def _missing(side: Side, slug: str, events: str) -> str:
    """Return that a side did not record a section, with the stated reason; empty if it did."""
    count = len(_without(side, slug))
    if side.reports and not count:
        return ""
    of_runs = f" in {count} of its {len(side.reports)} runs" if count < len(side.reports) else ""
    return f"did not record {events}{of_runs}{_because(side, slug)}"


def _without(side: Side, slug: str) -> list[Report]:
    return [report for report in side.reports if all(section.slug != slug for section in report.sections)]


def _because(side: Side, slug: str) -> str:
    """Return the reasons that the reports of a side give, in brackets."""
    skipped = (skip for report in _without(side, slug) for skip in report.skipped)
    reasons = dict.fromkeys(skip.reason for skip in skipped if skip.slug == slug)
    return f" ({'; '.join(reasons)})" if reasons else ""


def no_steps(base: Side, new: Side) -> str:
    """Return that sides have no steady steps, with their labels."""
    without = " and ".join(side.label for side in (base, new) if not side.steps)
    return f"no steady steps in {without}, and so nothing per step"


Words = tuple[str, Unit]
"""Label and unit of a figure."""
Figures = dict[str, tuple[Words, list[float]]]
"""Label, unit and the value in every run, by key."""


@dataclass(frozen=True, slots=True)
class FigureChange:
    """A figure: mean over the runs of a side; ``None`` if no run has it."""

    key: str
    label: str
    unit: Unit
    base: float | None
    new: float | None

    @property
    def ratio(self) -> float | None:
        """The difference as a share of the base; ``None`` if a side has none, or the base is zero."""
        if self.base is None or self.new is None or not self.base:
            return None
        return (self.new - self.base) / self.base


def add_figure(figures: Figures, key: str, label: str, unit: Unit, value: Value) -> None:
    """Add the value of a run; ignore values that are not numbers."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        figures.setdefault(key, ((label, unit), []))[1].append(float(value))


def figure_changes(sides: Iterable[Figures]) -> tuple[FigureChange, ...]:
    """Return figures of the base and the new side, in their order. The base's labels take precedence."""
    both = list(sides)
    known = {key: words for figures in reversed(both) for key, (words, _) in figures.items()}
    order = dict.fromkeys(key for figures in both for key in figures)
    return tuple(FigureChange(key, *known[key], *(_mean(figures, key) for figures in both)) for key in order)


def _mean(figures: Mapping[str, tuple[Words, list[float]]], key: str) -> float | None:
    values = figures[key][1] if key in figures else []
    return sum(values) / len(values) if values else None


def metric_rows(report: Report) -> list[dict[str, Value]]:
    """Return a row for every sampled metric, in its sampled unit; empty if none was sampled."""
    tables = (grid for grid in report.grids("host") if grid.columns[:1] and grid.columns[0].name == "metric")
    return rows(next(tables, None))
