"""How far kernels fill a GPU within a time: multiprocessors (SMs) that have a block, and occupied thread slots.

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
"""Loads are added up as millionths: in whole numbers, adding and subtracting a load leaves exactly nothing.

::

    kernel A, 0.5 blocks per SM   |-------|
    kernel B, 0.7 blocks per SM       |-------|
    share of SMs with a block      0.5  1  0.7
"""


@dataclass(frozen=True, slots=True)
class Efficiency:
    """How far kernels fill one GPU within a time.

    Args:
        window_ns: That time.
        kernel_ns: The part of it in which a kernel runs.
        sm_efficiency: SM efficiency, 0 to 1; ``None`` where the blocks per SM of no kernel are known.
        occupancy: Achieved occupancy, 0 to 1; ``None`` where that of no kernel is known.
        blocks_per_sm: Mean over the kernels, weighted by duration.
        small_ns: Sum of the durations of kernels with fewer blocks than SMs.
        loaded_ns: Sum of the durations of kernels whose blocks per SM are known,
        occupied_ns: and of those whose occupancy is known,
        summed_ns: of all.
        empty_ns: Time worth of SMs without a block while a kernel of known shape runs: one half of the SMs empty for
            1 ms is 0.5 ms. Communication, whose grids are small on purpose, is left out.
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
    """Figures of the kernels of one GPU within ``window``.

    Args:
        kernels: ``start_ns``, and ``end_ns`` or ``dur_ns``.
        window: The time.
        shapes: The kernels by what they are launched with.
        figures: Of each of these, the ``load`` and ``achieved`` of
            :func:`traceviz.analyses.derived.device.occupancy.filled`, and ``communicates``: these are small on purpose.
    """
    starts, ends = bounds(kernels)
    shared = shapes.sums(window.overlap(starts, ends))
    load, achieved = (figures[name].cast(pl.Float64).fill_null(np.nan).to_numpy() for name in ("load", "achieved"))
    has_load, has_occupancy = np.isfinite(load), np.isfinite(achieved)
    loaded, occupied = (int(shared[known].sum()) for known in (has_load, has_occupancy))
    is_sized = has_load & ~figures["communicates"].to_numpy()
    busy, alone = _busy(starts, ends, is_sized, shapes)
    busy, alone = busy.intersect(window), alone.intersect(window)
    share = np.minimum(np.where(has_load, load, 0.0), 1.0)  # more than one block fill an SM no more
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
    """Time in which kernels run, and that in which none runs but those whose shape ``is_sized``."""
    if is_sized.all():
        busy = IntervalSet.of(starts, ends)
        return busy, busy
    sized = is_sized[shapes.codes]
    others = IntervalSet.of(starts[~sized], ends[~sized])
    alone = IntervalSet.of(starts[sized], ends[sized])
    return alone.union(others), alone.subtract(others)


def _mean(values: npt.NDArray[np.float64], weights: Array, known: npt.NDArray[np.bool_]) -> float | None:
    """Weighted mean of the known values."""
    whole = int(weights[known].sum())
    return to_millionths((values[known] * weights[known]).sum() / whole) if whole else None


def to_millionths(value: float) -> float:
    """``value`` rounded to millionths: the order of the rows, in which floats are added up, must not show."""
    return round(float(value), 6)
