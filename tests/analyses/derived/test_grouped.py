"""Statistics by group: literals, and against polars on random frames."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from traceviz.analyses.derived.grouped import Groups, Ordered, counted, first_of_each

FRAME = pl.DataFrame(
    {
        "name": ["b", "a", "b", None, "a", "b"],
        "thread": [7, 7, 8, 7, 7, 7],
        "dur_ns": [5, 1, 9, 4, None, 7],
    }
).with_columns(pl.col("name").cast(pl.Categorical))


def by_key(groups: Groups, values) -> dict[tuple[object, ...], object]:
    return dict(zip(groups.keys.iter_rows(), np.asarray(values).tolist(), strict=True))


def test_groups_are_told_apart_by_all_columns_and_a_null_is_a_value() -> None:
    groups = Groups.of(FRAME, "name", "thread")
    assert by_key(groups, groups.counts) == {("b", 7): 2, ("a", 7): 2, ("b", 8): 1, (None, 7): 1}
    assert by_key(groups.coarser("name"), groups.coarser("name").counts) == {("b",): 3, ("a",): 2, (None,): 1}


def test_quantiles_of_a_group_are_those_of_its_known_values() -> None:
    groups = Groups.of(FRAME, "name")
    ordered = groups.ordered(FRAME["dur_ns"])
    assert by_key(groups, ordered.sums()) == {("b",): 21, ("a",): 1, (None,): 4}
    assert by_key(groups, ordered.medians()) == {("b",): 7.0, ("a",): 1.0, (None,): 4.0}
    assert by_key(groups, ordered.quantiles(0.95)) == {("b",): 9, ("a",): 1, (None,): 4}
    assert by_key(groups, ordered.deviations()) == {("b",): 2.0, ("a",): 0.0, (None,): 0.0}


def test_sums_and_distinct_values_count_each_row_once() -> None:
    groups = Groups.of(FRAME, "name")
    assert by_key(groups, groups.sums(np.array([1, 2, 3, 4, 5, 6]))) == {("b",): 10, ("a",): 7, (None,): 4}
    assert by_key(groups, groups.distinct(FRAME["thread"])) == {("b",): 2, ("a",): 1, (None,): 1}


def test_sums_beyond_the_whole_numbers_of_floats_are_exact() -> None:
    groups = Groups.of(pl.DataFrame({"name": ["a", "a"]}), "name")
    assert groups.sums(np.array([2**60, 1])).tolist() == [2**60 + 1]


def test_no_rows_have_no_groups() -> None:
    groups = Groups.of(FRAME.clear(), "name", "thread")
    assert (len(groups), groups.keys.columns) == (0, ["name", "thread"])
    assert groups.ordered(FRAME.clear()["dur_ns"]).medians().tolist() == []


def test_values_too_far_apart_for_one_integer_are_ordered_as_well() -> None:
    codes, values = np.array([1, 0, 1, 0]), np.array([2**62, 5, -(2**62), -7])
    ordered = Ordered.of(codes, values, 2)
    assert (ordered.values.tolist(), ordered.begins.tolist()) == ([-7, 5, -(2**62), 2**62], [0, 2, 4])


@pytest.mark.parametrize(("rows", "spread"), [(3, 5), (40, 10**6), (3000, 9), (3000, 2**61)])
def test_figures_are_those_of_polars(rows: int, spread: int) -> None:
    rng = np.random.default_rng(rows)
    frame = pl.DataFrame(
        {
            "name": rng.choice(["x", "y", "zz", None], rows).tolist(),
            "number": rng.integers(-(10**12), 10**12, 7)[rng.integers(0, 7, rows)],
            "dur_ns": [None if rng.random() < 0.1 else int(value) for value in rng.integers(0, spread, rows)],
        },
        schema_overrides={"dur_ns": pl.Int64},
    ).with_columns(pl.col("name").cast(pl.Categorical))
    groups = Groups.of(frame, "name", "number")
    ordered = groups.ordered(frame["dur_ns"])
    ours = groups.keys.with_columns(
        calls=groups.counts, known=ordered.counts, median=ordered.medians(), p95=ordered.quantiles(0.95)
    ).filter(pl.col("known") > 0)
    time = pl.col("dur_ns")
    theirs = frame.group_by("name", "number").agg(
        calls=pl.len(), known=time.count(), median=time.median(), p95=time.quantile(0.95, "nearest")
    )
    theirs = theirs.filter(pl.col("known") > 0).with_columns(pl.col("name").cast(pl.String))
    key = ["name", "number"]
    assert ours.sort(key).select(key).rows() == theirs.sort(key).select(key).rows()
    for figure in ("calls", "known", "median", "p95"):
        assert ours.sort(key)[figure].to_list() == pytest.approx(theirs.sort(key)[figure].to_list(), rel=1e-12)


@pytest.mark.parametrize("values", [[3, 3, 0, 7], [3, None, 0, 3], [-1, 5, 5, -1], [1 << 20, 5, 5, 5]])
def test_rows_with_each_value_are_counted(values: list[int | None]) -> None:
    column = pl.Series("thread_id", values, pl.Int32)
    found = dict(counted(column).iter_rows())
    assert found == {value: values.count(value) for value in values}


@pytest.mark.parametrize("codes", [[], [4], [2, 2, 0, 1, 2], [5, -1, 5, -1], [3, 1 << 12, 3]])
def test_the_first_row_with_each_code_is_found(codes: list[int]) -> None:
    rows = first_of_each(np.array(codes, np.int32)).tolist()
    assert rows == sorted(codes.index(code) for code in set(codes))


def test_first_rows_are_found_in_later_blocks_too() -> None:
    codes = np.zeros(200_000, np.int32)
    codes[[150_000, 199_999]] = 3, 1
    assert first_of_each(codes).tolist() == [0, 150_000, 199_999]


@pytest.mark.parametrize("least", [0, -5, (1 << 32) - 40])
def test_narrow_and_wide_values_have_the_same_figures(least: int) -> None:
    """Values within 32 bits are kept so; the largest of the last ones is beyond."""
    values = np.arange(300_000) % 50 + least
    codes = (np.arange(300_000) // 100_000).astype(np.int32)
    ordered = Ordered.of(codes, values, 4)
    assert ordered.values.itemsize == (4 if least == 0 else 8)
    assert ordered.sums().tolist() == [*[100_000 * least + 2_450_000] * 3, 0]
    assert ordered.medians().tolist()[:3] == [least + 24.5] * 3
    assert ordered.at(np.full(4, 99_999))[0] == least + 49
    assert ordered.deviations()[:3].tolist() == pytest.approx([14.43093951] * 3)
