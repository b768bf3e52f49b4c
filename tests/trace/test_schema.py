"""The declaration of the tables is consistent with itself."""

import re

import pyarrow as pa
import pytest

from traceviz.core.errors import UsageError
from traceviz.report import Severity
from traceviz.trace import schema
from traceviz.trace.schema import TABLES, nulls, zeros

ALLOWED = {schema.TEXT, schema.NAME, schema.I16, schema.I32, schema.I64, schema.F64}
SURROGATES = {"device_id": schema.I16, "process_id": schema.I32, "thread_id": schema.I32}


def test_names_are_lower_case_words() -> None:
    for table in TABLES.values():
        for name in (table.name, *(column.name for column in table.columns)):
            assert re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name)


def test_column_names_are_unique() -> None:
    for table in TABLES.values():
        names = [column.name for column in table.columns]
        assert len(set(names)) == len(names)


def test_every_column_says_what_it_means_in_a_sentence() -> None:
    for table in TABLES.values():
        for column in table.columns:
            assert re.fullmatch(r"[A-Z].*\.", column.meaning), column
            assert column.type in ALLOWED


def test_times_are_int64_nanoseconds() -> None:
    for table in TABLES.values():
        for column in table.columns:
            if column.name.endswith("_ns"):
                assert (column.type, column.unit) == (pa.int64(), "ns"), column


def test_only_quantities_have_units() -> None:
    for table in TABLES.values():
        for column in table.columns:
            if column.unit:
                assert column.type in {schema.I32, schema.I64, schema.F64}, column
                assert column.unit in {"ns", "bytes", "bytes/s", "Hz", "ratio"}


def test_events_begin_and_devices_work_for_a_known_process() -> None:
    for table in TABLES.values():
        columns = {column.name: column for column in table.columns}
        if table.is_events:
            assert not columns["start_ns"].nullable
        if "dur_ns" in columns:
            assert columns["dur_ns"].nullable  # an event that never ended has none
        if table.name in schema.DEVICE_WORK:
            assert not columns["device_id"].nullable
            assert not columns["process_id"].nullable
            assert columns["correlation_id"].nullable


def test_joins_lead_to_a_column_of_the_same_type() -> None:
    for table in TABLES.values():
        for column in table.columns:
            if column.joins:
                name, key = column.joins.split(".")
                target = next(c for c in TABLES[name].columns if c.name == key)
                assert target.type == column.type, column


def test_surrogate_ids_have_one_type_and_join_their_table() -> None:
    for table in TABLES.values():
        for column in table.columns:
            if column.name in SURROGATES:
                assert column.type == SURROGATES[column.name]
                owner = {"device_id": "devices", "process_id": "processes", "thread_id": "threads"}[column.name]
                assert column.joins == ("" if table.name == owner else f"{owner}.{column.name}")


def test_the_arrow_schema_has_the_declared_nullability() -> None:
    for table in TABLES.values():
        assert [field.nullable for field in table.arrow] == [column.nullable for column in table.columns]
        assert table.empty().num_rows == 0
        assert table.empty().schema.equals(table.arrow)


def test_tables_that_every_trace_has_are_declared() -> None:
    assert set(schema.REQUIRED) <= set(TABLES)
    assert set(schema.DEVICE_WORK) == {"kernels", "memcpy", "memset", "graphs"}


def test_an_unknown_table_lists_those_that_exist() -> None:
    with pytest.raises(UsageError, match=r"no table 'kernel'.*kernels"):
        schema.table("kernel")


def test_columns_of_nulls_and_zeros_share_memory_that_nobody_may_write() -> None:
    one, other = nulls(3, pa.int64()), nulls(40, pa.int16())
    assert (one.to_pylist(), other.null_count, len(other)) == ([None] * 3, 40, 40)
    assert [len(nulls(rows, pa.float64())) for rows in (0, 1, 8, 9)] == [0, 1, 8, 9]
    buffer = zeros(5_000_000)
    assert (buffer.size, buffer.is_mutable, bytes(buffer[:3]), bytes(buffer[-3:])) == (
        5_000_000,
        False,
        b"\0" * 3,
        b"\0" * 3,
    )
    assert zeros(4_500_000).address == buffer.address


def test_closed_sets_are_of_texts_and_hold_what_replaces_others() -> None:
    closed = [column for table in TABLES.values() for column in table.closed]
    assert len(closed) == 19
    for column in closed:
        assert column.type in {schema.TEXT, schema.NAME}
        assert len(set(column.values)) == len(column.values)
        assert column.otherwise is None or column.otherwise in column.values


def test_reports_know_the_severities_of_notes_in_their_order() -> None:
    assert tuple(Severity) == schema.SEVERITIES
