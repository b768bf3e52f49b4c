"""Tables are sorted in their own memory, or left as they are."""

import numpy as np
import pyarrow as pa

from traceviz.parsers.nsys.tables import sort_by_start


def own(values, kind) -> pa.Array:
    """Return an array in memory that may be written."""
    numbers = np.array(values, kind)
    return pa.Array.from_buffers(pa.from_numpy_dtype(numbers.dtype), numbers.size, [None, pa.py_buffer(numbers)])


def words(codes) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(own(codes, np.int32), pa.array(["a", "b", "c"]))


def test_rows_move_in_their_own_memory():
    table = pa.table(
        {"start_ns": own([5, 9, 7], np.int64), "name": words([0, 1, 2]), "thread_id": own([4, 4, 4], "i4")}
    )
    before = table["name"].chunk(0).indices.buffers()[1].address
    ordered = sort_by_start(table)
    assert ordered.to_pydict() == {"start_ns": [5, 7, 9], "name": ["a", "c", "b"], "thread_id": [4, 4, 4]}
    assert ordered["name"].chunk(0).indices.buffers()[1].address == before


def test_a_column_of_nulls_stays_a_column_of_nulls():
    ordered = sort_by_start(pa.table({"start_ns": own([5, 9, 7], np.int64), "dur_ns": pa.nulls(3, pa.int64())}))
    assert ordered.to_pydict() == {"start_ns": [5, 7, 9], "dur_ns": [None] * 3}


def test_what_cannot_be_moved_is_left_as_it_is():
    times, some = own([5, 9, 7], np.int64), pa.array([1, None, 3])
    shared = own([1, 2, 3], np.int64)
    pieces = pa.chunked_array([own([1], np.int64), own([2, 3], np.int64)])
    for columns in ({"a": some}, {"a": shared, "b": shared}, {"a": pieces}, {"a": pa.array(["x", "y", "z"])}):
        table = pa.table({"start_ns": times, **columns})
        assert sort_by_start(table)["start_ns"].to_pylist() == [5, 9, 7]
    frozen = pa.py_buffer(np.array([1, 2, 3]).tobytes())
    table = pa.table({"start_ns": times, "a": pa.Array.from_buffers(pa.int64(), 3, [None, frozen])})
    assert sort_by_start(table)["start_ns"].to_pylist() == [5, 9, 7]
