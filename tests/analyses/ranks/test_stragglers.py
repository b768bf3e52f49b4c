"""Scores of ranks among the others, and steps side by side."""

import polars as pl
import pytest

from tests.analyses.builders import trace
from traceviz.analyses.ranks.stragglers import LEAST_RANKS, find_rounds, modified_scores, step_imbalance
from traceviz.core.arrays.intervals import IntervalSet


def test_scores_are_distances_from_the_median_of_0_6745_deviations_also_where_these_are_small():
    # median 10, distances 0.5, 0, 0.5, 2: their median is 0.5
    assert LEAST_RANKS <= 4
    scores = modified_scores((9.5, 10.0, 10.0, 10.5, 12.0), 0.0)
    assert scores == pytest.approx((-0.6745, 0.0, 0.0, 0.6745, 2.698))
    assert modified_scores((10.0,) * 4 + (12.0,), 0.1) == pytest.approx((0.0,) * 4 + (1.349,))
    assert modified_scores((7.0,) * 5, 0.0) == (0.0,) * 5
    assert modified_scores((0.0,) * 5, 0.1) == (0.0,) * 5
    assert modified_scores((1.0,) * (LEAST_RANKS - 1), 0.1) == (0.0,) * (LEAST_RANKS - 1)


def ranks_of(*durations, away=None):
    """Return steps of ranks by their durations, one after another; ``away`` is when each waits for others."""
    rows = []
    for process, own in enumerate(durations):
        start = 0
        for step, dur in enumerate(own):
            rows.append((start, dur, step, {"process_id": process, "thread_id": process}))
            start += dur
    return step_imbalance(find_rounds(trace(steps=rows)), away or {})


def test_steps_of_3_ranks_are_compared_by_their_numbers():
    found = ranks_of((100, 100, 130), (100, 110, 100), (140, 100, 100))
    assert found.steps.sort("step").rows() == [(0, 2, 140, 340 / 3), (1, 1, 110, 310 / 3), (2, 0, 130, 110.0)]
    assert found.lost_ns == round(140 - 340 / 3 + 110 - 310 / 3 + 20)
    assert [found.slowest(rank) for rank in range(3)] == [1, 1, 1]
    assert found.share == 0.0


def test_a_step_counts_without_the_time_in_which_its_rank_waits_for_others():
    # the long steps of rank 0 wait for others: 60 of 160 in step 0, 70 of 150 in step 1
    away = {0: IntervalSet.of([100, 240], [160, 310])}
    found = ranks_of((160, 150), (110, 110), (100, 100), away=away)
    assert found.medians == {0: 90.0, 1: 110.0, 2: 100.0}
    assert found.share == pytest.approx(0.1)
    assert found.steps.sort("step").rows() == [(0, 1, 110, 310 / 3), (1, 1, 110, 290 / 3)]
    assert ranks_of((160, 150), (110, 110), (100, 100)).slowest(0) == 2


def test_the_share_is_of_the_median_rank_also_where_that_takes_1_ns():
    assert ranks_of((1, 1, 1), (1, 1, 1), (3, 3, 3)).share == 2.0
    assert ranks_of((100, 100, 100)).share is None
    assert isinstance(ranks_of((100, 100, 100)).steps, pl.DataFrame)
    assert ranks_of((100, 100, 100)).steps.height == 0
