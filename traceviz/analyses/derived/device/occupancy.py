"""How far a kernel's launch can fill a multiprocessor (SM): blocks per SM, theoretical and achieved occupancy.

Occupancy is the share of an SM's thread slots that are taken. In theory, as many blocks are resident at once as the
SM's limits allow, of warps, blocks, registers and shared memory (sources: CUDA C++ Programming Guide, "Technical
Specifications per Compute Capability"; the rules of NVIDIA's occupancy calculator, ``cuda_occupancy.h``). A grid that
gives an SM fewer blocks than that fills it no further. So PyTorch's profiler estimates the achieved occupancy::

    achieved = min(blocks per SM, blocks resident in theory) * threads per block / threads that an SM holds

Unknown values are null, never 0: that would be a measurement.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

WARP = 32
"""Threads of a warp."""
_REGISTER_UNIT = 256
"""Registers of a warp are given out in pieces of this many,"""
_PARTITIONS = 4
"""in each of the quarters that an SM's registers are divided into."""


@dataclass(frozen=True, slots=True)
class SmLimits:
    """What one SM holds at once.

    Args:
        warps: Warps.
        blocks: Blocks.
        shared_kib: Shared memory in KiB, at most.
        registers: Registers of 32 bits.
        reserved_bytes: Shared memory that the system takes of each block.
        shared_unit: Shared memory of a block is given out in pieces of this many bytes.
    """

    warps: int
    blocks: int
    shared_kib: int
    registers: int = 65536
    reserved_bytes: int = 0
    shared_unit: int = 256


def _ampere(warps: int, blocks: int, shared_kib: int) -> SmLimits:
    """Limits since compute capability 8.0: the system reserves 1 KiB of each block's shared memory."""
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
"""By compute capability; one that is not listed has no theoretical occupancy here."""

SHAPE = (
    *("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"),
    *("registers_per_thread", "static_shared_bytes", "dynamic_shared_bytes"),
    *("occupancy", "blocks_per_sm", "achieved_occupancy"),
)
"""Columns of ``kernels`` that :func:`filled` reads."""


_THREADS = "threads_of_a_block"


def filled(kernels: pl.DataFrame, sm_count: int | None, capability: str | None, threads: int | None) -> pl.DataFrame:
    """``kernels`` of one device with two more columns. Figures of the producer go before computed ones.

    ``load`` is the number of blocks per SM, ``achieved`` the estimated achieved occupancy, 0 to 1. Both are null where
    neither the producer nor the launch tells them.

    Args:
        kernels: Kernels with the columns of :data:`SHAPE`.
        sm_count: SMs of the device.
        capability: Its compute capability, for example ``"8.0"``.
        threads: Threads that one of its SMs holds; that of the compute capability where not known.
    """
    limits = LIMITS.get(capability or "")
    slots = threads or (limits.warps * WARP if limits else None)
    blocks = pl.col("grid_x").cast(pl.Int64) * pl.col("grid_y") * pl.col("grid_z")
    load = pl.coalesce(_sensible("blocks_per_sm"), blocks / pl.lit(sm_count or None, pl.Float64))
    # One query would hold what comes first many times over: to plan it takes longer than to run all of these
    known = kernels.with_columns(load.alias("load"), _threads().alias(_THREADS))
    theory = known.select(pl.coalesce(_sensible("occupancy"), _theoretical(limits, slots))).to_series()
    achieved = pl.coalesce(_sensible("achieved_occupancy"), _achieved(pl.lit(theory), slots)).alias("achieved")
    return kernels.hstack([known["load"], known.select(achieved).to_series()])


def _sensible(column: str) -> pl.Expr:
    """A figure of the producer; null where it makes no sense.

    A kernel that runs has blocks and fills something. PyTorch's profiler writes 0 where a block needs more than 48 KiB
    of shared memory, which its calculation takes for impossible, and where a percentage rounds to 0.
    """
    value = pl.col(column)
    return pl.when(value.is_finite() & (value > 0)).then(value)


def _threads() -> pl.Expr:
    """Threads of a block; null where it has none, which no launch has."""
    threads = pl.col("block_x").cast(pl.Int64) * pl.col("block_y") * pl.col("block_z")
    return pl.when(threads > 0).then(threads)


def _achieved(theory: pl.Expr, slots: int | None) -> pl.Expr:
    """Achieved occupancy; known without the limits where a block runs alone on its SM, because it fits there."""
    if not slots:
        return pl.lit(None, pl.Float64)
    spread = pl.col("load") * pl.col(_THREADS) / slots
    return pl.when(pl.col("load") <= 1).then(spread).when(theory.is_not_null()).then(pl.min_horizontal(spread, theory))


def _theoretical(limits: SmLimits | None, slots: int | None) -> pl.Expr:
    """Threads of the blocks resident at once as a share of an SM's thread slots; null where a limit is not known."""
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
        resident > 0,  # it did run: limits that forbid it are not those that it ran under
    )
    return pl.when(known).then(resident * pl.col(_THREADS) / slots)
