"""Curves below the lanes: samples of processes and devices, memory in use, device utilization."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import polars as pl

from traceviz.analyses.derived.frames import codes
from traceviz.analyses.host.samples import METRICS
from traceviz.core.arrays.nested import alike
from traceviz.pictures.timeline.sources import MACHINE, NOBODY, Making, numbers, starts_of
from traceviz.report.pictures.values import Curve

MOST_POINTS = 1_000
"""Limit of the points of a curve; no screen can show more."""
MOST_OF_ALL = 50_000
"""Limit of the points of all curves of a page."""
MOST_CURVES = 100
"""Limit of the curves of a page; curves that the report shows come first."""
_BASE_UNITS = {"%": (0.01, "ratio"), "1/s": (1.0, "per_second")}
"""Units of samples that change in a page: the factor and the new unit."""
_LABELS = {metric.name: metric.label for metric in METRICS}
_ORDER = {metric.name: place for place, metric in enumerate(METRICS)}

Floats = npt.NDArray[np.float64]


def curves(making: Making, begin: int, end: int) -> tuple[Curve, ...]:
    """Return all curves of a timeline from ``begin`` to ``end``."""
    found = [*_use(making, begin, end), *_memory(making), *_samples(making)][:MOST_CURVES]
    most = min(MOST_POINTS, MOST_OF_ALL // max(len(found), 1))
    return tuple(thinned(curve, most) for curve in found)


def thinned(curve: Curve, most: int) -> Curve:
    """Reduce a curve to ``most`` points: the mean of neighbours, at the time of the first."""
    times, values = curve.times, curve.values
    if times.size <= most:
        return curve
    first = np.arange(most) * times.size // most
    known = np.isfinite(values)
    sums = np.add.reduceat(np.where(known, values, 0.0), first)
    counts = np.add.reduceat(known.astype(np.int64), first)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    return replace(curve, times=times[first], values=means)


def _use(making: Making, begin: int, end: int) -> Iterator[Curve]:
    """Return the busy share of each device, in equal parts of the timeline."""
    edges = np.linspace(begin, end, MOST_POINTS + 1).astype(np.int64)
    edges = np.unique(edges)
    if edges.size < 2:
        return
    for device, busy in making.trace.device_busy.items():
        shares = busy.overlap(edges[:-1], edges[1:]) / np.diff(edges)
        label = f"{making.owners.device(device)} in use"
        yield Curve(f"use-{device}", label, _group_of_device(making, device), "ratio", edges[:-1], shares)


def _group_of_device(making: Making, device: int) -> str:
    """Return the group of the only process that uses the device, else the machine."""
    users = [process for process, used in making.trace.owners if used == device]
    return making.owners.group(users[0]) if len(users) == 1 else MACHINE


def _memory(making: Making) -> Iterator[Curve]:
    """Return memory in use after each allocation and release, as far as the trace records it."""
    columns = ("start_ns", "process_id", "device_id", "pool", "in_use_bytes")
    events = making.trace.frame("memory_events", *columns).drop_nulls("in_use_bytes")
    if not events.height:
        return
    keys = (numbers(events["process_id"]), numbers(events["device_id"], NOBODY), codes(events["pool"]))
    group, first = alike(*(key.astype(np.int32) for key in keys))
    times, values = starts_of(events), events["in_use_bytes"].to_numpy().astype(np.float64)
    for number, row in enumerate(first):
        rows = np.flatnonzero(group == number)
        pool = events["pool"][int(row)]
        where = making.owners.device(int(keys[1][row])) if keys[1][row] >= 0 else "host"
        label = f"{where} memory in use" + (f", {pool}" if pool else "")
        owner = making.owners.group(int(keys[0][row]))
        yield Curve(f"memory-{number}", label, owner, "bytes", times[rows], values[rows])


def _samples(making: Making) -> Iterator[Curve]:
    samples = making.trace.frame("samples", "start_ns", "device_id", "process_id", "metric", "unit", "value")
    if not samples.height:
        return
    keys = (numbers(samples["process_id"], NOBODY), numbers(samples["device_id"], NOBODY), codes(samples["metric"]))
    group, first = alike(*(key.astype(np.int32) for key in keys))
    times = starts_of(samples)
    values = samples["value"].to_numpy().astype(np.float64)  # null becomes NaN: not measured
    texts = samples[["metric", "unit"]][first].with_columns(pl.all().cast(pl.String)).rows()
    order = sorted(range(len(texts)), key=lambda number: (_ORDER.get(texts[number][0], len(_ORDER)), number))
    for number in order:
        (metric, unit), row = texts[number], int(first[number])
        rows = np.flatnonzero(group == number)
        process, device = int(keys[0][row]), int(keys[1][row])
        label = _LABELS.get(metric, metric)
        label = f"{making.owners.device(device)} {label}" if device >= 0 else label
        scale, base = _BASE_UNITS.get(unit, (1.0, unit))
        owner = making.owners.group(process) if process >= 0 or device < 0 else _group_of_device(making, device)
        yield Curve(f"sample-{number}", label, owner, base, times[rows], values[rows] * scale)
