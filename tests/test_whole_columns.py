"""Columns in one piece, with the same values; zeros and nulls take no memory."""

from __future__ import annotations

import pyarrow as pa
import pytest

from traceviz.whole_columns import in_one_piece

WORDS = pa.dictionary(pa.int32(), pa.string())
ROWS = 1 << 20


def in_pieces(*pieces: list[object], kind: pa.DataType) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(piece, kind) for piece in pieces])


@pytest.mark.parametrize(
    "column",
    [
        in_pieces([3, 1], [2], kind=pa.int64()),
        in_pieces([0, 0], [1], kind=pa.int32()),
        in_pieces([0, 0], [0], kind=pa.int16()),
        in_pieces([0, None], [0], kind=pa.int64()),
        in_pieces([None, None], [None], kind=pa.int64()),
        in_pieces([0.0, -0.0], [0.5], kind=pa.float64()),
        in_pieces(["a", "b"], ["c", "a"], kind=WORDS),
        in_pieces(["a", "a"], ["a"], kind=WORDS),
        in_pieces(["a", None], ["b"], kind=WORDS),
        in_pieces([None], [None, None], kind=WORDS),
        in_pieces(["text", None], ["more"], kind=pa.string()),
        in_pieces([True], [False, None], kind=pa.bool_()),
        in_pieces([1, 2], kind=pa.int64()),
        pa.chunked_array([], pa.int64()),
    ],
    ids=str,
)
def test_a_column_in_one_piece_has_the_values_and_the_type_that_it_had_in_several(column):
    whole = in_one_piece([pa.table({"a": column})])
    assert whole["a"].to_pylist() == column.to_pylist()
    assert (whole["a"].type, whole["a"].num_chunks <= 1) == (column.type, True)


def test_words_of_all_pieces_are_those_of_the_column():
    column = in_one_piece([pa.table({"a": in_pieces(["b", "a"], ["c", "b"], kind=WORDS)})])["a"].chunk(0)
    assert (column.indices.to_pylist(), column.dictionary.to_pylist()) == ([0, 1, 2, 0], ["b", "a", "c"])
