"""A sampled 0 is a measurement: in pictures, means and highest values."""

import pytest

from tests.analyses.builders import trace
from tests.analyses.host_literals import ANALYSIS, percent, recorded, series
from traceviz.analyses.host.samples import all_series, mean_of_slices
from traceviz.report import Grid, Timeline

SECOND = 10**9


def test_a_slice_in_which_0_was_measured_is_0_and_one_without_a_sample_is_unknown():
    view = trace(samples=series("program memory", [8, 0, 0, 4], "bytes"), span_ns=6 * SECOND)
    (memory,) = all_series(view)
    assert mean_of_slices(memory, 6 * SECOND, 6) == (None, 8.0, 0.0, 0.0, 4.0, None)
    assert memory.values.tolist() == [8.0, 0.0, 0.0, 4.0]


def test_0_of_2_samples_halves_the_mean_and_is_drawn():
    section = ANALYSIS.describe(ANALYSIS.run(recorded(percent("program CPU", 800, 0, 0, 0), span_ns=5 * SECOND)))
    (timeline,) = (block for block in section.blocks if isinstance(block, Timeline))
    lane = next(lane for lane in timeline.lanes if "CPU" in lane.label)
    assert {0.0, 1.0} <= set(lane.values)
    grid = next(
        block for block in section.blocks if isinstance(block, Grid) and "mean" in {c.name for c in block.columns}
    )
    names = [column.name for column in grid.columns]
    row = dict(zip(names, next(row for row in grid.rows if row[0] == "program CPU"), strict=True))
    assert (row["mean"], row["max"]) == (pytest.approx(200), 800)
