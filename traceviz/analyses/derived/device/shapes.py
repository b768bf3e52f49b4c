"""Kernels grouped by launch shape: a trace has millions of launches, but only hundreds of shapes."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from traceviz.analyses.derived.device.occupancy import SHAPE, filled
from traceviz.analyses.derived.frames import parts_by
from traceviz.analyses.derived.grouped import Groups
from traceviz.analyses.derived.view import TraceView, once_per_trace


@dataclass(frozen=True, slots=True, eq=False)
class Shapes:
    """All kernels of a trace by device, name and the columns of :data:`SHAPE`.

    Args:
        groups: Groups of the rows of table ``kernels``.
        filled: One row per group: its keys, and ``load`` and ``achieved`` of
            :func:`traceviz.analyses.derived.device.occupancy.filled`.
    """

    groups: Groups
    filled: pl.DataFrame


@once_per_trace
def kernels_by_name(trace: TraceView) -> Groups:
    """Return all kernels grouped by name."""
    return kernel_shapes(trace).groups.coarser("name")


@once_per_trace
def kernel_shapes(trace: TraceView) -> Shapes:
    """Return the shapes of all kernels."""
    kernels = trace.frame("kernels", "device_id", "name", *SHAPE)
    groups = Groups.of(kernels, "device_id", "name", *SHAPE)
    devices = trace.frame("devices", "device_id", "sm_count", "compute_capability", "max_threads_per_sm")
    limits = {device: facts for device, *facts in devices.iter_rows()}
    keys = groups.keys.with_row_index("shape")
    parts = [
        filled(part, *limits.get(device, (None, None, None))) for device, part in parts_by(keys, "device_id").items()
    ]
    known = pl.concat(parts).sort("shape") if parts else filled(keys, None, None, None)
    return Shapes(groups, known.drop("shape"))
