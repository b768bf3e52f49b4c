"""SM efficiency of the kernels of one GPU within a time."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceviz.analyses.derived.device.sm_efficiency import efficiency
from traceviz.analyses.derived.grouped import Groups
from traceviz.core.arrays.intervals import IntervalSet


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 90), st.integers(1, 25)), min_size=1, max_size=20))
def test_sm_efficiency_equals_a_count_of_every_nanosecond(drawn):
    line = np.zeros(700)
    for start, dur, blocks in drawn:
        line[start : start + dur] += blocks / 10
    frame = pl.DataFrame(
        {
            "start_ns": [start for start, *_ in drawn],
            "dur_ns": [dur for _, dur, _ in drawn],
            "load": [blocks / 10 for *_, blocks in drawn],
            "achieved": [None] * len(drawn),
        },
        schema_overrides={"achieved": pl.Float64},
    )
    shapes = Groups.of(frame, "load", "achieved")
    of_shapes = shapes.keys.with_columns(pl.lit(value=False).alias("communicates"))
    figures = efficiency(frame, IntervalSet.span(50, 550), shapes, of_shapes)
    expected = np.minimum(line, 1)[50:550].mean()
    assert (figures.sm_efficiency or 0.0) == pytest.approx(expected, abs=1e-6)
    assert figures.occupancy is None
    assert figures.empty_ns == pytest.approx((line[50:550] > 0).sum() - 500 * expected, abs=0.51)
