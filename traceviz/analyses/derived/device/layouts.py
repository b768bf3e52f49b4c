"""Conversions of the layout of tensors (channels first, channels last), by the names of kernels.

Libraries of convolutions work in the layout that their fastest kernels want, and convert on the way in and out where
the program keeps another. General transposes and copies of a program are not counted: it may mean them.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from traceviz.analyses.derived.device.work import judged_device_ns
from traceviz.analyses.derived.frames import intervals
from traceviz.analyses.derived.judged_time import judged_time, judged_words
from traceviz.analyses.derived.patterns import matches
from traceviz.analyses.derived.view import TraceView

LAYOUT_KERNELS = (
    r"(?i)nchw_?(?:to|2)_?nhwc|nhwc_?(?:to|2)_?nchw|ncdhw_?(?:to|2)_?ndhwc|ndhwc_?(?:to|2)_?ncdhw|nhwcToFolded|"
    r"convert_?layout|layout_?convert|SwapDimension\dAnd\dInTensor3|ShuffleInTensor3|"
    r"cudnn::\w+(?:::\w+)*::transpose|transpose_readWrite_alignment|tensorTransformGeneric"
)
"""cuDNN's and MIOpen's conversions, those of TensorFlow around its convolutions, and cuBLASLt's."""


@dataclass(frozen=True, slots=True)
class Layouts:
    """Kernels that convert layouts, within the judged time of the devices.

    Args:
        names: The kernels with most of it first, as they are named for people, three at most.
        calls: How many began there.
        layout_ns: Time in which such a kernel runs, once per device.
        kernel_ns: Time in which any kernel runs.
        judged_ns: The judged time.
        judged_words: That in words.
    """

    names: tuple[str, ...]
    calls: int
    layout_ns: int
    kernel_ns: int
    judged_ns: int
    judged_words: str


_NAMED = 3
_SHORT = r"(\w+)(?:<|\(|$)"
"""The name of a function without its namespace and arguments."""


def layouts(trace: TraceView) -> Layouts | None:
    """The conversions; ``None`` where there is none in judged time."""
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
