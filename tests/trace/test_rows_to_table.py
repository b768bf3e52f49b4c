from __future__ import annotations

import ast
import re
from pathlib import Path

import pyarrow as pa
import pytest

from traceviz.core.errors import DamagedTraceError
from traceviz.parsers.shared.notes import Notes
from traceviz.trace.rows_to_table import rows_to_table, without_surrogates


def test_a_value_beyond_32_bits_is_null_and_noted_with_table_and_column():
    notes = Notes()
    table = rows_to_table("devices", [{"device_id": 0, "kind": "gpu", "sm_count": 2**31, "name": "A"}], notes)
    assert table.to_pylist()[0] | {"sm_count": None, "name": "A"} == table.to_pylist()[0]
    message = "devices.sm_count: values that the column cannot hold, left out, such as 2147483648."
    assert notes.rows == [("value-unfit", "warning", 1, message)]


def test_the_largest_value_of_a_column_stays():
    table = rows_to_table("devices", [{"device_id": 2**15 - 1, "kind": "gpu", "sm_count": 2**31 - 1}], Notes())
    assert table.select(["device_id", "sm_count"]).to_pylist() == [{"device_id": 32767, "sm_count": 2147483647}]


def test_two_values_of_several_are_left_out_and_the_others_stay():
    notes = Notes()
    rows = [{"process_id": place, "pid": pid} for place, pid in enumerate((7, "seven", 8, 2**63))]
    assert rows_to_table("processes", rows, notes)["pid"].to_pylist() == [7, None, 8, None]
    assert notes.rows[0][2:] == (2, "processes.pid: values that the column cannot hold, left out, such as 'seven'.")


def test_without_notes_a_value_that_does_not_fit_is_an_error_that_names_table_and_column():
    with pytest.raises(DamagedTraceError, match=r"Column sm_count of table devices cannot hold 1e\+30\.") as raised:
        rows_to_table("devices", [{"device_id": 0, "kind": "gpu", "sm_count": 1e30}])
    assert raised.value.why == "It holds values of the type int32."


def test_a_column_that_may_not_be_null_refuses_what_does_not_fit():
    with pytest.raises(DamagedTraceError, match=r"Column tid of table threads cannot hold an integer of 1,001 bits\."):
        rows_to_table("threads", [{"thread_id": 0, "process_id": 0, "tid": 2**1000}], Notes())


def test_a_column_that_may_not_be_null_refuses_a_row_without_it_where_nobody_takes_notes():
    with pytest.raises(DamagedTraceError, match="Column value of table settings must state a value"):
        rows_to_table("settings", [{"key": "rate"}])


def test_rows_that_nothing_refers_to_are_left_out_and_noted_where_they_lack_what_they_must_state():
    notes = Notes()
    rows = [
        {"key": "a", "value": "1"},
        {"key": "b"},
        {"value": "3"},
        {"key": 4, "value": "4"},
        {"key": "e", "value": ""},
    ]
    assert rows_to_table("settings", rows, notes).select(["key", "value"]).to_pylist() == [
        {"key": "a", "value": "1"},
        {"key": "e", "value": ""},
    ]
    assert notes.rows == [
        ("value-unfit", "warning", 1, "settings.key: values that the column cannot hold, left out, such as 4."),
        ("rows-incomplete", "warning", 3, "settings: rows without key or value, left out."),
    ]


def test_a_long_value_is_cut_in_the_message():
    with pytest.raises(DamagedTraceError, match=r"cannot hold 'x{39}\.\.\.\.") as raised:
        rows_to_table("processes", [{"process_id": 0, "pid": "x" * 10**6}])
    assert len(str(raised.value)) < 200


def test_half_of_a_surrogate_pair_becomes_the_replacement_character_without_a_note():
    notes = Notes()
    rows = [{"key": "a\ud800b", "value": "\udfff"}, {"key": "whole", "value": "\U0001f600"}]
    assert rows_to_table("settings", rows, notes).select(["key", "value"]).to_pylist() == [
        {"key": "a\ufffdb", "value": "\ufffd"},
        {"key": "whole", "value": "\U0001f600"},
    ]
    assert notes.rows == []
    assert without_surrogates("plain \udc80") == "plain \ufffd"


def test_a_table_that_is_not_of_the_contract_is_checked_as_well():
    declared = pa.schema([pa.field("rank", pa.int32())])
    assert rows_to_table("catalogue", [{"rank": 3}, {}], declared=declared)["rank"].to_pylist() == [3, None]
    with pytest.raises(DamagedTraceError, match="Column rank of table catalogue cannot hold 2147483648"):
        rows_to_table("catalogue", [{"rank": 2**31}], declared=declared)


_CONVERTERS = frozenset({"from_pylist", "from_pydict", "from_dicts", "from_records", "from_struct_array"})
"""Functions of Arrow and polars that take rows or lists of Python values of any type."""
_WORDS = re.compile("|".join([*_CONVERTERS, "orient"]))


def _converts_rows(node: ast.AST) -> bool:
    """Return whether a call makes a table from rows: by name, or ``pl.DataFrame(rows, ..., orient="row")``."""
    if isinstance(node, ast.Attribute):
        return node.attr in _CONVERTERS
    return isinstance(node, ast.Call) and any(keyword.arg == "orient" for keyword in node.keywords)


_OF_RESULTS = ("traceviz/analyses/", "traceviz/archive/", "traceviz/compare/", "traceviz/pictures/")
"""Modules whose rows are results, which come from typed columns."""


def test_no_other_place_converts_rows():
    root = Path(__file__).parents[2]
    used = [
        f"{path.relative_to(root)}:{node.lineno}"
        for top in ("traceviz", "parsers", "collectors")
        for path in sorted((root / top).rglob("*.py"))
        if _WORDS.search(text := path.read_text(encoding="utf-8"))  # parsing all takes seconds
        for node in ast.walk(ast.parse(text))
        if _converts_rows(node)
        and not (isinstance(node, ast.Call) and str(path.relative_to(root)).startswith(_OF_RESULTS))
    ]
    assert used == []
