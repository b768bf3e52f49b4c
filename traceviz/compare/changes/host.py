"""Figures of the host while the programs ran, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from traceviz.compare.changes.recorded import why_not
from traceviz.compare.sides.sides import Side, rows
from traceviz.units import Unit, Value


@dataclass(frozen=True, slots=True)
class HostChange:
    """A figure of the host: mean over the runs of a side; ``None`` where no run has it."""

    key: str
    label: str
    unit: Unit
    base: float | None
    new: float | None

    @property
    def ratio(self) -> float | None:
        """The difference as a share of the base; ``None`` where a side has none, or the base is zero."""
        if self.base is None or self.new is None or not self.base:
            return None
        return (self.new - self.base) / self.base

    @property
    def is_notable(self) -> bool:
        """Whether people want to see it: use of the machine by the program, and other figures that differ."""
        if self.key in _OF_THE_PROGRAM:
            return True
        if self.base is None or self.new is None:
            return self.base is not self.new
        return abs(self.new - self.base) >= _OTHER * max(abs(self.base), abs(self.new)) > 0


@dataclass(frozen=True, slots=True)
class HostChanges:
    """Figures of the host, in the order of the report: the facts, and mean and maximum of every metric."""

    changes: tuple[HostChange, ...] = ()
    why_not: str = ""

    @property
    def notable(self) -> tuple[HostChange, ...]:
        """Figures that people want to see. Those equal on both sides (cores, memory of the machine) are left out."""
        return tuple(change for change in self.changes if change.is_notable)


def compare_host(base: Side, new: Side) -> HostChanges:
    """CPU, memory, threads, storage and GPUs while the programs ran."""
    if why := why_not(base, new, "host", "host resources"):
        return HostChanges(why_not=why)
    sides = [_host_figures(side) for side in (base, new)]
    known = {key: words for figures in reversed(sides) for key, (words, _) in figures.items()}
    order = dict.fromkeys(key for figures in sides for key in figures)
    return HostChanges(tuple(HostChange(key, *known[key], *(_mean(side.get(key)) for side in sides)) for key in order))


Figures = dict[str, tuple[tuple[str, Unit], list[float]]]
"""Label, unit and the value in every run, by key."""

_OF_THE_PROGRAM = frozenset({"cpu_mean", "rss_max", "threads_max", "processes_max", "gpu_mean"})
_OTHER = 0.05
"""Other figures are worth a line from this difference on, as a share of the larger."""
_ABOUT_SAMPLING = frozenset(
    {"samples", "sample_interval_ns", "longest_interval_ns", "sampler_cost", "sampler_start_ns"}
)
"""Figures about the sampler, not the program."""
_SAMPLED_IN: Mapping[str, tuple[Unit, float]] = {
    "%": ("ratio", 0.01),
    "bytes": ("bytes", 1),
    "bytes/s": ("bytes/s", 1),
    "count": ("count", 1),
}
"""Unit of the report and factor for what metrics are sampled in; other units have no factor and stay in the label."""


def _host_figures(side: Side) -> Figures:
    figures: Figures = {}
    for report in side.reports:
        for fact in report.facts("host"):
            if fact.key not in _ABOUT_SAMPLING:
                _add(figures, fact.key, fact.label, fact.unit, fact.value)
        metrics = (grid for grid in report.grids("host") if grid.columns[:1] and grid.columns[0].name == "metric")
        for row in rows(next(metrics, None)):
            _add_metric(figures, row)
    return figures


def _add_metric(figures: Figures, row: Mapping[str, Value]) -> None:
    sampled = str(row["unit"])
    unit, factor = _SAMPLED_IN.get(sampled, ("number", 1))
    words = " ".join(filter(None, (str(row["device"] or ""), str(row["metric"]))))
    words += f", {sampled}" if sampled and sampled not in _SAMPLED_IN else ""
    for column, which in (("mean", "mean"), ("max", "most")):
        value = row[column]
        amount = value * factor if isinstance(value, int | float) else None
        _add(figures, f"{row['device'] or 'host'}.{row['metric']}.{column}", f"{words}, {which}", unit, amount)


def _add(figures: Figures, key: str, label: str, unit: Unit, value: Value) -> None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        figures.setdefault(key, ((label, unit), []))[1].append(float(value))


def _mean(figure: tuple[tuple[str, Unit], list[float]] | None) -> float | None:
    return sum(figure[1]) / len(figure[1]) if figure else None
