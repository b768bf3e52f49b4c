"""Decoding pages gives what SQLite gives, row for row, or refuses: on made, real and damaged databases."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import REPOSITORY
from traceviz.core.errors import DamagedTraceError
from traceviz.parsers.base import ReadRequest
from traceviz.parsers.nsys.readers import NsysSqliteReader
from traceviz.parsers.shared.arrays.native import decoder
from traceviz.parsers.shared.events.column_requests import NotPlainError
from traceviz.parsers.shared.events.mapping import Keep
from traceviz.parsers.shared.sqlite import arrow as sqlite_arrow
from traceviz.parsers.shared.sqlite import pages as sqlite_pages
from traceviz.parsers.shared.sqlite.pages import Pages, read_integers
from traceviz.parsers.shared.sqlite.tables import SqliteTables
from traceviz.trace.tables import TraceTables

SAMPLES = REPOSITORY / "sample_traces"
PUBLIC = Path(os.environ["TRACEVIZ_TRACES"]) / "nsys" if os.environ.get("TRACEVIZ_TRACES") else None
DATABASES = sorted(SAMPLES.glob("*/*.sqlite")) + sorted(PUBLIC.glob("*.sqlite") if PUBLIC else [])
DATABASES = [path for path in DATABASES if path.read_bytes()[:6] == b"SQLite"]


pytestmark = pytest.mark.skipif(decoder() is None, reason="the package was built without a C compiler")
INTEGERS = st.one_of(st.none(), st.sampled_from([0, 1]), *(st.integers(-(2**n), 2**n - 1) for n in (7, 15, 31, 47, 63)))
TEXTS = st.one_of(st.none(), st.text(max_size=4), st.integers(0, 250).map("x".__mul__), st.just("y" * 9_000))


def build(path: Path, rows, page_size: int = 512, declared: str = "a INTEGER, b INT, t TEXT, c BIGINT") -> Path:
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA page_size = {page_size}")
        connection.execute(f"CREATE TABLE x ({declared})")
        if rows:
            connection.executemany(f"INSERT INTO x VALUES ({', '.join('?' * len(rows[0]))})", rows)
        connection.commit()
    return path


def root_of(path: Path, table: str = "x") -> int:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()[0]


def by_pages(path: Path, root: int, width: int, positions) -> list[tuple]:
    rows = []
    for decoded in read_integers(path, root, width, positions):
        columns = [
            [None] * column.rows if column.values is None else pa.array(column.values, mask=column.missing).to_pylist()
            for column in decoded
        ]
        rows += zip(*columns, strict=True)
    return rows


def by_stream(path: Path, *columns: str, keep: Keep | None = None) -> list[tuple]:
    with SqliteTables(path) as tables:
        return [tuple(row.values()) for batch in tables.stream("x", columns, (), keep) for row in batch.to_pylist()]


def by_sqlite(path: Path, columns: str, condition: str = "") -> list[tuple]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(f"SELECT {columns} FROM x {condition}").fetchall()


@given(st.lists(st.tuples(INTEGERS, INTEGERS, TEXTS, INTEGERS), max_size=200), st.sampled_from([512, 1024, 65536]))
def test_rows_equal_those_of_sqlite(tmp_path_factory, rows, page_size):
    path = build(tmp_path_factory.mktemp("pages") / "x.sqlite", rows, page_size)
    assert by_stream(path, "c", "a") == [(c, a) for a, _, _, c in rows]
    short = [row for row in rows if len(row[2] or "") < 50]
    root = root_of(build(path, short, page_size))
    assert by_pages(path, root, 4, [0, 1, 3]) == [(a, b, c) for a, b, _, c in short]


@pytest.mark.parametrize("chunk", [512, 4096, 1 << 20])
def test_chunks_keep_the_order_of_the_rows(tmp_path, monkeypatch, chunk):
    monkeypatch.setattr(sqlite_pages, "CHUNK_BYTES", chunk)
    rows = [(number, -number, None, number * 10**9) for number in range(5_000)]
    path = build(tmp_path / "x.sqlite", rows)
    assert by_pages(path, root_of(path), 4, [3, 0]) == [(c, a) for a, _, _, c in rows]


def test_a_table_without_rows_has_none(tmp_path):
    path = build(tmp_path / "x.sqlite", [])
    assert by_pages(path, root_of(path), 4, [0, 3]) == []


def test_negative_and_scattered_row_ids_do_not_matter(tmp_path):
    path = build(tmp_path / "x.sqlite", [])
    with closing(sqlite3.connect(path)) as connection:
        ids = [-(2**63), -5, 0, 127, 128, 2**35, 2**63 - 1]
        connection.executemany(
            "INSERT INTO x (rowid, a) VALUES (?, ?)", [(number, place) for place, number in enumerate(ids)]
        )
        connection.commit()
    assert by_pages(path, root_of(path), 4, [0]) == [(place,) for place in range(7)]


@pytest.mark.parametrize("odd", [1.5, "text", b"blob", "long" * 30])
def test_a_value_that_is_no_integer_is_not_plain(tmp_path, odd):
    path = build(tmp_path / "x.sqlite", [(1, 2, None, 3)] * 200 + [(1, odd, None, 3)])
    with pytest.raises(NotPlainError):
        by_pages(path, root_of(path), 4, [1])
    assert by_pages(path, root_of(path), 4, [0]) == [(1,)] * 201


@pytest.mark.parametrize("few", [0, 10_000])
def test_rows_after_one_that_is_not_plain_are_read_once(tmp_path, monkeypatch, few):
    monkeypatch.setattr(sqlite_pages, "CHUNK_BYTES", 512)
    monkeypatch.setattr(sqlite_arrow, "FEW_ROWS", few)
    rows = [(number, number % 3, "z" * 5_000 if number == 900 else None, 7) for number in range(1_500)]
    path = build(tmp_path / "x.sqlite", rows)
    assert len(list(by_pages_until_refused(path))) > 100
    assert by_stream(path, "a") == [(number,) for number in range(1_500)]
    kept = by_stream(path, "a", keep=Keep("b", (1, 2), inverted=True))
    assert [row[0] for row in kept] == list(range(0, 1_500, 3))


def by_pages_until_refused(path: Path):
    try:
        for decoded in read_integers(path, root_of(path), 4, [0]):
            yield from decoded[0].values
    except NotPlainError:
        return


def test_a_column_that_was_added_later_is_null_in_older_rows(tmp_path):
    path = build(tmp_path / "x.sqlite", [(1, 2, None, 3)])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("ALTER TABLE x ADD COLUMN d INTEGER DEFAULT 8")
        connection.execute("INSERT INTO x VALUES (1, 2, NULL, 3, 4)")
        connection.commit()
    assert by_stream(path, "d", "a") == [(8, 1), (4, 1)]


@pytest.mark.parametrize(
    ("declared", "columns", "expected"),
    [
        ("a INTEGER PRIMARY KEY, b INTEGER", ("a", "b"), [(1, 10), (2, 20)]),
        ("a INTEGER, b INTEGER, PRIMARY KEY (a)", ("a",), [(1,), (2,)]),
        ("a INTEGER, b INTEGER, PRIMARY KEY (b, a)) WITHOUT ROWID --", ("a", "b"), [(1, 10), (2, 20)]),
        ("a, b", ("a",), [(1,), (2,)]),
    ],
)
def test_what_is_stored_otherwise_is_left_to_sqlite(tmp_path, declared, columns, expected):
    path = tmp_path / "x.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"CREATE TABLE x ({declared}\n" + ("" if "WITHOUT" in declared else ")"))
        connection.execute("INSERT INTO x (a, b) VALUES (1, 10), (2, 20)")
        connection.commit()
    assert by_stream(path, *columns) == expected


def test_integers_in_a_column_of_floats_are_not_taken_for_integers(tmp_path):
    path = build(tmp_path / "x.sqlite", [(1.5, 2), (2.0, 2)], declared="a REAL, b INTEGER")
    assert by_stream(path, "b") == [(2,), (2,)]
    with pytest.raises(DamagedTraceError, match="Table x"):
        by_stream(path, "a")


def test_databases_with_a_write_ahead_log_are_left_to_sqlite(tmp_path):
    path = build(tmp_path / "x.sqlite", [(1, 2, None, 3)])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = wal")
    with pytest.raises(NotPlainError):
        Pages(path)
    assert by_stream(path, "c") == [(3,)]


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0", bytes(100), b"\xff" * 4096])
def test_what_is_no_database_is_refused(tmp_path, content):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(NotPlainError):
        list(read_integers(tmp_path / "x", 2, 1, [0]))


@pytest.mark.parametrize("root", [-1, 0, 1, 10**6, 2**62])
def test_root_pages_that_do_not_exist_are_refused(tmp_path, root):
    path = build(tmp_path / "x.sqlite", [(1, 2, None, 3)])
    with pytest.raises(NotPlainError):
        by_pages(path, root, 4, [0])


ROWS = [(number, 3 - number, "abc" if number % 7 else None, number * 2**33) for number in range(400)]


@pytest.fixture(scope="module")
def intact(tmp_path_factory) -> tuple[bytes, int]:
    path = build(tmp_path_factory.mktemp("fuzz") / "x.sqlite", ROWS)
    return path.read_bytes(), root_of(path)


@settings(max_examples=160)
@given(
    st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=3), st.booleans()
)
def test_changed_bytes_never_give_rows_that_sqlite_does_not_give(tmp_path_factory, intact, changes, in_headers):
    content = bytearray(intact[0])
    for place, byte in changes:
        spot = 512 + int(place * (len(content) - 512))
        content[spot - spot % 512 + spot % 16 if in_headers else spot] = byte
    path = tmp_path_factory.getbasetemp() / "changed.sqlite"
    path.write_bytes(content)
    try:
        rows = by_pages(path, intact[1], 4, [0, 1, 3])
    except NotPlainError:
        return
    assert rows == by_sqlite(path, "a, b, c")


@settings(max_examples=60)
@given(st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=4))
def test_a_damaged_table_is_read_as_sqlite_reads_it_or_said_to_be_damaged(tmp_path_factory, intact, changes):
    content = bytearray(intact[0])
    for place, byte in changes:
        content[int(place * len(content))] = byte
    path = tmp_path_factory.getbasetemp() / "damaged.sqlite"
    path.write_bytes(content)
    try:
        rows = by_stream(path, "a", "b", "c")
    except (DamagedTraceError, KeyError):  # no table x any more
        return
    assert rows == by_sqlite(path, "a, b, c")


def all_tables(path: Path) -> TraceTables:
    return TraceTables(dict(NsysSqliteReader().read(path, ReadRequest())))


@pytest.mark.parametrize("path", DATABASES, ids=lambda path: path.name)
def test_every_way_of_reading_gives_the_same_tables(path, monkeypatch):
    from_pages = all_tables(path)
    monkeypatch.setenv("TRACEVIZ_SCANNER", "numpy")
    by_python = all_tables(path)
    monkeypatch.setattr(sqlite_arrow, "FEW_ROWS", 0)
    by_driver = all_tables(path)
    assert len(list(from_pages)) >= 5
    for name in from_pages:
        assert from_pages.arrow(name).equals(by_python.arrow(name)), name
        assert from_pages.arrow(name).equals(by_driver.arrow(name)), name
