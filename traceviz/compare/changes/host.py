"""Figures of the host while the programs ran, on both sides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from traceviz.compare.changes.figures import FigureChange, Figures, add_figure, figure_changes, metric_rows
from traceviz.compare.changes.recorded import why_not
from traceviz.compare.sides.sides import Side
from traceviz.core.units import Unit


@dataclass(frozen=True, slots=True)
class HostChanges:
    """Figures of the host, in the order of the report: the facts, and mean and maximum of every metric."""

    changes: tuple[FigureChange, ...] = ()
    why_not: str = ""

    @property
    def notable(self) -> tuple[FigureChange, ...]:
        """Figures worth showing. Equal figures (cores, memory of the machine) are excluded."""
        return tuple(filter(_is_notable, self.changes))


def compare_host(base: Side, new: Side) -> HostChanges:
    """Compare CPU, memory, threads, storage and GPUs while the programs ran."""
    if why := why_not(base, new, "host", "host resources"):
        return HostChanges(why_not=why)
    return HostChanges(figure_changes(map(_host_figures, (base, new))))


def _is_notable(figure: FigureChange) -> bool:
    """Return whether a figure is worth showing: the program's use of the machine, or a figure that differs."""
    if figure.key in _OF_THE_PROGRAM:
        return True
    if figure.base is None or figure.new is None:
        return figure.base is not figure.new
    return abs(figure.new - figure.base) >= _OTHER * max(abs(figure.base), abs(figure.new)) > 0


_OF_THE_PROGRAM = frozenset({"cpu_mean", "rss_max", "threads_max", "processes_max", "gpu_mean"})
_OTHER = 0.05
"""Smallest difference of other figures, as a share of the larger, that is worth a line."""
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
"""Report unit and factor for each sampled unit. Other units have no factor and stay in the label."""


def _host_figures(side: Side) -> Figures:
    figures: Figures = {}
    for report in side.reports:
        for fact in report.facts("host"):
            if fact.key not in _ABOUT_SAMPLING:
                add_figure(figures, fact.key, fact.label, fact.unit, fact.value)
        for row in metric_rows(report):
            sampled = str(row["unit"])
            unit, factor = _SAMPLED_IN.get(sampled, ("number", 1))
            words = " ".join(filter(None, (str(row["device"] or ""), str(row["metric"]))))
            words += f", {sampled}" if sampled and sampled not in _SAMPLED_IN else ""
            for column, which in (("mean", "mean"), ("max", "most")):
                value = row[column]
                amount = value * factor if isinstance(value, int | float) else None
                add_figure(
                    figures, f"{row['device'] or 'host'}.{row['metric']}.{column}", f"{words}, {which}", unit, amount
                )
    return figures
