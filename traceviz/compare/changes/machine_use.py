"""Use of the machine on both sides: busy and idle time of devices, kernel efficiency, power, figures of the host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from statistics import fmean
from typing import NamedTuple

from traceviz.compare.changes.figures import FigureChange, Figures, add_figure, figure_changes, metric_rows, why_not
from traceviz.compare.sides.sides import Side, fact, rows, whole
from traceviz.core.units import Unit, Value
from traceviz.report import Bars, Report


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
        for one in report.facts("host"):
            if one.key not in _ABOUT_SAMPLING:
                add_figure(figures, one.key, one.label, one.unit, one.value)
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


BUSY, SHORT = "busy", "short_gaps"
"""Parts of device time that are not causes of a gap."""


@dataclass(frozen=True, slots=True)
class DeviceChanges:
    """Use of the devices.

    Args:
        figures: Utilisation, efficiency, power: mean over the runs of a side.
        parts: Busy time, and idle time by cause, as shares of the time from the first to the last device work. They add
            up to it. Empty if a side does not report them.
        why_not: Why nothing can be compared; empty if something can.
    """

    figures: tuple[FigureChange, ...] = ()
    parts: tuple[FigureChange, ...] = ()
    why_not: str = ""


def compare_device_use(base: Side, new: Side) -> DeviceChanges:
    """Compare the figures of both sides. A figure that one side lacks is unknown there, not zero."""
    figures = figure_changes(map(_figures, (base, new)))
    if not any(figure.base is not None and figure.new is not None for figure in figures):
        why = why_not(base, new, "device_use", "work of devices")
        return DeviceChanges(why_not=why or "no figure of the devices is known of both sides")
    sides = [_parts(side) for side in (base, new)]
    parts = figure_changes(sides) if all(sides) else ()
    return DeviceChanges(figures, tuple(map(_with_zero, parts)))


def _with_zero(part: FigureChange) -> FigureChange:
    """Return the part with zero for a side that lacks this cause."""
    return FigureChange(part.key, part.label, part.unit, part.base or 0.0, part.new or 0.0)


class _Figure(NamedTuple):
    slug: str
    key: str
    label: str


_FACTS = (
    _Figure("gpu_efficiency", "sm_efficiency", "est. SM efficiency"),
    _Figure("gpu_efficiency", "occupancy", "est. achieved occupancy"),
    _Figure("gpu_efficiency", "small_grid_share", "kernel time in small grids"),
    _Figure("memory", "used_share", "memory in use, of the capacity"),
    _Figure("device_programs", "compute_share", "computing"),
    _Figure("device_programs", "infeed_share", "waiting for infeed"),
    _Figure("device_programs", "idle_share", "idle"),
)
_JUDGED = "judged_utilisation"
"""Column of the devices: busy in the steady steps, or in the active time of runs without steps."""
_SAMPLED: Mapping[str, tuple[str, str, str, Unit, float]] = {
    "GPU utilisation": ("sampled_utilisation", "busy as sampled, whole run", "mean", "ratio", 0.01),
    "GPU power": ("power_w", "power, W", "mean", "number", 1),
    "SM clock": ("sm_clock", "SM clock, MHz", "mean", "number", 1),
    "GPU memory used": ("memory_bytes", "memory, most", "max", "bytes", 1),
}
"""Sampled metrics of devices: key, label, the column that counts, unit and factor."""


def _figures(side: Side) -> Figures:
    figures: Figures = {}
    for report in side.reports:
        busy_ns, extent_ns = _extent(report)
        share = busy_ns / extent_ns if extent_ns else None
        add_figure(figures, "device_use.utilisation", "busy, from its first to its last work", "ratio", share)
        _add_judged_share(figures, report)
        for slug, key, label in _FACTS:
            add_figure(figures, f"{slug}.{key}", label, "ratio", fact(report, slug, key))
        for key, label, unit, value in _read_sampled(report):
            add_figure(figures, key, label, unit, value)
    return figures


def _extent(report: Report) -> tuple[int, int]:
    """Return busy time, and time from first to last work, summed over the devices.

    Captures may start and end at any point.
    """
    table = [row for row in rows(next(report.grids("device_use"), None)) if row.keys() >= {"busy_ns", "extent_ns"}]
    busy_ns, extent_ns = (sum(whole(row[key]) for row in table) for key in ("busy_ns", "extent_ns"))
    return busy_ns, extent_ns


_OUTSIDE = frozenset({"before_first_work", "after_last_work"})
"""Causes of gaps outside that time."""


def _add_judged_share(figures: Figures, report: Report) -> None:
    """Add the busy share of the judged time, mean over the devices."""
    for grid in report.grids("device_use"):
        label = next((column.label for column in grid.columns if column.name == _JUDGED), "")
        shares = [row[_JUDGED] for row in rows(grid) if label]
        known = [share for share in shares if isinstance(share, int | float)]
        if known:
            words = f"busy, {label[:1].lower()}{label[1:]}"
            add_figure(figures, f"device_use.{_JUDGED}", words, "ratio", fmean(known))


def _read_sampled(report: Report) -> Iterator[tuple[str, str, Unit, Value]]:
    """Yield device metrics while the program ran: mean over the devices, but the sum of all for power."""
    metrics = next(
        (grid for grid in report.grids("host") if grid.columns[:1] and grid.columns[0].name == "metric"), None
    )
    found: dict[str, list[float]] = {}
    for row in rows(metrics):
        if row["metric"] in _SAMPLED:
            value = row[_SAMPLED[str(row["metric"])][2]]
            if isinstance(value, int | float):
                found.setdefault(str(row["metric"]), []).append(float(value))
    for metric, values in found.items():
        key, label, _, unit, factor = _SAMPLED[metric]
        is_sum = key == "power_w"
        yield f"host.{key}", label, unit, (sum(values) if is_sum else fmean(values)) * factor


def _parts(side: Side) -> Figures:
    """Return the time from first to last work by part, as shares.

    Parts are busy, idle by cause, and idle in gaps too short for a cause.
    """
    figures: Figures = {}
    told = [parts for report in side.reports if (parts := _parts_of(report))]
    labels = {key: label for parts in told for key, label, _ in parts}
    for key, label in labels.items():
        shares = [next((share for part, _, share in parts if part == key), 0.0) for parts in told]
        add_figure(figures, key, label, "ratio", fmean(shares))
    return figures


def _parts_of(report: Report) -> Sequence[tuple[str, str, float]]:
    busy_ns, extent_ns = _extent(report)
    gaps = next((block for block in report.blocks("idle_gaps") if isinstance(block, Bars)), None)
    if gaps is None or not extent_ns:
        return ()
    causes = [
        (bar.key, _cause(bar.label), whole(bar.value) / extent_ns) for bar in gaps.bars if bar.key not in _OUTSIDE
    ]
    busy = busy_ns / extent_ns
    rest = max(1 - busy - fsum(share for _, _, share in causes), 0.0)
    ordered = sorted(causes, key=lambda part: -part[2])
    return ((BUSY, "busy", busy), *ordered, (SHORT, "idle, in shorter gaps", rest))


def _cause(label: str) -> str:
    """Return ``idle: input wait`` for ``input wait (32)``, which includes the number of gaps."""
    return f"idle: {label.rpartition(' (')[0] or label}"
