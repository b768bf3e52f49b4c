"""Shares and ratios, and the statistics of durations."""

import polars as pl
import pytest

from traceviz.analyses.derived.statistics import ratio, share, totals_by


@pytest.mark.parametrize(
    ("whole", "parts"), [(4, [0.25, 0.75]), (1, [1.0, 3.0]), (0, [None, None]), (-1, [None, None])]
)
def test_a_share_of_1_is_known_and_of_nothing_it_is_not(whole, parts):
    assert pl.DataFrame({"a": [1, 3]}).with_columns(share("a", whole, "of"))["of"].to_list() == parts
    assert [ratio(part, whole) for part in (1, 3)] == parts


def test_calls_without_an_end_are_counted_and_add_nothing():
    calls = pl.DataFrame({"name": ["a", "a", "a", "b", "b", "c"], "dur_ns": [2, 4, None, 20, 10, None]})
    assert totals_by(calls, "name").rows() == [
        ("b", 2, 30, 15.0, 15.0, 10, 20, pytest.approx(50**0.5)),
        ("a", 3, 6, 3.0, 3.0, 2, 4, pytest.approx(2**0.5)),
        ("c", 1, 0, None, None, None, None, 0.0),
    ]
