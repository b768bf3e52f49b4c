"""Use of a multiprocessor (SM) by a kernel's launch: blocks per SM, theoretical and achieved occupancy.

Occupancy is the share of an SM's thread slots that are in use. In theory, an SM holds as many blocks at once as its
limits on warps, blocks, registers and shared memory allow (sources: CUDA C++ Programming Guide, "Technical
Specifications per Compute Capability"; the rules of NVIDIA's occupancy calculator, ``cuda_occupancy.h``). A smaller
grid leaves slots empty. PyTorch's profiler therefore estimates the achieved occupancy as::

    achieved = min(blocks per SM, blocks resident in theory) * threads per block / threads that an SM holds

Unknown values are null, never 0, since 0 would be a measurement.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from traceviz.analyses.derived.frames import parts_by
from traceviz.analyses.derived.grouped import Groups
from traceviz.analyses.derived.view import TraceView, once_per_trace

WARP = 32
"""Threads of a warp."""
_REGISTER_UNIT = 256
"""Allocation unit of a warp's registers, in registers."""
_PARTITIONS = 4
"""Number of partitions of an SM's registers, each with its own allocation."""


@dataclass(frozen=True, slots=True)
class SmLimits:
    """Limits of one SM.

    Args:
        warps: Maximum number of warps.
        blocks: Maximum number of blocks.
        shared_kib: Maximum shared memory in KiB.
        registers: Number of 32-bit registers.
        reserved_bytes: Shared memory that the system reserves per block.
        shared_unit: Allocation unit of a block's shared memory in bytes.
    """

    warps: int
    blocks: int
    shared_kib: int
    registers: int = 65536
    reserved_bytes: int = 0
    shared_unit: int = 256


def _ampere(warps: int, blocks: int, shared_kib: int) -> SmLimits:
    """Return limits for compute capability 8.0 and later: the system reserves 1 KiB of shared memory per block."""
    return SmLimits(warps, blocks, shared_kib, reserved_bytes=1024, shared_unit=128)


LIMITS: dict[str, SmLimits] = {
    "3.0": SmLimits(64, 16, 48),
    "3.5": SmLimits(64, 16, 48),
    "3.7": SmLimits(64, 16, 112, registers=131072),
    "5.0": SmLimits(64, 32, 64),
    "5.2": SmLimits(64, 32, 96),
    "5.3": SmLimits(64, 32, 64),
    "6.0": SmLimits(64, 32, 64),
    "6.1": SmLimits(64, 32, 96),
    "6.2": SmLimits(64, 32, 64),
    "7.0": SmLimits(64, 32, 96),
    "7.2": SmLimits(64, 32, 96),
    "7.5": SmLimits(32, 16, 64),
    "8.0": _ampere(64, 32, 164),
    "8.6": _ampere(48, 16, 100),
    "8.7": _ampere(48, 16, 164),
    "8.9": _ampere(48, 24, 100),
    "9.0": _ampere(64, 32, 228),
    "10.0": _ampere(64, 32, 228),
    "10.3": _ampere(64, 32, 228),
    "12.0": _ampere(48, 24, 100),
}
"""Limits by compute capability. Devices of other capabilities have no theoretical occupancy here."""

SHAPE = (
    *("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"),
    *("registers_per_thread", "static_shared_bytes", "dynamic_shared_bytes"),
    *("occupancy", "blocks_per_sm", "achieved_occupancy"),
)
"""Columns of ``kernels`` that :func:`filled` reads."""


_THREADS = "threads_of_a_block"


def filled(kernels: pl.DataFrame, sm_count: int | None, capability: str | None, threads: int | None) -> pl.DataFrame:
    """Return ``kernels`` of one device with columns ``load`` and ``achieved``. Producer's figures come first.

    ``load`` is the number of blocks per SM. ``achieved`` is the estimated achieved occupancy, 0 to 1. Both are null if
    neither the producer nor the launch provides them.

    Args:
        kernels: Kernels with the columns of :data:`SHAPE`.
        sm_count: Number of SMs of the device.
        capability: Compute capability of the device, for example ``"8.0"``.
        threads: Maximum number of threads per SM; if not known, that of the compute capability is used.
    """
    limits = LIMITS.get(capability or "")
    slots = threads or (limits.warps * WARP if limits else None)
    blocks = pl.col("grid_x").cast(pl.Int64) * pl.col("grid_y") * pl.col("grid_z")
    load = pl.coalesce(_sensible("blocks_per_sm"), blocks / pl.lit(sm_count or None, pl.Float64))
    # Separate queries: a single one repeats the earlier expressions, and planning it takes longer than running these
    known = kernels.with_columns(load.alias("load"), _threads().alias(_THREADS))
    theory = known.select(pl.coalesce(_sensible("occupancy"), _theoretical(limits, slots))).to_series()
    achieved = pl.coalesce(_sensible("achieved_occupancy"), _achieved(pl.lit(theory), slots)).alias("achieved")
    return kernels.hstack([known["load"], known.select(achieved).to_series()])


def _sensible(column: str) -> pl.Expr:
    """Return a figure of the producer, or null if it is implausible.

    A running kernel has blocks and a positive occupancy. PyTorch's profiler writes 0 if a block needs more than 48 KiB
    of shared memory, which its calculation considers impossible, and if a percentage rounds to 0.
    """
    value = pl.col(column)
    return pl.when(value.is_finite() & (value > 0)).then(value)


def _threads() -> pl.Expr:
    """Return the number of threads of a block; null if it is 0, which is impossible."""
    threads = pl.col("block_x").cast(pl.Int64) * pl.col("block_y") * pl.col("block_z")
    return pl.when(threads > 0).then(threads)


def _achieved(theory: pl.Expr, slots: int | None) -> pl.Expr:
    """Return the achieved occupancy. If an SM gets at most one block, no limits are needed, since that block fits."""
    if not slots:
        return pl.lit(None, pl.Float64)
    spread = pl.col("load") * pl.col(_THREADS) / slots
    return pl.when(pl.col("load") <= 1).then(spread).when(theory.is_not_null()).then(pl.min_horizontal(spread, theory))


def _theoretical(limits: SmLimits | None, slots: int | None) -> pl.Expr:
    """Return the threads of the resident blocks as a share of an SM's thread slots; null if a limit is not known."""
    if limits is None or not slots:
        return pl.lit(None, pl.Float64)
    warps = -(-pl.col(_THREADS) // WARP)
    of_warp = -(-pl.col("registers_per_thread") * WARP // _REGISTER_UNIT) * _REGISTER_UNIT
    by_registers = pl.lit(limits.registers // _PARTITIONS) // of_warp * _PARTITIONS
    shared = pl.sum_horizontal("static_shared_bytes", "dynamic_shared_bytes").cast(pl.Int64) + limits.reserved_bytes
    taken = -(-shared // limits.shared_unit) * limits.shared_unit
    resident = pl.min_horizontal(
        pl.lit(slots // WARP) // warps,
        pl.lit(limits.blocks),
        pl.when(of_warp > 0).then(by_registers).otherwise(limits.warps) // warps,
        pl.when(taken > 0).then(pl.lit(limits.shared_kib * 1024) // taken).otherwise(limits.blocks),
    )
    known = pl.all_horizontal(
        pl.col("registers_per_thread").is_not_null(),
        pl.any_horizontal(pl.col("static_shared_bytes", "dynamic_shared_bytes").is_not_null()),
        resident > 0,  # the kernel did run, so limits that forbid it are wrong
    )
    return pl.when(known).then(resident * pl.col(_THREADS) / slots)


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
