"""The measurements of the resource sampler: every name and unit that it writes, in one list.

Amounts of CPU time are in percent of one core: 250 % is two and a half cores. Names of GPU measurements are those that
other traces use.
"""

from __future__ import annotations

from typing import NamedTuple


class Metric(NamedTuple):
    """A name for people and programs, and the unit of its values."""

    name: str
    unit: str


class Reading(NamedTuple):
    """One value; of the process ``pid`` or the GPU number ``gpu``, or of the whole machine if both are ``None``."""

    metric: Metric
    value: float
    pid: int | None = None
    gpu: int | None = None


PROGRAM_CPU = Metric("program CPU", "%")
"""CPU time of the program and all its descendants, including those that have ended."""
PROGRAM_RSS = Metric("program memory", "bytes")
"""Sum of the resident memory of the program's processes; pages that they share count once for each. A process counts
from the second reading on that finds it."""
PROGRAM_THREADS = Metric("program threads", "count")
PROGRAM_PROCESSES = Metric("program processes", "count")
PROGRAM_READ = Metric("program read", "bytes/s")
"""Bytes read from storage; reads from the page cache do not count."""
PROGRAM_WRITE = Metric("program write", "bytes/s")
PROGRAM_RUNNABLE = Metric("program runnable threads", "count")
"""Threads that run or would run if a core were free, on average since the previous reading."""
PROGRAM_BUSIEST_THREAD = Metric("program busiest thread", "%")
PROGRAM_QUEUED = Metric("program waits for a core", "%")
"""Time in which runnable threads had no core, summed over threads: 100 % is one thread that always waits."""
PROGRAM_VOLUNTARY = Metric("program voluntary switches", "1/s")
"""Of threads that were there at both readings or started between them; switches of threads that ended are lost."""
PROGRAM_INVOLUNTARY = Metric("program involuntary switches", "1/s")
PROFILER_CPU = Metric("profiler CPU", "%")
"""CPU time of profiler processes among the program's processes."""

PROCESS_CPU = Metric("process CPU", "%")
PROCESS_RSS = Metric("process memory", "bytes")

MACHINE_CPU = Metric("machine CPU", "%")
MACHINE_BUSIEST_CORE = Metric("machine busiest core", "%")
MACHINE_RUNNABLE = Metric("machine runnable threads", "count")
"""Threads that run or would run, at the moment; without the sampler."""
MACHINE_AVAILABLE = Metric("machine memory available", "bytes")
MACHINE_THROTTLED = Metric("CPU limit throttles", "%")
"""Time in which the limit of the container held a thread back, summed over cores."""

GPU_UTILISATION = Metric("GPU utilisation", "%")
"""Time in which at least one kernel ran, as the driver reports it."""
GPU_MEMORY = Metric("GPU memory used", "bytes")
GPU_POWER = Metric("GPU power", "W")
GPU_SM_CLOCK = Metric("SM clock", "MHz")
GPU_MEMORY_CLOCK = Metric("memory clock", "MHz")
GPU_TEMPERATURE = Metric("GPU temperature", "°C")
GPU_RECEIVED = Metric("PCIe receive", "bytes/s")
GPU_SENT = Metric("PCIe transmit", "bytes/s")


def core(number: int) -> Metric:
    """Return the metric of the utilisation of one core of the machine, by all processes."""
    return Metric(f"core {number}", "%")
