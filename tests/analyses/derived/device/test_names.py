"""Numbers of ranks as text."""

import pytest

from tests.analyses.builders import trace
from traceviz.analyses.derived.device.names import in_words, rank_numbers, stated_ranks, world_sizes


@pytest.mark.parametrize(
    ("ranks", "words"),
    [
        ((3,), "3"),
        ((0, 1), "0, 1"),
        ((0, 1, 2), "0 to 2"),
        ((4, 5, 6, 7), "4 to 7"),
        ((0, 1, 3), "0, 1, 3"),
        (tuple(range(0, 16, 2)), "0, 2, 4, 6, 8, 10, 12, 14"),
        (tuple(range(0, 18, 2)), "0, 2, 4, 6, 8, 10, 12, 14, ..."),
    ],
)
def test_8_ranks_are_listed_and_only_where_more_are_left_out_the_list_ends_in_dots(ranks, words):
    assert in_words(ranks) == words


@pytest.mark.parametrize(
    ("ranks", "numbers", "stated"),
    [
        ((4, 2), {0: 4, 1: 2}, (2, 4)),
        ((None, 2), {0: 0, 1: 2}, (2,)),
        ((0, 0), {0: 0, 1: 1}, (0,)),  # their own numbers distinguish two processes of one rank
    ],
)
def test_ranks_of_2_processes_are_those_stated_unless_they_share_one(ranks, numbers, stated):
    view = trace(
        kernels=[(0, 5, "k"), (0, 5, "k", {"process_id": 1, "device_id": 1})],
        processes=[(number, "python", {"rank": rank}) for number, rank in enumerate(ranks)],
    )
    assert rank_numbers(view) == numbers
    assert stated_ranks(view) == stated


def test_the_size_of_the_job_is_every_number_above_0_that_a_setting_states():
    settings = [("world_size", "8"), ("distributedInfo.world_size", "2"), ("WORLDSIZE", "0"), ("world_size", "two")]
    assert world_sizes(trace(settings=[*settings, ("hello_world_size", "5")])) == (2, 8)
