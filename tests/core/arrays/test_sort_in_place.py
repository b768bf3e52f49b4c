"""Rows that are nearly in order of time are sorted in place; rows far from it stay as they are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceviz.core.arrays import portable, sweeps
from traceviz.core.arrays.sweeps import put_in_order

COMPILED = pytest.mark.skipif(sweeps.library is portable, reason="the package was built without a C compiler")


@pytest.fixture(params=["compiled", "numpy"])
def way(request, monkeypatch) -> str:
    if request.param == "numpy":
        monkeypatch.setattr(sweeps, "library", portable)
    return request.param


def test_rows_of_two_threads_come_by_time_and_equal_ones_as_they_came(way) -> None:
    times = np.array([10, 14, 19, 12, 14, 22], np.int64)
    numbers = np.array([0, 1, 2, 3, 4, 5], np.int16)
    assert put_in_order(times, [numbers, times])
    assert times.tolist() == [10, 12, 14, 14, 19, 22]
    assert numbers.tolist() == [0, 3, 1, 4, 2, 5]


def test_rows_in_order_and_no_rows_stay(way) -> None:
    for rows in ([], [5], [-(2**63), 0, 0, 2**63 - 1]):
        times, names = np.array(rows, np.int64), np.arange(len(rows), dtype=np.int32)
        assert put_in_order(times, [names, times])
        assert (times.tolist(), names.tolist()) == (rows, list(range(len(rows))))


@COMPILED
def test_rows_in_the_opposite_order_are_left_alone() -> None:
    times = np.arange(1_000, 0, -1)
    assert not put_in_order(times, [times])
    assert times[0] == 1_000


@COMPILED
def test_rows_further_from_their_places_than_is_held_are_left_alone(monkeypatch) -> None:
    times = np.array([9, 1, 2, 3], np.int64)
    monkeypatch.setattr(sweeps, "FURTHEST", 2)
    assert not put_in_order(times, [times])
    monkeypatch.setattr(sweeps, "FURTHEST", 3)
    assert put_in_order(times, [times])
    assert times.tolist() == [1, 2, 3, 9]


@given(st.lists(st.integers(0, 30), max_size=300), st.integers(0, 40), st.sampled_from([1, 40, 200]))
def test_the_order_is_that_of_a_stable_sort(noise, spread, repeated) -> None:
    late = np.array(noise * repeated, np.int64)
    times = np.arange(late.size) + late * spread // 10
    columns = [np.arange(late.size).astype(kind) for kind in (np.int8, np.int16, np.uint32, np.int64)]
    order = np.argsort(times, kind="stable")
    expected = [column[order].tolist() for column in (*columns, times)]
    if put_in_order(times, [*columns, times]):
        assert [column.tolist() for column in (*columns, times)] == expected
    else:
        assert times.tolist() == (np.arange(late.size) + late * spread // 10).tolist()


@COMPILED
@pytest.mark.parametrize("rows", [[0, 1], [2, 0, 1], [0, 0, 3], [0, -1, 2]])
def test_an_order_that_does_not_fit_is_refused(rows) -> None:
    assert sweeps.library is not portable
    column = np.array([7, 8, 9], np.int64)
    with pytest.raises(ValueError, match="do not fit"):
        sweeps.library.move(np.array(rows, np.int32), 8, 1, column)
    assert column.tolist() == [7, 8, 9]
