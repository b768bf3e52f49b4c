"""Device work for several analyses: classes of kernels, the time in which they run, and the owners of devices.

Kernels that convert tensor layouts (channels first, channels last) are known by name. Convolution libraries work in the
layout of their fastest kernels, and convert inputs and outputs if the program uses another one. General transposes and
copies do not count: the program may intend them.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from traceviz.analyses.derived.frames import intervals, unions_by
from traceviz.analyses.derived.judged_time import judged_time, judged_words
from traceviz.analyses.derived.patterns import matches
from traceviz.analyses.derived.view import TraceView
from traceviz.core.arrays.intervals import IntervalSet
from traceviz.trace.names.kernel_names import COMMUNICATION

COMPUTING = ("kernels", "graphs")
"""Tables of computing work."""


def communication_names(trace: TraceView) -> list[str]:
    """Return names of the trace's communication kernels."""
    return [name for name, kernel in trace.kernel_classes.items() if kernel.family == COMMUNICATION]


def computing(trace: TraceView, *columns: str) -> pl.DataFrame:
    """Return kernels, and graphs recorded as a whole, with ``columns`` that both have; in no particular order.

    The contents of such a graph are not known, so it counts as kernels from its start to its end.
    """
    tables = [name for name in COMPUTING if trace.tables.rows(name)] or COMPUTING[:1]
    return pl.concat([trace.frame(name, *columns) for name in tables])


def kernel_busy(trace: TraceView) -> dict[int, IntervalSet]:
    """Return the time in which kernels or graphs (no copies or fills) run on any stream, by ``device_id``."""
    if not trace.tables.rows("graphs"):
        return trace.kernel_unions
    return unions_by(computing(trace, "start_ns", "dur_ns", "device_id"), "device_id")


def exposed(work: pl.DataFrame, cover: dict[int, IntervalSet]) -> dict[int, IntervalSet]:
    """Return the time of ``work`` on each device in which ``cover`` does not run there.

    ::

        work     |-------|     |---|
        cover       |-------------|
        exposed  |--|             |-|
    """
    nothing = IntervalSet.empty()
    return {device: own.subtract(cover.get(device, nothing)) for device, own in unions_by(work, "device_id").items()}


def judged_device_ns(trace: TraceView) -> int:
    """Return judged time, counted once per device that a process uses: the base for shares of idle device time."""
    return sum(judged_time(trace, process).total for process, _ in trace.owners)


LAYOUT_KERNELS = (
    r"(?i)nchw_?(?:to|2)_?nhwc|nhwc_?(?:to|2)_?nchw|ncdhw_?(?:to|2)_?ndhwc|ndhwc_?(?:to|2)_?ncdhw|nhwcToFolded|"
    r"convert_?layout|layout_?convert|SwapDimension\dAnd\dInTensor3|ShuffleInTensor3|"
    r"cudnn::\w+(?:::\w+)*::transpose|transpose_readWrite_alignment|tensorTransformGeneric|batched_transpose_\d+x\d+"
)
"""Conversions of cuDNN, MIOpen and cuBLASLt, and those of TensorFlow around its convolutions."""


@dataclass(frozen=True, slots=True)
class Layouts:
    """Kernels that convert layouts, within the judged time of the devices.

    Args:
        names: Display names of at most three kernels, those with the most time first.
        calls: Number of conversions that started in the judged time.
        layout_ns: Time in which such a kernel runs, once per device.
        kernel_ns: Time in which any kernel runs.
        judged_ns: The judged time.
        judged_words: The judged time, as text.
    """

    names: tuple[str, ...]
    calls: int
    layout_ns: int
    kernel_ns: int
    judged_ns: int
    judged_words: str


_NAMED = 3
_SHORT = r"(\w+)(?:<|\(|$)"
"""Pattern of a function's name without its namespace and arguments."""


def find_layouts(trace: TraceView) -> Layouts | None:
    """Return the conversions; ``None`` if there are none in judged time."""
    named = pl.DataFrame({"name": list(trace.kernel_classes)}, {"name": pl.String})
    converting = named.filter(matches(pl.col("name"), LAYOUT_KERNELS))["name"].to_list()
    if not converting:
        return None
    kernels = trace.frame("kernels", pl.col("name").cast(pl.String), "start_ns", "dur_ns", "process_id", "device_id")
    layout_ns = kernel_ns = calls = 0
    by_name: dict[str, int] = {}
    for process, device in trace.owners:
        own = kernels.filter((pl.col("process_id") == process) & (pl.col("device_id") == device))
        window = judged_time(trace, process)
        of_layout = own.filter(pl.col("name").is_in(converting))
        inside = of_layout.filter(pl.Series(window.contains(of_layout["start_ns"].to_numpy()), dtype=pl.Boolean))
        layout_ns += intervals(of_layout).intersect(window).total
        kernel_ns += intervals(own).intersect(window).total
        calls += inside.height
        for name, total in inside.group_by("name").agg(pl.col("dur_ns").sum()).iter_rows():
            by_name[name] = by_name.get(name, 0) + total
    largest = pl.DataFrame({"name": sorted(by_name, key=lambda name: (-by_name[name], name))}, {"name": pl.String})
    short = largest["name"].str.extract(_SHORT).unique(maintain_order=True).drop_nulls().to_list()
    found = Layouts(tuple(short[:_NAMED]), calls, layout_ns, kernel_ns, judged_device_ns(trace), judged_words(trace))
    return found if layout_ns else None
