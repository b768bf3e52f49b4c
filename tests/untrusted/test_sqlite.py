"""Databases that make SQLite compute: each is a small file that would take gigabytes or hours."""

import shutil
import sqlite3
from contextlib import closing

import pytest

import traceviz
from tests.conftest import REPOSITORY
from tests.support.command import run
from traceviz.core.errors import DamagedTraceError
from traceviz.parsers.shared.sqlite.tables import SqliteTables
from traceviz.untrusted import sqlite as foreign_sqlite
from traceviz.untrusted.sqlite import foreign_database, in_words, strange_tables

_LONG = "x" * 100_000


def database(path, script):
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
    return path


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("CREATE TABLE t (a INTEGER, b TEXT DEFAULT 'none', c AS_IS)", {}),
        ("CREATE TABLE t (a); CREATE INDEX i ON t (a)", {}),
        ("CREATE VIEW t AS SELECT 1 AS a", {"t": "a view"}),
        ("CREATE TABLE t (a, b AS (hex(zeroblob(100000000))))", {"t": "a table with generated columns"}),
        ("CREATE TABLE t (a, b AS (a + 1) STORED)", {"t": "a table with generated columns"}),
        ("CREATE VIRTUAL TABLE t USING fts5(a)", {"t": "a virtual table"}),
        (f"CREATE TABLE t (a, b TEXT DEFAULT '{_LONG}')", {"t": "a table that fills in long values"}),
        (
            "CREATE TABLE t (a); CREATE TRIGGER g AFTER INSERT ON t BEGIN DELETE FROM t; END",
            {"t": "a table with triggers"},
        ),
    ],
)
def test_what_is_no_plain_table_is_named(tmp_path, script, expected):
    with foreign_database(database(tmp_path / "a.sqlite", script)) as connection:
        found = {name: what for name, what in strange_tables(connection).items() if not name.startswith("t_")}
    assert found == expected


def test_a_value_is_not_longer_than_a_file_of_that_size_may_hold(tmp_path):
    path = database(tmp_path / "a.sqlite", "CREATE TABLE t (a)")
    with foreign_database(path) as connection:
        assert connection.execute("SELECT length(zeroblob(1000000))").fetchone() == (1_000_000,)
        with pytest.raises(sqlite3.DataError) as raised:
            connection.execute("SELECT hex(zeroblob(1000000))").fetchone()
    assert in_words(raised.value) == "A value is longer than the file"


def test_the_longest_value_of_a_file_is_read(tmp_path):
    path = database(tmp_path / "a.sqlite", "CREATE TABLE t (a)")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO t VALUES (?)", ("é" * 3_000_000,))
    with foreign_database(path) as connection:
        assert connection.execute("SELECT length(a) FROM t").fetchone() == (3_000_000,)


def test_a_query_without_end_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(foreign_sqlite, "_LEAST_STEPS", 3_000_000)
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
    path = database(tmp_path / "a.sqlite", f"CREATE VIEW t AS {endless}")
    with foreign_database(path) as connection, pytest.raises(sqlite3.OperationalError) as raised:
        connection.execute("SELECT * FROM t").fetchone()
    assert in_words(raised.value) == "Reading it takes more steps than a file of its size can need"


def test_nothing_is_written(tmp_path):
    path = database(tmp_path / "a.sqlite", "CREATE TABLE t (a)")
    with foreign_database(path) as connection, pytest.raises(sqlite3.OperationalError, match="readonly"):
        connection.execute("INSERT INTO t VALUES (1)")


_STRINGS = {
    "generated": "CREATE TABLE StringIds (id INTEGER, value TEXT AS (hex(zeroblob(100000000))) VIRTUAL);"
    "INSERT INTO StringIds (id) SELECT id FROM kept;",
    "view": "CREATE VIEW StringIds AS SELECT id, hex(zeroblob(100000000)) AS value FROM kept;",
    "endless": "CREATE VIEW StringIds AS WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) "
    "SELECT id, 'x' AS value FROM n;",
    "default": "CREATE TABLE StringIds (id INTEGER); INSERT INTO StringIds (id) SELECT id FROM kept;"
    f"ALTER TABLE StringIds ADD COLUMN value TEXT DEFAULT '{_LONG}';",
}
_WHAT = {"generated": "generated columns", "view": "a view", "endless": "a view", "default": "fills in long values"}


@pytest.fixture(params=sorted(_STRINGS))
def hostile(request, tmp_path):
    """An export whose strings are computed, and the message about it."""
    path = tmp_path / "trace.sqlite"
    shutil.copyfile(REPOSITORY / "sample_traces" / "synthetic" / "healthy.sqlite", path)
    script = "CREATE TABLE kept AS SELECT * FROM StringIds; DROP TABLE StringIds;" + _STRINGS[request.param]
    return database(path, script), _WHAT[request.param]


@pytest.mark.process
def test_an_export_whose_strings_are_computed_is_refused(hostile):
    path, what = hostile
    with pytest.raises(DamagedTraceError) as raised, traceviz.open(path) as trace:
        assert trace.kernels.num_rows < 0
    assert raised.value.what == "Table StringIds of trace.sqlite is not as a profiler writes it."
    assert what in raised.value.why


@pytest.mark.process
def test_scrub_copies_nothing_that_is_computed(hostile, tmp_path):
    path, what = hostile
    done = run("scrub", path, "-o", tmp_path / "clean.sqlite")
    if "view" in what:  # what is no table is not copied, and then there is nothing to read the names from
        assert (done.returncode, (tmp_path / "clean.sqlite").stat().st_size < 2 * path.stat().st_size) == (0, True)
    else:
        assert (done.returncode, "Table StringIds is not as a profiler writes it." in done.stderr) == (3, True)


@pytest.mark.process
def test_a_view_that_nobody_reads_does_no_harm(tmp_path):
    path = tmp_path / "trace.sqlite"
    shutil.copyfile(REPOSITORY / "sample_traces" / "synthetic" / "healthy.sqlite", path)
    before = run("report", path, "--format", "json").stdout
    database(path, "CREATE VIEW slowest AS SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL ORDER BY end - start")
    assert run("report", path, "--format", "json").stdout == before


def grown(path, rows=300, times=400):
    """Return a table ``t`` of ``rows`` rows on one page, which its tree names ``times`` times."""
    database(path, "PRAGMA page_size = 4096; CREATE TABLE t (id INTEGER, value TEXT)")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executemany("INSERT INTO t VALUES (?, ?)", ((number, "x") for number in range(rows)))
    pages = bytearray(path.read_bytes())
    count = len(pages) // 4096
    leaf, child = bytes(pages[-4096:]), (count + 1).to_bytes(4, "big")
    cells = b"".join(child + bytes([0x81, number % 128]) for number in range(times))
    begin = 4096 - len(cells)
    header = b"\x05\0\0" + times.to_bytes(2, "big") + begin.to_bytes(2, "big") + b"\0" + child
    pointers = b"".join((begin + 6 * number).to_bytes(2, "big") for number in range(times))
    pages[-4096:] = (header + pointers).ljust(begin, b"\0") + cells
    pages[28:32] = (count + 1).to_bytes(4, "big")
    path.write_bytes(pages + leaf)
    return path


@pytest.mark.parametrize("texts", [(), ("value",)])
def test_a_tree_that_names_a_page_many_times_holds_more_than_the_file(tmp_path, texts):
    path = grown(tmp_path / "a.sqlite")
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (300 * 401,)
    with SqliteTables(path) as raw, pytest.raises(DamagedTraceError, match="More rows or texts than the file has room"):
        list(raw.stream("t", ("id",), texts))


def test_a_table_of_the_smallest_rows_has_room(tmp_path):
    """Nothing is stored of the numbers 0 and 1 and of no text: six bytes a row."""
    path = database(tmp_path / "a.sqlite", "PRAGMA page_size = 65536; CREATE TABLE t (id INTEGER, value TEXT)")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executemany("INSERT INTO t VALUES (?, NULL)", ((number % 2,) for number in range(100_000)))
    with SqliteTables(path) as raw:
        assert sum(batch.num_rows for batch in raw.stream("t", ("id",), ("value",))) == 100_000
