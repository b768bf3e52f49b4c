"""Measures of the run's use of the machine: energy, memory, cores."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from traceviz.analyses.capture.measure import Measure
from traceviz.analyses.capture.times import Batch
from traceviz.analyses.derived.frames import having
from traceviz.analyses.derived.run_parts.main_process import main_process
from traceviz.analyses.derived.run_parts.run_steps import RunSteps, run_steps
from traceviz.analyses.derived.view import TraceView
from traceviz.core.arrays.intervals import Array
from traceviz.core.units import counted, format_ns

POWER, MEMORY, DEVICE_MEMORY, CPU = "GPU power", "program memory", "GPU memory used", "program CPU"
"""Metrics of table ``samples``: watts, bytes, bytes, percent of a core."""
SLACK_NS = 2_000_000_000
"""Power samples cover a time if they reach this close to both of its ends."""
SLACK = 0.05
"""The same limit for long times, as a part of the time."""
FEWEST_SAMPLES = 3


def measures_of_use(trace: TraceView, batch: Batch | None) -> Iterator[Measure]:
    """Yield the energy of the devices while the program trained, and the highest memory.

    Args:
        trace: The trace.
        batch: Samples of a step.
    """
    yield from _energy(trace, run_steps(trace), batch)
    columns = ("start_ns", "device_id", pl.col("metric").cast(pl.String), "value")
    samples = trace.frame("samples", *columns).filter(pl.col("value").is_finite())
    memory = having(samples, "metric", MEMORY)["value"]
    if memory.len():
        about = "all its processes, sampled"
        yield Measure("host_memory_peak_bytes", round(memory.max()), about, memory.len())  # type: ignore[arg-type]
    # The most that a framework's allocator gave, else the most that was taken of a device.
    pools = trace.frame("memory_events", "device_id", "in_use_bytes", "peak_bytes")
    pools = pools.filter(pl.col("device_id").is_not_null())
    highest = max(int(pools[name].max() or 0) for name in ("in_use_bytes", "peak_bytes"))  # type: ignore[arg-type]
    sampled = having(samples, "metric", DEVICE_MEMORY)["value"]
    if highest:
        yield Measure("device_memory_peak_bytes", highest, "of the framework's allocator, profiled")
    elif sampled.len():
        about = "by all programs, sampled"
        yield Measure("device_memory_peak_bytes", round(sampled.max()), about, sampled.len())  # type: ignore[arg-type]
    cpu = having(samples, "metric", CPU)["value"]
    if cpu.len():
        mean = float(cpu.mean()) / 100  # type: ignore[arg-type]
        yield Measure("cpu_mean", mean, "mean over the run", cpu.len())


def _energy(trace: TraceView, steps: RunSteps | None, batch: Batch | None) -> Iterator[Measure]:
    """Yield joules from the first step to the last, else over the run, as integrals of each device's power samples."""
    if not trace.tables.rows("samples"):
        return
    main = main_process(trace)
    if steps is not None:
        window, of = (steps.begin_ns, steps.end_ns), ", first step to last"
    else:
        window, of = (0, trace.span_ns) if main is None else (main.begin_ns, main.end_ns), " of the run"
    samples = trace.frame("samples", "start_ns", "device_id", pl.col("metric").cast(pl.String), "value")
    power = samples.filter((pl.col("metric") == POWER) & pl.col("device_id").is_not_null()).sort("start_ns")
    used = power.filter(pl.col("device_id").is_in(list(trace.device_busy)))
    series = (used if used.height else power).partition_by("device_id", maintain_order=True)
    joules = [_integral(own["start_ns"].to_numpy(), own["value"].to_numpy(), window) for own in series]
    known = [joule for joule in joules if joule is not None]
    if not known or len(known) < len(joules):
        return
    total = sum(known)
    observed = sum(own.height for own in series)
    words = f"{counted(len(known), 'device')}, {format_ns(window[1] - window[0])}{of}"
    yield Measure("energy_j", total, words, observed)
    if steps is not None and steps.count:
        yield Measure("energy_per_step_j", total / steps.count, words, observed)
        if batch is not None:
            yield Measure("energy_per_sample_j", total / steps.count / batch.size, f"{words}, {batch.about}", observed)


def _integral(times: Array, watts: Array, window: tuple[int, int]) -> float | None:
    """Return energy over a time in joules, by trapezoids; ``None`` if the samples do not cover it."""
    begin, end = window
    slack = max(SLACK_NS, SLACK * (end - begin))
    near = (times >= begin - slack) & (times <= end + slack) & np.isfinite(watts)
    times, watts = times[near], watts[near]
    if times.size < FEWEST_SAMPLES or times[0] > begin + slack or times[-1] < end - slack or end <= begin:
        return None
    inside = np.concatenate([[begin], times[(times > begin) & (times < end)], [end]])
    levels = np.interp(inside, times, watts)
    return float((levels[1:] + levels[:-1]) @ np.diff(inside) / 2 / 1e9)
