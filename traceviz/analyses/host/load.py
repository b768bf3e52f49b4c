"""The judged time in figures: busy cores, threads that want one, growing memory, and waits of the steps.

The figures are one frozen value, from which the findings about the host follow.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from traceviz.analyses.derived.frames import end_ns, having, intervals
from traceviz.analyses.derived.host.classes import class_times
from traceviz.analyses.derived.judged_time import steady_time
from traceviz.analyses.derived.steps.search import training_steps
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.host import samples as host_samples
from traceviz.analyses.host.samples import Machine, Series
from traceviz.core.arrays.intervals import IntervalSet

GROWTH_PARTS = 10
"""Number of parts of the time. Growth is judged by the least memory in each part."""


@dataclass(frozen=True, slots=True)
class StepUse:
    """Time of steady steps spent on the host, in nanoseconds over all of them; 0 without steps.

    Args:
        step_ns: Steady step time.
        input_ns: The part of it that waits for input while no device works.
        host_ns: The part of it that is host compute: Python and the framework while no device works.
        on_host: True if no device works at all, so that the host computes the steps.
        mean_step_ns: Mean duration of a steady step.
    """

    step_ns: int = 0
    input_ns: int = 0
    host_ns: int = 0
    on_host: bool = False
    mean_step_ns: float = 0.0

    @property
    def bound_share(self) -> float:
        """Share of the step time in which the steps wait for the host."""
        return (self.input_ns + self.host_ns) / self.step_ns if self.step_ns else 0.0


@dataclass(frozen=True, slots=True)
class Growth:
    """Rise of the program's memory while it trained.

    Args:
        total_bytes: From the first part of the time to the last.
        per_second: Mean rise per second.
        per_step: Mean rise per steady step; ``None`` without steps.
        highest_bytes: Memory in the last part.
    """

    total_bytes: int
    per_second: float
    per_step: int | None
    highest_bytes: int


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Other programs on the machine while the program ran, on average.

    Args:
        busy_cores: Cores that they used.
        cores: Cores of the machine.
        runnable: Their threads that wanted a core; ``None`` if it is not known.
        waiting_share: Share of its runnable time in which a thread of the program waited for a core.
        words: Text that names the time of these means.
    """

    busy_cores: float
    cores: int
    runnable: float | None
    waiting_share: float | None
    words: str


@dataclass(frozen=True, slots=True)
class HostLoad:
    """The judged time in figures; ``None`` means not measured.

    Args:
        machine: Resources of the machine.
        steps: Time of the steps on the host.
        window_ns: Length of the judged time.
        samples: Samples of the program's CPU time in it, or the nearest ones.
        threads_sampled: Samples of the program's threads in it.
        busy_cores: Mean of the program's CPU time, in cores.
        busiest_thread: Mean share of the time in which the busiest thread ran.
        runnable: Threads that ran or wanted to, on average.
        queued_cores: Threads that waited for a core, on average.
        others_runnable: Runnable threads of other programs, on average.
        machine_busy: Mean number of busy cores of the machine, for all programs.
        read_rate: Mean bytes per second from storage.
        throttled: Mean time that a CPU limit held threads back, as a share of one core.
        threads_max: Most threads that the program had at once, in the whole run.
        gpu_share: Mean utilisation of the GPUs that worked at all.
        growth: Growth of memory; ``None`` if it did not grow, or not steadily.
        neighbours: Other programs on the machine; ``None`` if they are not known.
    """

    machine: Machine = field(default_factory=Machine)
    steps: StepUse = field(default_factory=StepUse)
    window_ns: int = 0
    samples: int = 0
    threads_sampled: int = 0
    busy_cores: float | None = None
    busiest_thread: float | None = None
    runnable: float | None = None
    queued_cores: float | None = None
    others_runnable: float | None = None
    machine_busy: float | None = None
    read_rate: float | None = None
    throttled: float | None = None
    threads_max: int | None = None
    gpu_share: float | None = None
    growth: Growth | None = None
    neighbours: Neighbours | None = None

    @property
    def judged_words(self) -> str:
        """Text that names the time of the means."""
        return "steady steps" if self.steps.step_ns else "whole run"

    @property
    def idle_cores(self) -> float | None:
        """Mean number of cores that were not used and that the program could use in addition."""
        best, cores = self.machine.full_speed, self.machine.cores
        if best is None or self.busy_cores is None:
            return None
        left = best - self.busy_cores
        unused = left if cores is None or self.machine_busy is None else cores - self.machine_busy
        return max(min(left, unused), 0.0)

    @property
    def waiting_share(self) -> float | None:
        """Share of its runnable time in which a thread of the program waited for a core."""
        if self.runnable is None or self.queued_cores is None:
            return None
        return min(self.queued_cores / self.runnable, 1.0) if self.runnable else None

    @property
    def wanted(self) -> float | None:
        """Mean number of cores that the program's own threads want, without waits caused by other programs.

        A ready thread waits for all threads that are before it in the queue. So the waiting threads count by the
        program's share of all threads that want a core. On a machine of its own, the rest would have run and slept
        again.
        """
        own, others, cores = self.runnable, self.others_runnable, self.machine.cores
        if not own or others is None or cores is None:
            return own
        competing = min(max(own + others - cores, 0.0), others)
        share = own / (own + competing)
        queued = max(own - cores * share, 0.0) if self.queued_cores is None else min(self.queued_cores, own)
        return own - queued * (1 - share)


def host_load(trace: TraceView, series: Iterable[Series], machine: Machine, growth_share: float) -> HostLoad:
    """Return figures of the judged time.

    Args:
        trace: The trace.
        series: The sampled metrics.
        machine: Resources of the machine.
        growth_share: Memory grows if it rises from one part of the time to the next in this share of the parts.
    """
    window = host_samples.judged_window(trace)
    of_host = {item.metric.name: item for item in series if item.device_id is None}
    inside = {name: item.within(window) for name, item in of_host.items()}
    means = {name: float(values.mean()) for name, values in inside.items() if values.size}
    cpu, threads = inside.get(host_samples.PROGRAM_CPU), of_host.get(host_samples.PROGRAM_THREADS)
    steps, steady = StepUse(), training_steps(trace).steady
    if steady_time(trace):
        times = class_times(trace, steady_time(trace))
        steps = StepUse(
            step_ns=sum(times.values()),
            input_ns=times["input_wait"],
            host_ns=times["host_compute"],
            on_host=not trace.rank_busy and not trace.has_device_tables,
            mean_step_ns=float((steady["end_ns"] - steady["start_ns"]).to_numpy().mean()),
        )
    ran = of_host.get(host_samples.RUNNABLE)
    gpus = [item.within(window) for item in series if item.metric.name == host_samples.GPU_UTILISATION]
    return HostLoad(
        machine=machine,
        steps=steps,
        window_ns=window[1] - window[0],
        samples=0 if cpu is None else int(cpu.size),
        threads_sampled=0 if ran is None else ran.inside(window),
        busy_cores=_percent(means.get(host_samples.PROGRAM_CPU)),
        busiest_thread=_percent(means.get(host_samples.BUSIEST_THREAD)),
        runnable=means.get(host_samples.RUNNABLE),
        queued_cores=_percent(means.get(host_samples.QUEUED)),
        others_runnable=_others(of_host, window),
        machine_busy=_percent(means.get(host_samples.MACHINE_CPU)),
        read_rate=means.get(host_samples.PROGRAM_READ),
        throttled=_percent(means.get(host_samples.THROTTLED)),
        threads_max=None if threads is None else round(float(threads.values.max())),
        gpu_share=_percent(max((float(values.mean()) for values in gpus if values.any()), default=None)),
        growth=_growth(of_host, window[0] if steady_time(trace) else None, steps, growth_share, _recording_time(trace)),
        neighbours=_neighbours(of_host, window, machine, "steady steps" if steps.step_ns else "whole run"),
    )


START_NS, START_SHARE = 10_000_000_000, 0.25
"""Without steps, this much of the run counts as start-up, in which memory grows anyway."""
LEAST_NS = 10_000_000_000
"""Least time for a judgement on growth."""


def _training(memory: Series, first_step_ns: int | None) -> tuple[int, int]:
    """Return the time from the first steady step to the end of the run, since the sampler sees all steps.

    A program that exits returns its memory, and the last samples may show that. So the end is the moment with most
    memory in the last tenth of the time.
    """
    first, last = int(memory.times[0]), int(memory.times[-1])
    late = np.flatnonzero(memory.times >= last - (last - first) // GROWTH_PARTS)
    last = int(memory.times[late[-1 - np.argmax(memory.values[late][::-1])]])
    if first_step_ns is not None:
        return first_step_ns, last
    return first + max(START_NS, round(START_SHARE * (last - first))), last


def _percent(value: float | None) -> float | None:
    return None if value is None else value / 100


def _others(of_host: dict[str, Series], window: tuple[int, int]) -> float | None:
    """Return runnable threads of other programs: the machine's minus the program's, over the same samples."""
    everybody, own = of_host.get(host_samples.MACHINE_RUNNABLE), of_host.get(host_samples.RUNNABLE)
    if everybody is None or own is None:
        return None
    rows = np.flatnonzero(own.mask(window))
    if not rows.size:
        return None
    begin = int(own.times[max(int(rows[0]) - 1, 0)])
    inside = (everybody.times > begin) & (everybody.times <= int(own.times[rows[-1]]))
    if not inside.any():
        return None
    return max(float(everybody.values[inside].mean()) - float(own.values[rows].mean()), 0.0)


def _neighbours(of_host: dict[str, Series], window: tuple[int, int], machine: Machine, words: str) -> Neighbours | None:
    """Return other programs in the judged time, or in the whole run if too few samples lie in it."""
    own, everybody = of_host.get(host_samples.PROGRAM_CPU), of_host.get(host_samples.MACHINE_CPU)
    if own is None or everybody is None or machine.cores is None:
        return None
    if min(own.inside(window), everybody.inside(window)) < LEAST_SAMPLES:
        window, words = (int(own.times[0]) - 1, int(own.times[-1])), "whole run"
    means = {name: series.mean(window) for name, series in of_host.items()}
    used, by_all = means[host_samples.PROGRAM_CPU], means[host_samples.MACHINE_CPU]
    if used is None or by_all is None:
        return None
    queued, runnable = means.get(host_samples.QUEUED), means.get(host_samples.RUNNABLE)
    return Neighbours(
        busy_cores=max(by_all - used - (means.get(host_samples.PROFILER_CPU) or 0.0), 0.0) / 100,
        cores=machine.cores,
        runnable=_others(of_host, window),
        waiting_share=min(queued / 100 / runnable, 1.0) if queued is not None and runnable else None,
        words=words,
    )


LEAST_SAMPLES = 10
"""Least number of samples for figures of a time."""


def _recording_time(trace: TraceView) -> IntervalSet:
    """Return the time in which a profiler in the program records or saves, and takes memory of the program for that."""
    windows = trace.frame("windows", "start_ns", end_ns(), pl.col("source").cast(pl.String)).drop_nulls()
    phases = trace.frame("phases", "start_ns", end_ns(), pl.col("kind").cast(pl.String)).drop_nulls()
    return intervals(windows.filter(pl.col("source").is_in(_IN_PROGRAM))).union(
        intervals(having(phases, "kind", "recording"))
    )


_IN_PROGRAM = ("torch", "tensorflow", "jax")
"""Profilers that keep their events in the memory of the program."""


def _without_growth(memory: Series, recording: IntervalSet) -> Series:
    """Return ``memory`` without its changes between samples if one of the two lies in ``recording``."""
    is_recording = recording.overlap(memory.times[:-1], memory.times[1:]) > 0
    changes = np.where(is_recording, 0.0, np.diff(memory.values))
    return replace(memory, values=memory.values[0] + np.concatenate([[0.0], np.cumsum(changes)]))


def _growth(
    of_host: dict[str, Series],
    first_step_ns: int | None,
    steps: StepUse,
    share: float,
    recording: IntervalSet,
) -> Growth | None:
    """Return growth of the program's memory, if the least memory of each part of the training keeps rising.

    The least counts, because memory that a step takes and returns is no growth. There must be no more processes at the
    end than at the start, because new processes explain growth.
    """
    memory, processes = of_host.get(host_samples.PROGRAM_MEMORY), of_host.get(host_samples.PROGRAM_PROCESSES)
    if memory is None:
        return None
    window = _training(memory, first_step_ns)
    memory = _without_growth(memory, recording)
    least = _least(memory, window)
    started = _least(processes, window) if processes is not None else None
    if least is None or (started is not None and started[-1] > started[0]):
        return None
    rises = np.diff(least)
    total, later = float(least[-1] - least[0]), float(least[-1] - least[GROWTH_PARTS // 2 - 1])
    if (rises > 0).mean() < share or later < total / 3:
        return None
    per_ns = total / ((window[1] - window[0]) * (GROWTH_PARTS - 1) / GROWTH_PARTS)
    per_step = round(per_ns * steps.mean_step_ns) if steps.mean_step_ns else None
    return Growth(round(total), per_ns * 1e9, per_step, round(float(least[-1])))


def _least(series: Series, window: tuple[int, int]) -> host_samples.Floats | None:
    """Return the least value in each part of the window; ``None`` if a part has no sample."""
    first, last = window
    if last - first < LEAST_NS:
        return None
    inside = (series.times >= first) & (series.times <= last)
    times, values = series.times[inside] - first, series.values[inside]
    part = np.minimum(times * GROWTH_PARTS // (last - first), GROWTH_PARTS - 1)
    least = np.full(GROWTH_PARTS, np.inf)
    np.minimum.at(least, part, values)
    return least if np.isfinite(least).all() else None
