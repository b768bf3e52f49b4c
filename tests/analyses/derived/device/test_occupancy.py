"""Occupancy from launch shapes and the limits of a compute capability."""

import numpy as np
import polars as pl
import pytest

from traceviz.analyses.derived.device.occupancy import LIMITS, SHAPE, filled


@pytest.mark.parametrize("capability", LIMITS)
def test_occupancy_of_the_largest_grids_is_never_above_1(capability):
    slots = LIMITS[capability].warps * 32
    sizes = np.arange(32, 1025, 32, dtype=np.int32)
    nulls = dict.fromkeys(("occupancy", "blocks_per_sm", "achieved_occupancy"), None)
    ones = dict.fromkeys(("grid_y", "grid_z", "block_y", "block_z"), 1)
    frame = pl.DataFrame({"block_x": sizes}).with_columns(
        pl.lit(10**6, pl.Int32).alias("grid_x"),
        *(pl.lit(value, pl.Int32).alias(name) for name, value in ones.items()),
        *(pl.lit(0, pl.Int32).alias(name) for name in ("static_shared_bytes", "dynamic_shared_bytes")),
        *(pl.lit(none, pl.Float64).alias(name) for name, none in nulls.items()),
        registers_per_thread=pl.lit(32, pl.Int32),
    )
    achieved = filled(frame.select(SHAPE), 10, capability, None)["achieved"]
    assert achieved.max() <= 1.0
    assert achieved[0] == LIMITS[capability].blocks * 32 / slots  # blocks of one warp: their number is the limit
    assert achieved[sizes.tolist().index(256)] == 1.0


GUIDE = """
    3.0  2048 16  48  65536     0 256
    3.5  2048 16  48  65536     0 256
    3.7  2048 16 112 131072     0 256
    5.0  2048 32  64  65536     0 256
    5.2  2048 32  96  65536     0 256
    5.3  2048 32  64  65536     0 256
    6.0  2048 32  64  65536     0 256
    6.1  2048 32  96  65536     0 256
    6.2  2048 32  64  65536     0 256
    7.0  2048 32  96  65536     0 256
    7.2  2048 32  96  65536     0 256
    7.5  1024 16  64  65536     0 256
    8.0  2048 32 164  65536  1024 128
    8.6  1536 16 100  65536  1024 128
    8.7  1536 16 164  65536  1024 128
    8.9  1536 24 100  65536  1024 128
    9.0  2048 32 228  65536  1024 128
    10.0 2048 32 228  65536  1024 128
    10.3 2048 32 228  65536  1024 128
    12.0 1536 24 100  65536  1024 128
"""
"""CUDA C++ Programming Guide, technical specifications per compute capability: resident threads and blocks of an SM,
its shared memory in KiB and registers; and of the occupancy calculator, bytes reserved of a block and its unit."""


def test_limits_are_those_of_nvidias_table_for_20_compute_capabilities():
    rows = {
        capability: [int(number) for number in rest] for capability, *rest in map(str.split, GUIDE.split("\n")[1:-1])
    }
    stated = {
        key: [32 * sm.warps, sm.blocks, sm.shared_kib, sm.registers, sm.reserved_bytes, sm.shared_unit]
        for key, sm in LIMITS.items()
    }
    assert stated == rows
    assert len(stated) == 20


def launched(capability="8.0", **launch):
    """Return the achieved occupancy of a kernel with more blocks than fit on 10 SMs."""
    shape = {**dict.fromkeys(SHAPE[:6], 1), "grid_x": 10**4, **dict.fromkeys(SHAPE[6:]), "registers_per_thread": 32}
    types = {name: pl.Float64 if name in SHAPE[9:] else pl.Int32 for name in SHAPE}
    row = {**shape, "static_shared_bytes": 0, **launch}
    return filled(pl.DataFrame([row], schema=types), 10, capability, None)["achieved"][0]


@pytest.mark.parametrize(
    ("launch", "resident_threads"),
    [
        ({"block_x": 256}, 2048),  # 8 blocks of 8 warps
        ({"block_x": 8, "block_y": 5, "block_z": 5}, 200 * (64 // 7)),  # 7 warps; the last is not full
        # 40 registers a thread: 1280 a warp, in pieces of 256; a quarter of 16384 holds 12, the SM 48 warps
        ({"block_x": 256, "registers_per_thread": 40}, 6 * 256),
        # 41 need 1312 and get 1536 a warp: 10 in a quarter, 40 warps
        ({"block_x": 256, "registers_per_thread": 41}, 5 * 256),
        # 31 KiB and the 1 KiB that the system takes: 5 of 164 KiB; a byte more, and it is 33 KiB in pieces of 128 bytes
        ({"block_x": 256, "static_shared_bytes": 1024, "dynamic_shared_bytes": 30 * 1024}, 5 * 256),
        ({"block_x": 256, "dynamic_shared_bytes": 40 * 1024}, 4 * 256),
        ({"block_x": 256, "dynamic_shared_bytes": 40 * 1024 + 1}, 3 * 256),
        ({"block_x": 32}, 32 * 32),  # 32 blocks at most
    ],
)
def test_resident_threads_follow_from_the_tightest_limit_by_hand(launch, resident_threads):
    assert launched(**launch) == pytest.approx(resident_threads / 2048)


def test_a_figure_of_the_producer_goes_before_and_0_of_it_is_none():
    assert launched(block_x=256, occupancy=0.5) == 0.5
    assert launched(block_x=256, achieved_occupancy=0.25, occupancy=0.5) == 0.25
    assert launched(block_x=256, achieved_occupancy=0.0) == 1.0
    assert launched(block_x=256, blocks_per_sm=0.5) == 0.5 * 256 / 2048
    assert launched(block_x=256, registers_per_thread=None) is None
    assert launched(capability="99.9", block_x=256) is None
