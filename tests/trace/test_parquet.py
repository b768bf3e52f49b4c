"""Columns of files in one piece, with the same values; zeros and nulls take no memory."""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from traceviz.trace.parquet import read_whole

WORDS = pa.dictionary(pa.int32(), pa.string())


def written(path: Path, *pieces: list[object], kind: pa.DataType) -> Path:
    """Return a file with a row group for each of ``pieces``."""
    with pq.ParquetWriter(path, pa.schema([("a", kind)])) as writer:
        for piece in pieces:
            writer.write_table(pa.table({"a": pa.array(piece, kind)}))
    return path


@pytest.mark.parametrize(
    ("pieces", "kind"),
    [
        ([[3, 1], [2]], pa.int64()),
        ([[-(2**63), 2**63 - 1], [0]], pa.int64()),
        ([[0, 0], [1]], pa.int32()),
        ([[0, 0], [0]], pa.int16()),
        ([[0, None], [0]], pa.int64()),
        ([[7, None], [None, 8]], pa.int32()),
        ([[5], [None, None], [None, 6, None]], pa.int64()),
        ([[None, None], [None]], pa.int64()),
        ([[0.0, 1.5], [None]], pa.float64()),
        ([["a", "b"], ["c", "a"]], WORDS),
        ([["a", "a"], ["a"]], WORDS),
        ([["a", None], ["b"]], WORDS),
        ([[None], [None, None]], WORDS),
        ([["text", None], ["more"]], pa.string()),
        ([[True], [False, None]], pa.bool_()),
        ([[1, 2]], pa.int64()),
        ([], pa.int64()),
        ([], WORDS),
        ([], pa.string()),
    ],
    ids=str,
)
def test_a_column_in_one_piece_has_the_values_and_the_type_that_it_has_in_several(tmp_path, pieces, kind):
    column = read_whole(written(tmp_path / "a.parquet", *pieces, kind=kind))["a"]
    assert column.to_pylist() == [value for piece in pieces for value in piece]
    assert (column.type, column.num_chunks <= 1) == (kind, True)
    column.validate(full=True)


def test_a_zero_with_a_sign_keeps_it(tmp_path):
    column = read_whole(written(tmp_path / "a.parquet", [-0.0], [0.0], kind=pa.float64()))["a"]
    assert [math.copysign(1, value) for value in column.to_pylist()] == [-1, 1]


def test_words_of_all_pieces_are_those_of_the_column(tmp_path):
    column = read_whole(written(tmp_path / "a.parquet", ["b", "a"], ["c", "b"], kind=WORDS))["a"].chunk(0)
    assert (column.indices.to_pylist(), column.dictionary.to_pylist()) == ([0, 1, 2, 0], ["b", "a", "c"])


def test_columns_that_are_not_there_are_not_read(tmp_path):
    path = written(tmp_path / "a.parquet", [1], kind=pa.int64())
    assert read_whole(path, frozenset({"a", "b"})).column_names == ["a"]
    assert read_whole(path, frozenset()).num_columns == 0
