"""Numbers of processes, threads and devices: sorted, and positions in their tables."""

from traceviz.parsers.shared.events.owners import by_trace, compute_capability, identity_tables, numbered


def test_keys_are_numbered_in_sorted_order_each_once():
    assert numbered([7, 3, 7, 5]) == {3: 0, 5: 1, 7: 2}
    assert numbered(["b", "a"], lambda key: -ord(key)) == {"b": 0, "a": 1}


def test_numbers_are_positions_and_what_a_row_lacks_is_null():
    tables = identity_tables([{"pid": 9}], [{"process_id": 0, "tid": 4}, {"process_id": 0, "tid": 5}], [])
    assert tables["processes"].to_pylist() == [{"process_id": 0, "pid": 9, "name": None, "rank": None}]
    assert tables["threads"]["thread_id"].to_pylist() == [0, 1]
    assert tables["devices"].num_rows == 0


def test_numbers_of_several_traces_are_split_by_trace():
    assert by_trace({(0, 5): 1, (2, 5): 0}, 3) == [{5: 1}, {}, {5: 0}]


def test_a_compute_capability_needs_both_parts():
    assert (compute_capability(9, 0), compute_capability(9, None)) == ("9.0", None)
