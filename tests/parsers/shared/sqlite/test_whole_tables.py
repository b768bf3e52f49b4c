"""Whole columns equal what SQLite gives, row for row, or the table is left to SQLite."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.parsers.nsys import database
from traceviz.core.errors import DamagedTraceError
from traceviz.parsers.base import ReadRequest
from traceviz.parsers.nsys.readers import NsysSqliteReader
from traceviz.parsers.shared.arrays.native import decoder
from traceviz.parsers.shared.events.column_requests import Combination, DurationRequest, Label, NotPlainError, Number
from traceviz.parsers.shared.events.mapping import Keep
from traceviz.parsers.shared.prefetch import Prefetch
from traceviz.parsers.shared.sqlite import whole_tables as sqlite_whole
from traceviz.parsers.shared.sqlite.tables import SqliteTables

pytestmark = pytest.mark.skipif(decoder() is None, reason="the package was built without a C compiler")

COLUMNS = "start INTEGER, end INT, key INTEGER, value BIGINT, text TEXT, more TEXT"
REQUESTS = (
    Number("value", pa.int64(), less=7),
    Number("value", pa.int32(), unset=-1),
    Number("value", pa.int16()),
    DurationRequest("end", "start"),
    Combination(("key",)),
    Combination(("key", "value")),
    Combination(("key", "value", "start")),
    Label("text", "value"),
    Label("text"),
)

TIMES = st.one_of(st.none(), st.integers(-(2**40), 2**40))
VALUES = st.one_of(
    st.none(), st.sampled_from([0, 1, -1]), *(st.integers(-(2**n), 2**n - 1) for n in (7, 15, 31, 47, 63))
)
TEXTS = st.one_of(st.none(), st.sampled_from(["", "forward", "α", "x" * 100]), st.text(max_size=3))
SHORT, LONG = st.sampled_from([None, "", "α"]), st.sampled_from(["y" * 60, "z" * 5_000])
NUMBERS = (TIMES, TIMES, st.sampled_from([None, 0, 1, 7]), VALUES)
# Of rows longer than a page, a short text is still in it.
ROWS = st.lists(st.one_of(st.tuples(*NUMBERS, TEXTS, st.none()), st.tuples(*NUMBERS, SHORT, LONG)), max_size=120)
LAYOUTS = st.tuples(st.sampled_from([512, 1024, 4096, 65536]), st.sampled_from([0, 1, 8, 32]))
KEEPS = st.sampled_from([(), (Keep("key", (0, 7)),), (Keep("key", (1,), inverted=True), Keep("value", (0, -1)))])


def build(path: Path, rows, page_size: int = 512, reserved: int = 0) -> Path:
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA page_size = {page_size}")
        connection.execute("VACUUM")
    content = bytearray(path.read_bytes())
    content[20] = reserved  # bytes at the end of each page, for extensions
    content[105:107] = ((page_size - reserved) % 65536).to_bytes(2, "big")
    path.write_bytes(content)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"CREATE TABLE x ({COLUMNS})")
        connection.executemany("INSERT INTO x VALUES (?, ?, ?, ?, ?, ?)", rows)
        connection.commit()
    return path


def whole(path: Path, requests, keeps=(), *, early=False) -> tuple[int, list]:
    """Return rows, and for each request the column, or what its codes stand for in each row."""
    with closing(Prefetch()) as prefetch, SqliteTables(path) as tables:
        table = tables.whole("x")
        assert table is not None
        if early:
            stored = [replace(request, less=0) if isinstance(request, Number) else request for request in requests]
            table.prefetch(prefetch, stored, [Number("end", pa.int64())], 1 << 30)
        rows, results = table.columns(keeps, requests, lambda _: None)
    columns = []
    for result in results:
        if hasattr(result, "array"):
            result.array.validate(full=True)
            columns.append(result.array.to_pylist())
        else:
            assert result.rows.tolist() == np.bincount(result.codes, minlength=len(result.rows)).tolist()
            keys = [tuple(row.values()) for row in result.keys.to_pylist()]
            assert len(set(keys)) == len(keys)
            columns.append([keys[code] for code in result.codes])
    return rows, columns


def fits(value: int | None, bits: int) -> bool:
    return value is not None and -(2 ** (bits - 1)) <= value < 2 ** (bits - 1)


def wrapped(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


def expected(rows) -> list[list]:
    """Return the answers to REQUESTS, from the rows."""
    texts = [None if text is None else text.encode() for *_, text, _ in rows]
    return [
        [None if value is None else wrapped(value - 7) for *_, value, _, _ in rows],
        [value if fits(value, 32) and value != -1 else None for *_, value, _, _ in rows],
        [value if fits(value, 16) else None for *_, value, _, _ in rows],
        [None if None in {start, end} or end < start else end - start for start, end, *_ in rows],
        [(key,) for _, _, key, *_ in rows],
        [(key, value) for _, _, key, value, *_ in rows],
        [(key, value, start) for start, _, key, value, *_ in rows],
        [(text, None if text is not None else row[3]) for text, row in zip(texts, rows, strict=True)],
        [(text,) for text in texts],
    ]


def counts(row, keeps) -> bool:
    names = {"key": row[2], "value": row[3]}
    return all((names[keep.column] in keep.values) != keep.inverted for keep in keeps)


@settings(max_examples=40)
@given(ROWS, LAYOUTS, KEEPS, st.sampled_from([(512, True), (512, False), (1 << 22, False)]))
def test_whole_columns_equal_the_rows_of_sqlite(tmp_path_factory, rows, layout, keeps, way):
    stretch, early = way
    path = build(tmp_path_factory.getbasetemp() / "x.sqlite", rows, *layout)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite_whole, "RANGE_BYTES", stretch)
        kept = [row for row in rows if counts(row, keeps)]
        assert whole(path, REQUESTS, keeps, early=early) == (len(kept), expected(kept))


@settings(max_examples=20)
@given(ROWS, st.data())
def test_rows_that_were_deleted_are_none(tmp_path_factory, rows, data):
    path = build(tmp_path_factory.getbasetemp() / "deleted.sqlite", [*rows, *rows])
    gone = data.draw(st.sets(st.integers(1, 2 * len(rows)))) if rows else set()
    with closing(sqlite3.connect(path)) as connection:
        connection.executemany("DELETE FROM x WHERE rowid = ?", [(number,) for number in gone])
        connection.commit()
        left = connection.execute("SELECT * FROM x").fetchall()
    assert whole(path, REQUESTS) == (len(left), expected(left))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite_whole, "RANGE_BYTES", 512)
        assert whole(path, REQUESTS, early=True) == (len(left), expected(left))


def prefetch_and_measure(path: Path, requests, room: int = 1 << 30) -> tuple[int, int, int | None]:
    """Return bytes of the started columns; then rows, and the least start, by measuring."""
    with pytest.MonkeyPatch.context() as patch, closing(Prefetch()) as prefetch, SqliteTables(path) as tables:
        patch.setattr(sqlite_whole, "RANGE_BYTES", 512)
        table = tables.whole("x")
        size = table.prefetch(prefetch, requests, [], room)
        rows, (bounds,) = table.measure((), (Number("start", pa.int64()),))
        return size, rows, bounds.least


MANY = [(start, start + 2, start % 3, start, None, None) for start in range(5, 505)]
START, END = Number("start", pa.int64()), Number("end", pa.int64())


def test_columns_are_prefetched_if_row_ids_give_the_number_of_rows(tmp_path):
    path = build(tmp_path / "x.sqlite", MANY)
    assert prefetch_and_measure(path, [START, END]) == (8_000, 500, 5)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE x SET rowid = rowid + 1000000")
        connection.commit()
    assert prefetch_and_measure(path, [START, END]) == (0, 500, 5)


def test_columns_are_prefetched_if_they_have_room_and_each_is_requested_once(tmp_path):
    path = build(tmp_path / "x.sqlite", MANY)
    assert prefetch_and_measure(path, [START, END], 8_000)[0] == 8_000
    assert prefetch_and_measure(path, [START, END], 7_999)[0] == 0
    assert prefetch_and_measure(path, [START, START])[0] == 0
    assert prefetch_and_measure(path, [Number("text", pa.int64())])[0] == 0


def test_few_rows_are_not_prefetched(tmp_path):
    assert prefetch_and_measure(build(tmp_path / "x.sqlite", MANY[:3]), [START]) == (0, 3, 5)


def test_prefetched_columns_count_for_all_rows_only(tmp_path):
    path = build(tmp_path / "x.sqlite", MANY)
    with pytest.MonkeyPatch.context() as patch, closing(Prefetch()) as prefetch, SqliteTables(path) as tables:
        patch.setattr(sqlite_whole, "RANGE_BYTES", 512)
        table = tables.whole("x")
        assert table.prefetch(prefetch, [START], [], 1 << 30) == 4_000
        assert table.columns((Keep("key", (0,)),), (START,), lambda _: None)[0] == 167
        assert table.columns((), (START,), lambda _: None)[0] == 500


@given(st.sets(st.integers(0, 120)), st.integers(1, 2000))
@settings(max_examples=10)
def test_strange_row_ids_give_the_same_rows(tmp_path_factory, gone, factor):
    path = build(tmp_path_factory.getbasetemp() / "ids.sqlite", MANY)
    with closing(sqlite3.connect(path)) as connection:
        connection.executemany("DELETE FROM x WHERE rowid = ?", [(number,) for number in gone])
        connection.execute("UPDATE x SET rowid = -rowid * ?", (factor,))
        connection.execute("INSERT INTO x SELECT * FROM x LIMIT ?", (len(gone),))
        connection.commit()
        left = connection.execute("SELECT * FROM x").fetchall()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite_whole, "RANGE_BYTES", 512)
        assert whole(path, REQUESTS, early=True) == (len(left), expected(left))


def test_what_did_not_fit_is_counted(tmp_path):
    rows = [(10, 15, 1, 2**40, None, None), (10, 9, None, -1, "a", None), (10, None, 1, 5, "a", None)]
    with SqliteTables(build(tmp_path / "x.sqlite", rows)) as tables:
        _, (value, lasting, text) = tables.whole("x").columns(
            (), (REQUESTS[1], REQUESTS[3], Label("text")), lambda _: None
        )
    assert (value.least, value.most, value.missing, value.beyond) == (-1, 2**40, 2, 1)
    assert (lasting.missing, lasting.beyond) == (2, 1)
    assert (text.keys["text"].to_pylist(), text.rows.tolist()) == ([None, b"a"], [1, 2])


def test_measuring_makes_no_columns(tmp_path):
    path = build(tmp_path / "x.sqlite", [(start, start + 2, start % 3, start, None, None) for start in range(1_000)])
    with SqliteTables(path) as tables:
        rows, (bounds, keys) = tables.whole("x").measure((Keep("key", (0, 2)),), (REQUESTS[0], REQUESTS[4]))
    assert (rows, bounds.least, bounds.most, bounds.array) == (667, 0, 999, None)
    assert (keys.keys["key"].to_pylist(), keys.rows.tolist(), keys.codes) == ([0, 2], [334, 333], None)


def test_older_rows_with_fewer_columns_are_left_to_sqlite(tmp_path):
    path = build(tmp_path / "x.sqlite", [(1, 2, 3, 4, None, None)])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("ALTER TABLE x ADD COLUMN late INTEGER DEFAULT 8")
        connection.commit()
    with SqliteTables(path) as tables, pytest.raises(NotPlainError):
        tables.whole("x").measure((), (Number("start", pa.int64()),))


@pytest.mark.parametrize("odd", [1.5, "text", b"blob"])
def test_an_integer_column_with_something_else_is_left_to_sqlite(tmp_path, odd):
    path = build(tmp_path / "x.sqlite", [(1, 2, 3, 4, None, None)] * 90 + [(1, 2, odd, 4, None, None)])
    with SqliteTables(path) as tables:
        with pytest.raises(NotPlainError):
            tables.whole("x").columns((), (Combination(("key",)),), lambda _: None)
        assert tables.whole("x").columns((), (REQUESTS[3],), lambda _: None)[1][0].array.to_pylist() == [1] * 91


def test_a_text_that_continues_on_another_page_is_left_to_sqlite(tmp_path):
    path = build(tmp_path / "x.sqlite", [(1, 2, 3, 4, "long" * 200, None)])
    with SqliteTables(path) as tables, pytest.raises(NotPlainError):
        tables.whole("x").columns((), (Label("text"),), lambda _: None)


def test_texts_in_utf_16_are_left_to_sqlite(tmp_path):
    path = tmp_path / "x.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA encoding = 'UTF-16le'")
        connection.execute(f"CREATE TABLE x ({COLUMNS})")
        connection.execute("INSERT INTO x VALUES (1, 2, 3, 4, 'a', NULL)")
        connection.commit()
    with SqliteTables(path) as tables, pytest.raises(NotPlainError):
        tables.whole("x").columns((), (Label("text"),), lambda _: None)


@pytest.mark.parametrize("what", ["view", "without rowid", "log", "key"])
def test_what_is_no_plain_table_is_not_made_whole(tmp_path, what):
    path = tmp_path / "x.sqlite"
    made = {
        "view": "CREATE VIEW x AS SELECT 1 AS a",
        "without rowid": "CREATE TABLE x (a INTEGER, b INTEGER PRIMARY KEY) WITHOUT ROWID",
        "log": "CREATE TABLE x (a INTEGER)",
        "key": "CREATE TABLE x (a INTEGER PRIMARY KEY)",
    }
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(made[what])
        if what == "log":
            connection.execute("PRAGMA journal_mode = wal")
    with SqliteTables(path) as tables:
        table = tables.whole("x")
        if table is not None:
            with pytest.raises(NotPlainError):
                table.measure((), (Number("a", pa.int64()),))


@pytest.fixture(scope="module")
def intact(tmp_path_factory) -> bytes:
    longer = {9: "y" * 600}
    rows = [(number, number + 3, number % 3, number * 2**33, "abc", longer.get(number)) for number in range(400)]
    return build(tmp_path_factory.mktemp("spoilt") / "x.sqlite", rows).read_bytes()


CHANGES = st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=3)


@settings(max_examples=80)
@given(CHANGES, st.booleans())
def test_changed_bytes_never_give_rows_that_sqlite_does_not_give(tmp_path_factory, intact, changes, in_headers):
    content = bytearray(intact)
    for place, byte in changes:
        spot = 512 + int(place * (len(content) - 512))
        content[spot - spot % 512 + spot % 16 if in_headers else spot] = byte
    path = tmp_path_factory.getbasetemp() / "changed.sqlite"
    path.write_bytes(content)
    requests = Number("start", pa.int64()), Number("value", pa.int64())
    try:
        with SqliteTables(path) as tables:
            table = tables.whole("x")
            results = [] if table is None else table.columns((), requests, lambda _: None)[1]
    except (NotPlainError, DamagedTraceError):
        return
    if not results:
        return
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT start, value FROM x").fetchall()
    assert list(zip(*(result.array.to_pylist() for result in results), strict=True)) == rows


def trace(path: Path, scanner: str):
    """Return the tables of a reader, or its message."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRACEVIZ_SCANNER", scanner)
        try:
            return {name: table.to_pylist() for name, table in NsysSqliteReader().tables(path, ReadRequest())}
        except DamagedTraceError:
            return "damaged"


@settings(max_examples=20, deadline=None)
@given(CHANGES)
def test_a_spoilt_trace_reads_the_same_with_and_without_the_compiled_decoder(tmp_path_factory, changes):
    path = tmp_path_factory.getbasetemp() / "trace.sqlite"
    kernels = [
        {"start": 10 * number, "end": 10 * number + 7, "deviceId": 0, "contextId": 1, "streamId": 7 + number % 2}
        | {"correlationId": number, "globalPid": database.process(5), "demangledName": 1 + number % 3}
        for number in range(300)
    ]
    ranges = [
        {"start": 5 * number, "end": 5 * number + 3, "eventType": 59, "globalTid": database.thread(5, 5)}
        | {"text": f"range {number % 4}" if number % 3 else None, "textId": 1 if number % 2 else None}
        for number in range(200)
    ]
    path.unlink(missing_ok=True)
    tables = {"CUPTI_ACTIVITY_KIND_KERNEL": kernels, "NVTX_EVENTS": ranges}
    database.build(path, tables, database.NEW, ["a", "b", "c"])
    content = bytearray(path.read_bytes())
    for place, byte in changes:
        content[4096 + int(place * (len(content) - 4096))] = byte
    path.write_bytes(content)
    assert trace(path, "compiled") == trace(path, "numpy")
