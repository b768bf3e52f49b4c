"""Sweeps in C and with NumPy: both against sets of single nanoseconds, and against each other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceviz.core.arrays import sweeps
from traceviz.core.arrays.intervals import IntervalSet

MOMENTS = st.integers(-3, 30)
PAIRS = st.lists(st.tuples(MOMENTS, MOMENTS), max_size=7)
LOADS = st.lists(st.tuples(st.integers(0, 25), st.integers(0, 9), st.integers(0, 6)), max_size=6)
FULL = 8
WAYS = [pytest.param(sweeps.library, id="compiled"), pytest.param(None, id="numpy")]


@pytest.fixture(autouse=True)
def _compiled_there() -> None:
    assert sweeps.library is not None, "the package was built without its C code"


def columns(pairs: list[tuple[int, int]]) -> tuple[sweeps.Array, sweeps.Array]:
    return np.array([a for a, _ in pairs], np.int64), np.array([b for _, b in pairs], np.int64)


def points(pairs: list[tuple[int, int]]) -> set[int]:
    return {moment for start, end in pairs for moment in range(start, end)}


def members(bounds: sweeps.Bounds) -> set[int]:
    starts, ends = bounds
    assert (ends > starts).all()
    assert (starts[1:] > ends[:-1]).all()
    return points(list(zip(starts.tolist(), ends.tolist(), strict=True)))


@pytest.mark.parametrize("library", WAYS)
@given(one=PAIRS, other=PAIRS)
def test_sets_hold_the_nanoseconds_that_they_should(library, one, other) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweeps, "library", library)
        first, second = sweeps.merged(*columns(one)), sweeps.merged(*columns(other))
        assert members(first) == points(one)
        assert members(sweeps.united(first, second)) == points(one) | points(other)
        assert members(sweeps.intersected(first, second)) == points(one) & points(other)
        assert members(sweeps.subtracted(first, second)) == points(one) - points(other)
        lasting = [pair for pair in one if pair[1] > pair[0]]
        twice = {m for m in points(lasting) if sum(start <= m < end for start, end in lasting) >= 2}
        assert members(sweeps.running(*columns(lasting), 2)) == twice


@pytest.mark.parametrize("library", WAYS)
@given(one=PAIRS, asked=PAIRS)
def test_time_before_moments_and_within_spans_is_counted(library, one, asked) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweeps, "library", library)
        held, (starts, ends) = points(one), columns(asked)
        bounds = sweeps.merged(*columns(one))
        assert sweeps.before(bounds, starts).tolist() == [sum(m < moment for m in held) for moment in starts]
        assert sweeps.ended(bounds, starts).tolist() == [sum(end <= moment for end in bounds[1]) for moment in starts]
        assert IntervalSet(*bounds).contains(starts).tolist() == [moment in held for moment in starts]
        within = [len(held & set(range(start, end))) for start, end in asked]
        assert sweeps.shared(bounds, starts, ends).tolist() == within


@pytest.mark.parametrize("library", WAYS)
@given(window=PAIRS, loads=LOADS)
def test_loads_are_weighed_moment_by_moment_and_count_up_to_what_is_full(library, window, loads) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweeps, "library", library)
        begin, finish = columns([(start, start + length) for start, length, _ in loads])
        sizes = np.array([size for *_, size in loads], np.int64)
        line = np.zeros(60, np.int64)
        for start, length, size in loads:
            line[start : start + length] += size
        expected = sum(int(min(line[moment], FULL)) for moment in points(window) if moment >= 0)
        bounds = sweeps.merged(*columns(window))
        assert sweeps.weighed(bounds, begin, finish, sizes, FULL) == expected


@pytest.mark.parametrize("library", WAYS)
def test_values_are_added_up_counted_and_spread_by_group(library, monkeypatch) -> None:
    monkeypatch.setattr(sweeps, "library", library)
    codes, values = np.array([2, 0, 2, 2, 0], np.int32), np.array([5, 2**62, 7, 9, 2**62])
    assert sweeps.summed(codes, values, 4).tolist() == [-(2**63), 0, 21, 0]  # wraps as NumPy does
    assert sweeps.summed(codes, None, 4).tolist() == [2, 0, 3, 0]
    begins, means = np.array([0, 2, 2, 7]), np.array([1.5, np.nan, 4.0])
    assert sweeps.squares(np.array([1, 2, 1, 3, 4, 5, 7]), begins, means).tolist() == [0.5, 0.0, 20.0]


@pytest.mark.parametrize("code", [-1, 3])
def test_codes_of_no_group_and_begins_beyond_the_values_are_refused(code) -> None:
    with pytest.raises(ValueError, match="no group"):
        sweeps.library.add_by(np.array([0, code], np.int32), np.arange(2), np.zeros(3, np.int64))
    with pytest.raises(ValueError, match="32-bit"):
        sweeps.library.add_by(np.arange(2), np.arange(2), np.zeros(3, np.int64))
    with pytest.raises(ValueError, match="lengths do not agree"):
        sweeps.library.squares(np.arange(3), np.array([0, 4]), np.zeros(1), np.zeros(1))
    with pytest.raises(ValueError, match="lengths do not agree"):
        sweeps.library.add_by(np.zeros(2, np.int32), np.arange(3), np.zeros(3, np.int64))


def test_buffers_that_do_not_fit_are_refused_and_nothing_is_written_beside_them() -> None:
    three, two = np.arange(3), np.arange(2)
    with pytest.raises(ValueError, match="lengths do not agree"):
        sweeps.library.merge(three, two, three.copy(), three.copy())
    with pytest.raises(ValueError, match="64-bit"):
        sweeps.library.merge(np.zeros(4, np.int32), np.zeros(4, np.int32), np.zeros(2, np.int64), np.zeros(2, np.int64))
    with pytest.raises(ValueError, match="fewer than one"):
        sweeps.library.running(three, three, three.copy(), three.copy(), 0)


def test_times_at_the_ends_of_64_bits_wrap_as_numpys_do() -> None:
    least, most = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    wide = IntervalSet(np.array([least, 10]), np.array([0, most]))
    asked = np.array([least, -1, 5, most])
    compiled = wide.before(asked)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweeps, "library", None)
        assert compiled.tolist() == wide.before(asked).tolist()
