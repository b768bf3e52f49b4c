"""Figures of both sides with their units: means over the runs of a side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from traceviz.compare.sides.sides import rows
from traceviz.core.units import Unit, Value
from traceviz.report import Report

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
