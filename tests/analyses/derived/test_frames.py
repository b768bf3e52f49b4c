"""Small helpers over frames: rows and parts of one value are not copied."""

from __future__ import annotations

import polars as pl

from traceviz.analyses.derived.frames import blocks, distinct, having, in_one_piece, is_one_name, parts_by

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


def test_parts_in_one_piece_are_their_rows_one_after_the_other_and_the_list_is_used_up() -> None:
    parts = [FRAME, FRAME.head(0), MIXED.tail(1).cast({"device_id": pl.Int64})]
    assert in_one_piece(parts).rows() == [(3, 1), (3, 2), (4, 5)]
    assert parts == []


def test_blocks_cover_all_rows_once(monkeypatch) -> None:
    monkeypatch.setattr("traceviz.analyses.derived.frames._BLOCK", 4)
    assert [(block.start, min(block.stop, 9)) for block in blocks(9)] == [(0, 4), (4, 8), (8, 9)]
    assert list(blocks(0)) == []


def test_a_column_has_one_name_where_all_rows_have_it() -> None:
    def named(names: list[str]) -> pl.DataFrame:
        return pl.DataFrame({"name": pl.Series(names, dtype=pl.Categorical)})

    assert is_one_name(named(["a"] * 300_000), "name")
    assert is_one_name(named([]), "name")
    assert not is_one_name(named(["a", "b"]), "name")
    assert not is_one_name(named(["a"] * 299_999 + ["b"]), "name")
    same = pl.DataFrame({"row": range(300_000)}).with_columns(pl.lit("a", pl.Categorical).alias("name"))
    assert is_one_name(same, "name")
