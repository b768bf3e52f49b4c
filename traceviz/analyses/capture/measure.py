"""One figure of a whole run, for the section on measures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from traceviz.core.arrays.intervals import Array
from traceviz.core.resampling import quantile_interval
from traceviz.core.units import Unit
from traceviz.report import Better

Key = Literal[
    "total_ns",
    "training_ns",
    "start_ns",
    "first_epoch_ns",
    "epoch_ns",
    "epochs",
    "steps",
    "samples_per_second",
    "latency_p50_ns",
    "latency_p95_ns",
    "latency_p99_ns",
    "energy_j",
    "energy_per_step_j",
    "energy_per_sample_j",
    "host_memory_peak_bytes",
    "device_memory_peak_bytes",
    "cpu_mean",
]
"""Names of measures. They never change their meaning."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Kind of measure: its label for readers, its unit, and the direction of a gain."""

    label: str
    unit: Unit
    better: Better


KINDS: dict[Key, Kind] = {
    "total_ns": Kind("total time", "ns", "lower"),
    "training_ns": Kind("time to the last step", "ns", "lower"),
    "start_ns": Kind("time to the first step", "ns", "lower"),
    "first_epoch_ns": Kind("first epoch", "ns", "lower"),
    "epoch_ns": Kind("epoch", "ns", "lower"),
    "epochs": Kind("epochs", "count", ""),
    "steps": Kind("steps", "count", ""),
    "samples_per_second": Kind("samples per second", "per_second", "higher"),
    "latency_p50_ns": Kind("latency, median", "ns", "lower"),
    "latency_p95_ns": Kind("latency, 95 % below", "ns", "lower"),
    "latency_p99_ns": Kind("latency, 99 % below", "ns", "lower"),
    "energy_j": Kind("energy of devices", "joule", "lower"),
    "energy_per_step_j": Kind("energy per step", "joule", "lower"),
    "energy_per_sample_j": Kind("energy per sample", "joule", "lower"),
    "host_memory_peak_bytes": Kind("memory of the host, most", "bytes", "lower"),
    "device_memory_peak_bytes": Kind("memory of a device, most", "bytes", "lower"),
    "cpu_mean": Kind("busy cores", "number", ""),
}
"""All measures, in the order of the report."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One figure.

    Args:
        key: Key of the measure.
        value: In the base unit of its kind.
        about: Short text on its coverage.
        count: Observations behind it; ``None`` if it is measured once.
        interval: 95 % interval within the run; ``None`` if one run does not show it.
    """

    key: Key
    value: float
    about: str
    count: int | None = None
    interval: tuple[float, float] | None = None

    @property
    def kind(self) -> Kind:
        """Label, unit and direction."""
        return KINDS[self.key]


def quantile(key: Key, times: Array, share: float, about: str) -> Measure:
    """Return a quantile of measured times, ns, as a whole number; with its interval if there are enough of them."""
    interval = quantile_interval(times, share)
    return Measure(key, round(float(np.quantile(times, share))), about, times.size, interval)
