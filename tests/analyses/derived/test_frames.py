"""Small helpers over frames: rows and parts of one value are not copied."""

from __future__ import annotations

import polars as pl

from traceviz.analyses.derived.frames import distinct, having, is_one_name, parts_by

FRAME = pl.DataFrame({"device_id": [3, 3], "start_ns": [1, 2]})
MIXED = pl.DataFrame({"device_id": [3, None, 4], "start_ns": [1, 2, 5]})


def test_rows_of_the_only_value_are_the_frame_itself() -> None:
    assert having(FRAME, "device_id", 3) is FRAME
    assert parts_by(FRAME, "device_id")[3] is FRAME
    assert having(FRAME, "device_id", 4).height == 0


def test_rows_of_one_of_several_values_are_those_that_have_it() -> None:
    assert having(MIXED, "device_id", 4)["start_ns"].to_list() == [5]
    assert having(MIXED.head(2), "device_id", 3)["start_ns"].to_list() == [1]


def test_distinct_names_come_as_they_first_do() -> None:
    names = pl.Series(["b", "a", "b", "c"], dtype=pl.Categorical)
    assert distinct(names).cast(pl.String).to_list() == ["b", "a", "c"]
    assert distinct(names.head(0)).to_list() == []


def test_a_column_has_one_name_where_all_rows_have_it() -> None:
    def named(names: list[str]) -> pl.DataFrame:
        return pl.DataFrame({"name": pl.Series(names, dtype=pl.Categorical)})

    assert is_one_name(named(["a"] * 300_000), "name")
    assert is_one_name(named([]), "name")
    assert not is_one_name(named(["a", "b"]), "name")
    assert not is_one_name(named(["a"] * 299_999 + ["b"]), "name")
    same = pl.DataFrame({"row": range(300_000)}).with_columns(pl.lit("a", pl.Categorical).alias("name"))
    assert is_one_name(same, "name")
