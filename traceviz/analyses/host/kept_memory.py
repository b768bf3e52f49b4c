"""Memory that a process keeps from one training to the next, as Keras does until its session is cleared."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import polars as pl

from traceviz.analyses.base import finding, known
from traceviz.analyses.derived.run_parts.main_process import main_process
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.host.samples import PROGRAM_MEMORY, PROGRAM_PROCESSES, Series
from traceviz.core.units import counted, format_value
from traceviz.report import Fact, Finding

LEAST_TRAININGS = 4
"""The first training allocates memory that all use. Between the three after it, memory has two chances to fall."""
NEAR_NS = 5_000_000_000
"""Samples further from the start of a training do not represent it."""
LEAST_BYTES, LEAST_SHARE = 64 << 20, 0.05
"""Memory grows if it rises by this much, and by this share of its last amount."""


@dataclass(frozen=True, slots=True)
class KeptMemory:
    """Memory of the program at the start of each of its trainings, in bytes, from the second training on."""

    amounts: tuple[int, ...]
    trainings: int
    name: str

    @property
    def growth(self) -> int:
        """Rise from the second training to the last."""
        return self.amounts[-1] - self.amounts[0]

    @property
    def each(self) -> int:
        """Mean rise with every training."""
        return round(self.growth / (len(self.amounts) - 1))


def kept_memory(trace: TraceView, series: Iterable[Series]) -> KeptMemory | None:
    """Return the memory at each training; ``None`` if it falls between any two, or is not known."""
    of_host = {item.metric.name: item for item in series if item.device_id is None}
    memory, processes = of_host.get(PROGRAM_MEMORY), of_host.get(PROGRAM_PROCESSES)
    main = main_process(trace)
    if memory is None or main is None:
        return None
    columns = ("start_ns", "process_id", pl.col("kind", "name").cast(pl.String))
    phases = trace.frame("phases", *columns)
    trainings = phases.filter((pl.col("process_id") == main.process_id) & (pl.col("kind") == "train")).sort("start_ns")
    if trainings.height < LEAST_TRAININGS:
        return None
    starts = trainings["start_ns"].to_numpy()[1:]
    amounts = _at(memory, starts)
    counts = None if processes is None else _at(processes, starts)
    if amounts is None or (counts is not None and counts[-1] > counts[0]) or (np.diff(amounts) <= 0).any():
        return None
    return KeptMemory(tuple(round(amount) for amount in amounts), trainings.height, str(trainings["name"][0]))


def _at(series: Series, moments: np.ndarray) -> list[float] | None:
    """Return the last sample before each moment, else the first after it; ``None`` if any has no sample near."""
    place = np.clip(np.searchsorted(series.times, moments, side="right") - 1, 0, series.times.size - 1)
    if (np.abs(series.times[place] - moments) > NEAR_NS).any():
        return None
    return [float(value) for value in series.values[place]]


def memory_finding(kept: KeptMemory | None) -> Finding | None:
    """Return TV620 if memory rises from training to training."""
    if kept is None or kept.growth < LEAST_BYTES or kept.growth < LEAST_SHARE * kept.amounts[-1]:
        return None
    first, last = (format_value(kept.amounts[at], "bytes") for at in (0, -1))
    message = (
        f"Memory is kept from one training to the next: it rises from {first} to {last} over "
        f"{counted(kept.trainings, 'training')} in one process, {format_value(kept.each, 'bytes')} with each."
    )
    facts = (
        Fact("trainings", "trainings in the process", kept.trainings, "count"),
        Fact("growth_bytes", "growth from the second on", kept.growth, "bytes"),
        Fact("growth_each", "with every training", kept.each, "bytes"),
        Fact("memory_bytes", "memory as the last began", kept.amounts[-1], "bytes"),
        Fact("name", "trainings seen in", kept.name),
    )
    return finding("TV620", message, known(facts), 0, 0, "")
