"""Occupancy from launch shapes and the limits of a compute capability."""

import numpy as np
import polars as pl
import pytest

from traceviz.analyses.derived.occupancy import LIMITS, SHAPE, filled


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
