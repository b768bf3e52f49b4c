"""Use of a GPU by kernels in an interval: multiprocessors (SMs) with a block, and occupied thread slots.

The definitions are those of PyTorch's TensorBoard plugin, see :mod:`traceviz.analyses.device.gpu_efficiency`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from traceviz.analyses.derived.frames import bounds
from traceviz.analyses.derived.grouped import Groups
from traceviz.core.arrays.intervals import Array, IntervalSet

_PARTS = 1_000_000
"""Loads are summed as millionths: with integers, adding and subtracting a load leaves exactly zero.

::

    kernel A, 0.5 blocks per SM   |-------|
    kernel B, 0.7 blocks per SM       |-------|
    share of SMs with a block      0.5  1  0.7
"""


@dataclass(frozen=True, slots=True)
class Efficiency:
    """Use of one GPU by kernels in an interval.

    Args:
        window_ns: Length of the interval.
        kernel_ns: Part of the interval in which a kernel runs.
        sm_efficiency: SM efficiency, 0 to 1; ``None`` if the blocks per SM are not known for any kernel.
        occupancy: Achieved occupancy, 0 to 1; ``None`` if it is not known for any kernel.
        blocks_per_sm: Mean over the kernels, weighted by duration.
        small_ns: Sum of the durations of kernels with fewer blocks than SMs.
        loaded_ns: Sum of the durations of kernels whose blocks per SM are known.
        occupied_ns: Sum of the durations of kernels whose occupancy is known.
        summed_ns: Sum of the durations of all kernels.
        empty_ns: Time of SMs without a block while a kernel of known shape runs: if half of the SMs are empty for 1 ms,
            0.5 ms. Communication is excluded, since its grids are small on purpose.
    """

    window_ns: int
    kernel_ns: int
    sm_efficiency: float | None
    occupancy: float | None
    blocks_per_sm: float | None
    small_ns: int
    loaded_ns: int
    occupied_ns: int
    summed_ns: int
    empty_ns: int


def efficiency(kernels: pl.DataFrame, window: IntervalSet, shapes: Groups, figures: pl.DataFrame) -> Efficiency:
    """Compute the figures of the kernels of one GPU within ``window``.

    Args:
        kernels: ``start_ns``, and ``end_ns`` or ``dur_ns``.
        window: The interval.
        shapes: The kernels grouped by launch shape.
        figures: For each shape, the ``load`` and ``achieved`` of
            :func:`traceviz.analyses.derived.device.occupancy.filled`, and ``communicates`` (small on purpose).
    """
    starts, ends = bounds(kernels)
    shared = shapes.sums(window.overlap(starts, ends))
    load, achieved = (figures[name].cast(pl.Float64).fill_null(np.nan).to_numpy() for name in ("load", "achieved"))
    has_load, has_occupancy = np.isfinite(load), np.isfinite(achieved)
    loaded, occupied = (int(shared[known].sum()) for known in (has_load, has_occupancy))
    is_sized = has_load & ~figures["communicates"].to_numpy()
    busy, alone = _busy(starts, ends, is_sized, shapes)
    busy, alone = busy.intersect(window), alone.intersect(window)
    share = np.minimum(np.where(has_load, load, 0.0), 1.0)  # a second block does not fill an SM further
    parts = np.rint(share * _PARTS).astype(np.int64)[shapes.codes]
    filled = window.weighed(starts, ends, parts, _PARTS) / _PARTS
    filled_alone = filled if is_sized.all() else alone.weighed(starts, ends, parts, _PARTS) / _PARTS
    return Efficiency(
        window_ns=window.total,
        kernel_ns=busy.total,
        sm_efficiency=to_millionths(filled / window.total) if loaded and window.total else None,
        occupancy=_mean(achieved, shared, has_occupancy),
        blocks_per_sm=_mean(load, shared, has_load),
        small_ns=int(shared[has_load & (load < 1)].sum()),
        loaded_ns=loaded,
        occupied_ns=occupied,
        summed_ns=int(shared.sum()),
        empty_ns=round(alone.total - filled_alone),
    )


def _busy(
    starts: Array, ends: Array, is_sized: npt.NDArray[np.bool_], shapes: Groups
) -> tuple[IntervalSet, IntervalSet]:
    """Return the time in which kernels run, and the time in which only kernels that are ``is_sized`` run."""
    if is_sized.all():
        busy = IntervalSet.of(starts, ends)
        return busy, busy
    sized = is_sized[shapes.codes]
    others = IntervalSet.of(starts[~sized], ends[~sized])
    alone = IntervalSet.of(starts[sized], ends[sized])
    return alone.union(others), alone.subtract(others)


def _mean(values: npt.NDArray[np.float64], weights: Array, known: npt.NDArray[np.bool_]) -> float | None:
    """Return the weighted mean of the known values."""
    whole = int(weights[known].sum())
    return to_millionths((values[known] * weights[known]).sum() / whole) if whole else None


def to_millionths(value: float) -> float:
    """Round ``value`` to millionths, so that the order in which floats are summed has no visible effect."""
    return round(float(value), 6)
