"""Rows that belong together by a pair of integers."""

from __future__ import annotations

import numpy as np
import pytest

from traceviz.core.arrays import nested, portable
from traceviz.core.arrays.matching import Pairs, first_rows, is_repeated

FAR = 1 << 62


def pairs(rows: list[tuple[int, int | None]]) -> Pairs:
    """Return pairs from literals."""
    known = np.array([number is not None for _, number in rows], dtype=bool)
    ids = np.array([number or 0 for _, number in rows], np.int64)
    return Pairs(np.array([owner for owner, _ in rows], np.int32), ids, None if known.all() else known)


@pytest.mark.parametrize("unit", [1, FAR // 16])
def test_the_first_row_with_the_same_pair_is_found_however_far_apart_the_ids_lie(unit: int) -> None:
    among = pairs([(0, 7 * unit), (0, 8 * unit), (0, 8 * unit), (1, 8 * unit), (1, 9 * unit)])
    sought = pairs([(0, 8 * unit), (1, 8 * unit), (0, 9 * unit), (2, 8 * unit), (1, 9 * unit), (0, 5 * unit)])
    assert first_rows(sought, among).tolist() == [1, 3, -1, -1, 4, -1]


@pytest.mark.parametrize("unit", [1, FAR // 16])
def test_a_row_without_an_id_belongs_to_none(unit: int) -> None:
    among = pairs([(0, None), (0, 3 * unit), (0, 0)])
    sought = pairs([(0, None), (0, 3 * unit), (0, 0)])
    assert first_rows(sought, among).tolist() == [-1, 1, 2]
    assert is_repeated(pairs([(0, None), (0, None), (0, unit), (1, unit), (0, unit)])).tolist() == [False] * 4 + [True]


def test_the_extremes_of_64_bits_are_ids_like_others() -> None:
    least, most = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    among = pairs([(0, int(most)), (0, int(least)), (3, 0)])
    assert first_rows(pairs([(0, int(least)), (0, int(most)), (3, 0), (0, 0)]), among).tolist() == [1, 0, 2, -1]


def test_one_side_may_have_no_rows() -> None:
    assert first_rows(pairs([(0, 1)]), pairs([])).tolist() == [-1]
    assert first_rows(pairs([]), pairs([(0, 1)])).tolist() == []


compiled = pytest.mark.skipif(nested.library is portable, reason="nothing is compiled")


@compiled
def test_what_is_compiled_finds_the_same_rows_as_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(40):
        random = np.random.default_rng(seed)
        sought, among = (
            Pairs(
                random.integers(0, 1 + seed % 3, count).astype(np.int32),
                random.integers(-9, 9, count),
                random.random(count) < 0.8 if seed % 2 else None,
            )
            for count in (50, 40)
        )
        found = first_rows(sought, among).tolist()
        with monkeypatch.context() as patched:
            patched.setattr(nested, "library", portable)
            assert found == first_rows(sought, among).tolist(), seed
        assert len(found) == 50


@compiled
@pytest.mark.parametrize(
    ("least", "width", "places"), [(0, 4, 7), (0, 0, 0), (2**63 - 1, 2, 4), (0, 2**63, 8)], ids=str
)
def test_places_that_do_not_fit_the_ids_are_refused(least: int, width: int, places: int) -> None:
    owners, ids, nothing = np.zeros(3, np.int32), np.arange(3), np.empty(0, np.uint8)
    table, found = np.empty(places, np.int32), np.empty(3, np.int32)
    both = np.array([0, 1], np.int32)
    with pytest.raises(ValueError, match="the columns do not fit each other"):
        nested.library.match(owners, ids, nothing, owners, ids, nothing, both, least, width, table, found)


@compiled
@pytest.mark.parametrize("short", range(4))
def test_pairs_of_columns_of_different_lengths_are_refused(short: int) -> None:
    columns = [np.zeros(3, np.int32), np.arange(3), np.zeros(3, np.int32), np.arange(3)]
    columns[short] = columns[short][:2]
    nothing, found = np.empty(0, np.uint8), np.empty(3, np.int32)
    sought, among = (*columns[:2], nothing), (*columns[2:], nothing)
    with pytest.raises(ValueError, match="the columns do not fit each other"):
        nested.library.match(*sought, *among, np.zeros(1, np.int32), 0, 3, np.empty(3, np.int32), found)


def test_random_pairs_have_the_partners_that_a_dictionary_finds() -> None:
    rng = np.random.default_rng(5)
    for spread in (30, 10**6, 10**15):
        rows = [
            (int(a), int(b)) for a, b in zip(rng.integers(0, 3, 200), rng.integers(-spread, spread, 200), strict=True)
        ]
        wanted = rows[50:150] + [
            (int(a), int(b)) for a, b in zip(rng.integers(0, 4, 50), rng.integers(0, 9, 50), strict=True)
        ]
        first: dict[tuple[int, int], int] = {}
        for number, row in enumerate(rows):
            first.setdefault(row, number)
        assert first_rows(pairs(list(wanted)), pairs(list(rows))).tolist() == [first.get(row, -1) for row in wanted]
