"""Queries over an archive: visible tables, refusals, messages for wrong queries, and settings of DuckDB."""

import shutil
import signal
import threading
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.analyses.builders import tables
from tests.archive.small_archives import GEMM, RELU, add_rows, add_trace, documented, half_written, new_archive
from traceviz.archive.catalogue import segments as catalogue
from traceviz.archive.catalogue.columns import CATALOGUE
from traceviz.archive.query import engine as settings
from traceviz.archive.query.engine import SETTINGS, Engine, connect
from traceviz.archive.query.where import where
from traceviz.archive.storage import layout
from traceviz.archive.storage.store import Store
from traceviz.core.errors import DamagedTraceError, MissingToolError, TracevizError, UsageError
from traceviz.gates.metrics import METRICS
from traceviz.trace.schema import TABLES

BY_NAME = {setting.name: setting for setting in SETTINGS}


@pytest.fixture(scope="module")
def documented_store(tmp_path_factory):
    return documented(tmp_path_factory.mktemp("settings") / "archive")


@pytest.fixture
def database():
    with duckdb.connect(":memory:") as connection:
        yield connection


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("1 / 0", None),
        ("1 % 0", None),
        ("1 // 0", None),
        ("-1.5 / 0", None),
        ("sum(dur_ns) / (count(*) - count(*))", None),
        ("sum(dur_ns) // count(*)", 671 // 8),
        ("7 / 2", 3.5),
        ("list(1 ORDER BY 1)", [1] * 8),
        ("(SELECT list(x ORDER BY x) FROM (VALUES (2), (NULL), (1)) AS t(x))", [1, 2, None]),
        ("(SELECT list(x ORDER BY x DESC) FROM (VALUES (2), (NULL), (1)) AS t(x))", [2, 1, None]),
        ("'a' = 'A'", False),
        ("(TIMESTAMPTZ '2026-07-01 00:30:00+02')::DATE::VARCHAR", "2026-06-30"),
    ],
)
def test_answers_are_as_documented_in_every_version_of_the_engine(documented_store, expression, expected) -> None:
    with Engine(documented_store) as engine:
        assert engine.sql(f"SELECT any_value(v) FROM (SELECT {expression} AS v FROM kernels)").to_pydict() == {
            "any_value(v)": [expected]
        }


def test_a_condition_that_divides_by_zero_holds_for_no_row(documented_store) -> None:
    listed = catalogue.read(documented_store)
    assert listed.height == 6
    assert [where(listed, f"1 {sign} (rank - rank) is null").height for sign in ("/", "//", "%")] == [6, 6, 6]
    assert where(listed, "1 / (rank - rank) > 0").height == 0


@pytest.mark.parametrize("name", BY_NAME)
def test_each_trial_notices_another_value_of_its_setting(database, name) -> None:
    other = {
        "TimeZone": "'Asia/Tokyo'",
        "error_on_division_by_zero": "true",
        "ieee_floating_point_ops": "true",
        "integer_division": "true",
        "default_order": "'DESCENDING'",
        "default_null_order": "'NULLS_FIRST'",
        "default_collation": "'NOCASE'",
        "enable_external_access": "true",
        "lock_configuration": "false",
    }
    database.execute("SET GLOBAL ieee_floating_point_ops = false")
    with pytest.raises(MissingToolError, match=f"does not apply {name} = ") as caught:
        settings.apply(database, [replace(BY_NAME[name], value=other[name])])
    assert (caught.value.exit_code, BY_NAME[name].trial in caught.value.why) == (3, True)
    assert duckdb.__version__ in caught.value.what
    assert "Install another version of DuckDB" in caught.value.fix


def test_settings_hold_for_all_cursors(tmp_path) -> None:
    with connect(str(tmp_path)) as connection, connection.cursor() as first, connection.cursor() as second:
        for cursor in (connection, first, second, second.cursor()):
            assert cursor.execute("SELECT 1 % i FROM range(2) AS t(i)").fetchall() == [(None,), (0,)]


def test_no_query_runs_if_a_setting_has_no_effect(documented_store, monkeypatch) -> None:
    broken = replace(BY_NAME["ieee_floating_point_ops"], value="true")
    monkeypatch.setattr(settings.apply, "__defaults__", ((broken,),))
    with pytest.raises(MissingToolError, match="ieee_floating_point_ops"):
        Engine(documented_store)
    with pytest.raises(MissingToolError, match="ieee_floating_point_ops"):
        where(catalogue.read(documented_store), "rank / 0 > 1")


A1, A2, B1 = "a000000000000001", "a000000000000002", "b000000000000001"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return documented(tmp_path_factory.mktemp("asked") / "archive")


@pytest.fixture(scope="module")
def engine(store):
    with Engine(store) as opened:
        yield opened


def value_of(engine, text, parameters=None):
    """Return the only value of an answer."""
    table = engine.sql(text, parameters)
    assert (table.num_rows, table.num_columns) == (1, 1)
    return table.column(0)[0].as_py()


def files_below(folder):
    return sorted((str(path), path.stat().st_mtime_ns) for path in Path(folder).rglob("*"))


@pytest.mark.parametrize("name", TABLES)
def test_every_table_of_the_contract_has_its_columns_whether_or_not_a_trace_has_it(engine, name) -> None:
    answer = engine.sql(f"FROM {name}").schema
    declared = TABLES[name].arrow
    behind = [] if name == "run" else ["format"]
    assert answer.names == ["trace_id", *declared.names, *behind]
    plain = [field.type.value_type if pa.types.is_dictionary(field.type) else field.type for field in declared]
    assert answer.types == [pa.string(), *plain, *([pa.string()] if behind else [])]


def test_rows_of_all_traces_are_one_table_with_their_trace_and_format(engine) -> None:
    answer = engine.sql(
        "SELECT trace_id, format, count(*) AS n, sum(dur_ns) AS ns FROM kernels GROUP BY ALL ORDER BY 1"
    )
    assert list(map(tuple, map(dict.values, answer.to_pylist()))) == [
        (A1, "nsys", 3, 250),
        (A2, "nsys", 3, 371),
        (B1, "kineto", 2, 50),
    ]


def test_a_query_over_all_traces_agrees_with_polars_over_their_files(engine, store) -> None:
    files = sorted(Path(store.url).glob("traces/*/*/cuda_api.parquet"))
    expected = pl.concat(pl.read_parquet(file, columns=["name", "dur_ns"]).cast({"name": pl.String}) for file in files)
    by_name = expected.group_by("name").agg(pl.len().cast(pl.Int64).alias("n"), pl.col("dur_ns").sum()).sort("name")
    answer = engine.sql("SELECT name, count(*) AS n, sum(dur_ns) AS dur_ns FROM cuda_api GROUP BY name ORDER BY name")
    assert pl.from_arrow(answer).equals(by_name)
    assert by_name.height == 3


def test_ids_of_digits_stay_text(tmp_path) -> None:
    store = new_archive(tmp_path / "archive")
    add_trace(store, "0000000000000012", tables(kernels=[(0, 5, GEMM)]))
    with Engine(store) as engine:
        assert (
            value_of(engine, "SELECT trace_id FROM kernels WHERE trace_id = '0000000000000012'") == "0000000000000012"
        )


def test_joined_with_traces_events_count_once_however_many_ranks(engine) -> None:
    assert value_of(engine, "SELECT count(*) FROM kernels JOIN traces USING (trace_id)") == 8
    assert value_of(engine, "SELECT count(*) FROM kernels JOIN catalogue USING (trace_id)") == 10  # two ranks: twice
    answer = engine.sql("SELECT trace_id, rank, ranks FROM traces ORDER BY trace_id").to_pylist()
    assert [tuple(row.values()) for row in answer] == [(A1, None, 1), (A2, None, 1), (B1, None, 2)]
    figures = {"launch_bound", "exposed_api_ns", *(value_of.name for value_of in METRICS)}
    of_reports = {"span_ns", "steps", "verdict", "sentence", "cause", "findings"}
    per_trace = set(CATALOGUE.names) - {"rank", "state", "error", "changed_ns", "devices"} - of_reports - figures
    assert per_trace <= set(engine.sql("FROM traces").column_names)


def test_the_catalogue_names_what_is_quarantined_and_not_what_was_removed(engine) -> None:
    answer = engine.sql("SELECT state, count(*) AS n FROM catalogue GROUP BY state ORDER BY state").to_pylist()
    assert answer == [{"state": "quarantined", "n": 1}, {"state": "ready", "n": 4}]
    assert value_of(engine, "SELECT error FROM catalogue WHERE state = 'quarantined'") == "no trace"


def test_moments_are_timestamps_and_tags_are_asked_by_name(engine) -> None:
    assert str(value_of(engine, "SELECT max(recorded) FROM catalogue")) == "2026-06-09 10:13:20"
    assert value_of(engine, "SELECT count(*) FROM traces WHERE recorded >= '2026-06-01'") == 1
    assert value_of(engine, "SELECT trace_id FROM traces WHERE tags['release'] = '1.1'") == A2
    assert engine.sql("FROM tags ORDER BY trace_id").to_pylist() == [
        {"trace_id": A1, "key": "release", "value": "1.0"},
        {"trace_id": A2, "key": "release", "value": "1.1"},
    ]


def test_traces_that_are_being_written_were_removed_or_quarantined_never_show(tmp_path) -> None:
    store = new_archive(tmp_path / "archive")
    add_trace(store, "1a", tables(kernels=[(0, 1, GEMM)]))
    half_written(store, "2a", tables(kernels=[(0, 10, GEMM)]))
    add_trace(store, "3a", tables(kernels=[(0, 100, GEMM)]))
    add_rows(store, {"trace_id": "3a", "state": "removed", "format": "nsys", "changed_ns": 2**62})
    orphan = Path(store.url, *layout.trace_parts("nsys", "4a"))
    shutil.copytree(Path(store.url, *layout.trace_parts("nsys", "1a")), orphan)  # no row of the catalogue
    with Engine(store) as engine:
        assert engine.missing == ()
        assert value_of(engine, "SELECT sum(dur_ns) FROM kernels") == 1
        assert engine.missing == ("2a",)


def test_columns_that_an_older_schema_lacks_are_null(tmp_path) -> None:
    store = new_archive(tmp_path / "archive")
    for trace_id, seconds in (("1a", 1), ("2a", 2)):
        add_trace(store, trace_id, tables(kernels=[(0, seconds, GEMM, {"module": "jit_step"})]))
    for trace_id, lacks in (("1a", ["module", "achieved_occupancy"]), ("2a", [])):
        file = Path(store.url, *layout.trace_parts("nsys", trace_id), "kernels.parquet")
        pq.write_table(pq.read_table(file, partitioning=None).drop_columns(lacks), file)
    with Engine(store) as engine:
        answer = engine.sql("SELECT trace_id, dur_ns, module FROM kernels ORDER BY trace_id").to_pylist()
    assert [tuple(row.values()) for row in answer] == [("1a", 1, None), ("2a", 2, "jit_step")]


def test_an_archive_without_traces_answers_with_nothing(tmp_path) -> None:
    with Engine(new_archive(tmp_path / "archive")) as engine:
        assert value_of(engine, "SELECT count(*) FROM kernels JOIN traces USING (trace_id)") == 0
        assert value_of(engine, "SELECT count(*) FROM catalogue") == 0
        assert engine.sql("FROM findings").num_rows == 0


def test_what_is_no_archive_is_refused(tmp_path) -> None:
    with pytest.raises(UsageError, match="is not an archive"):
        Engine(new_archive(tmp_path / "archive").at(tmp_path))


@pytest.mark.parametrize("name", ["a[1]b*c?", "it's {here}", "trace_id=x/format=y/traces", "Ünï code"])
def test_the_place_of_an_archive_may_have_any_name(tmp_path, name) -> None:
    store = new_archive(tmp_path / name / "archive")
    add_trace(store, "1a", tables(kernels=[(0, 7, GEMM)]))
    with Engine(store) as engine:
        answer = engine.sql("SELECT trace_id, format, dur_ns FROM kernels").to_pylist()
    assert answer == [{"trace_id": "1a", "format": "nsys", "dur_ns": 7}]


REFUSED = {
    "FROM read_csv('/etc/passwd')": r"read_csv\(\) is refused",
    "FROM read_text('{archive}/archive.json')": r"read_text\(\) is refused",
    "SELECT * FROM system.main.read_blob('/etc/passwd')": r"read_blob\(\) is refused",
    "FROM glob('/**')": r"glob\(\) is refused",
    "SELECT (SELECT count(*) FROM read_parquet('/x/*')) FROM run": r"read_parquet\(\) is refused",
    "WITH x AS (FROM sniff_csv('/etc/passwd')) FROM x": r"sniff_csv\(\) is refused",
    "FROM query('FROM read_text(''/etc/passwd'')')": r"query\(\) is refused",
    "FROM json_execute_serialized_sql('')": r"json_execute_serialized_sql\(\) is refused",
    "FROM arrow_scan(1, 2, 3)": r"arrow_scan\(\) is refused",
    "FROM pandas_scan(1)": r"pandas_scan\(\) is refused",
    "FROM duckdb_secrets()": r"duckdb_secrets\(\) is refused",
    "FROM enable_logging(storage = 'file', storage_path = '{out}')": r"enable_logging\(\) is refused",
    "FROM checkpoint()": r"checkpoint\(\) is refused",
    "FROM '/etc/passwd'": "is a file",
    "FROM '{archive}/traces/format=nsys/trace_id=a000000000000001/kernels.parquet'": "is a file",
    "FROM 'x.csv'": "is a file",
    "FROM 'https://example.org/x.parquet'": "is a file",
    "COPY kernels TO '{out}'": "COPY is refused",
    "COPY kernels TO '{archive}/traces/format=nsys/trace_id=a000000000000001/kernels.parquet'": "COPY is refused",
    "WITH x AS (COPY kernels TO '{archive}/traces/format=nsys/trace_id=a000000000000001/run.parquet') SELECT 1": (
        "COPY is refused"
    ),
    "SELECT * FROM (WITH x AS (COPY (SELECT 1) TO '{out}') SELECT 1)": "COPY is refused",
    "WITH x AS (INSERT INTO held.rows SELECT * FROM held.rows RETURNING 1) FROM x": "INSERT is refused",
    "WITH x AS (DELETE FROM held.rows RETURNING 1) FROM x": "DELETE is refused",
    "EXPORT DATABASE '{out}'": "is refused",
    "IMPORT DATABASE '{out}'": "is refused",
    "ATTACH '{out}' AS other": "ATTACH is refused",
    "INSTALL httpfs": "is refused",
    "LOAD httpfs": "is refused",
    "PRAGMA database_list": "PRAGMA is refused",
    "PRAGMA enable_profiling": "is refused",
    "SET memory_limit = '1TB'": "SET is refused",
    "SET enable_external_access = true": "SET is refused",
    "RESET allowed_directories": "is refused",
    "CALL pragma_version()": "CALL is refused",
    "CREATE TABLE x AS SELECT 1": "CREATE is refused",
    "CREATE OR REPLACE VIEW kernels AS SELECT 1": "CREATE is refused",
    "CREATE SECRET (TYPE s3)": "is refused",
    "DROP VIEW kernels": "DROP is refused",
    "INSERT INTO held.rows SELECT * FROM held.rows": "INSERT is refused",
    "UPDATE held.rows SET rank = 1": "UPDATE is refused",
    "EXPLAIN ANALYZE COPY kernels TO '{out}'": "EXPLAIN is refused",
    "PREPARE p AS SELECT 1": "PREPARE is refused",
    "BEGIN": "TRANSACTION is refused",
    "USE memory": "is refused",
    "VACUUM": "VACUUM is refused",
    "SELECT 1; SELECT 2": "This is 2 queries",
    "SELECT 1; COPY kernels TO '{out}'": "This is 2 queries",
    "": "This is no query",
    "-- nothing": "This is no query",
    "PIVOT kernels ON name USING count(*)": "PIVOT needs the values",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_does_more_than_read_the_tables_is_refused_and_touches_nothing(engine, store, tmp_path, text) -> None:
    before = files_below(store.url)
    with pytest.raises(UsageError, match=REFUSED[text]) as caught:
        engine.sql(text.format(archive=store.url, out=tmp_path / "out"))
    assert caught.value.exit_code == 2
    assert caught.value.fix
    assert list(tmp_path.iterdir()) == []
    assert files_below(store.url) == before
    assert value_of(engine, "SELECT count(*) FROM held.rows") == 6


@pytest.mark.parametrize(
    "text",
    [
        "FROM read_text('/etc/passwd')",
        "FROM read_parquet('/tmp/*.parquet')",
        "FROM '/etc/passwd'",
        "COPY (SELECT 1) TO '/tmp/traceviz-never-written.csv'",
        "ATTACH '/tmp/traceviz-never-written.db'",
        "FROM read_text('https://example.org/')",
        "LOAD httpfs",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        "SET allowed_directories = ['/']",
        "SET memory_limit = '1TB'",
        "FROM duckdb_secrets()",
    ],
)
def test_the_engine_itself_reaches_nothing_else_either(engine, text) -> None:
    with engine._connection.cursor() as cursor, pytest.raises(duckdb.Error):
        cursor.execute(text)


def test_variables_of_python_are_no_tables(engine) -> None:
    secret = pl.DataFrame({"secret": [1]})
    with pytest.raises(UsageError, match="secret does not exist"):
        engine.sql("FROM secret")
    assert secret.height == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SHOW TABLES", len(TABLES) + 4),
        ("DESCRIBE kernels", len(TABLES["kernels"].columns) + 2),
        ("SUMMARIZE SELECT dur_ns FROM kernels", 1),
        ("VALUES (1), (2)", 2),
        ("FROM range(3)", 3),
        ("SELECT unnest([1, 2])", 2),
        ("TABLE kernels", 8),
        ("SELECT 1 UNION SELECT 2", 2),
        ("PIVOT kernels ON name IN ('relu_elementwise') USING count(*) GROUP BY trace_id", 3),
        ("WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM r WHERE i < 4) FROM r", 4),
        ("SELECT 1 -- a comment; with a semicolon", 1),
        ("SELECT 1;", 1),
    ],
)
def test_whatever_reads_is_allowed(engine, text, expected) -> None:
    assert engine.sql(text).num_rows == expected


def test_a_column_that_does_not_exist_is_pointed_at_and_others_are_offered(engine) -> None:
    with pytest.raises(UsageError) as caught:
        engine.sql("SELECT nme FROM kernels")
    message, offered, line, mark = caught.value.why.splitlines()
    assert message.startswith('Referenced column "nme" not found')
    assert '"name"' in offered
    assert (line[line.index("nme") :], mark.index("^")) == ("nme FROM kernels", line.index("nme"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT * FROM kernls", 'Did you mean "kernels"'),
        ("SELEC 1", 'syntax error at or near "SELEC"'),
        ("SELECT 'a'::INTEGER", "Could not convert string 'a'"),
        ("SELECT nosuch(1)", "nosuch does not exist"),
        ("SELECT ?", "parameter"),
        ("SELECT CASE WHEN i = 150000 THEN error('late') ELSE i END FROM range(200000) AS t(i)", "late"),
    ],
)
def test_a_wrong_query_is_said_to_be_wrong(engine, text, message) -> None:
    with pytest.raises(UsageError, match="The query cannot be run") as caught:
        engine.sql(text)
    assert message in caught.value.why
    assert "Error:" not in caught.value.why


def test_a_query_that_is_nested_beyond_measure_is_an_error_and_no_crash(engine) -> None:
    with pytest.raises(UsageError):
        engine.sql("SELECT " + "(" * 5000 + "1" + ")" * 5000)


def test_parameters_are_values_and_never_sql(engine) -> None:
    assert value_of(engine, "SELECT count(*) FROM kernels WHERE name = ?", [RELU]) == 2
    assert value_of(engine, "SELECT count(*) FROM kernels WHERE name = $name", {"name": "x' OR '1'='1"}) == 0
    assert value_of(engine, "SELECT count(*) FROM kernels", ()) == 8


def test_sums_are_whole_numbers_of_64_bits_where_they_fit(engine) -> None:
    answer = engine.sql("SELECT sum(dur_ns) AS small, 2::HUGEINT * 9223372036854775807 AS big, NULL AS n FROM kernels")
    assert answer.schema.types == [pa.int64(), pa.decimal128(38, 0), pa.null()]
    assert answer.to_pylist() == [{"small": 671, "big": Decimal(2) * (2**63 - 1), "n": None}]


def test_columns_of_one_name_are_told_apart(engine) -> None:
    assert engine.sql("SELECT 1 AS a, 2 AS a, 3 AS a_2, 4 AS a").to_pylist() == [
        {"a": 1, "a_2": 2, "a_2_2": 3, "a_3": 4}
    ]


def test_several_answers_can_be_read_at_once(engine) -> None:
    text = "SELECT i FROM range(200000) AS t(i) ORDER BY i"
    with engine.answer(text) as first, engine.answer("SELECT count(*) AS n FROM memcpy") as second:
        assert first.read_next_batch().num_rows > 0
        assert second.read_all().to_pylist() == [{"n": 5}]
        assert sum(batch.num_rows for batch in first) > 100_000


def test_an_answer_is_that_of_the_moment_when_the_engine_was_made(tmp_path) -> None:
    store = new_archive(tmp_path / "archive")
    add_trace(store, "1a", tables(kernels=[(0, 1, GEMM)]))
    with Engine(store) as engine, Engine(store, catalogue.read(store)) as other:
        add_trace(store, "2a", tables(kernels=[(0, 10, GEMM)]))
        assert [value_of(opened, "SELECT sum(dur_ns) FROM kernels") for opened in (engine, other)] == [1, 1]
    with Engine(store) as engine:
        assert value_of(engine, "SELECT sum(dur_ns) FROM kernels") == 11


def test_ctrl_c_ends_a_query_and_the_engine_answers_again(engine) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            engine.sql("SELECT count(*) FROM range(20000000000) AS t(i) WHERE sqrt(i) = 3.5")
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert value_of(engine, "SELECT count(*) FROM kernels") == 8


def test_more_than_fits_into_memory_goes_on_on_disk_and_is_removed_at_the_end(store, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    text = "SELECT i, hash(i) AS h FROM range(3000000) AS t(i) ORDER BY h"
    with Engine(store, memory=60_000_000, threads=2) as engine:
        with engine.answer(text) as batches:
            batches.read_next_batch()
            spilled = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert spilled
    assert list(tmp_path.iterdir()) == []


def test_more_than_fits_at_all_is_said(store) -> None:
    with (
        Engine(store, memory=20_000_000, threads=1) as engine,
        pytest.raises(TracevizError, match="needs more memory") as caught,
    ):
        engine.sql("SELECT list(i::VARCHAR) AS l FROM range(5000000) AS t(i)")
    assert caught.value.exit_code == 3
    assert "--memory" in caught.value.fix


@pytest.mark.parametrize("content", [b"", b"PAR1 no Parquet at all PAR1", None])
def test_a_damaged_or_missing_file_is_named(tmp_path, content) -> None:
    store = new_archive(tmp_path / "archive")
    add_trace(store, "1a", tables(kernels=[(0, 1, GEMM)]))
    file = Path(store.url, *layout.trace_parts("nsys", "1a"), "kernels.parquet")
    with Engine(store) as engine:
        assert value_of(engine, "SELECT count(*) FROM run") == 1
        if content is None:
            engine._open({"kernels"})
            file.unlink()
        else:
            file.write_bytes(content)
        with pytest.raises(DamagedTraceError, match="cannot be read") as caught:
            engine.sql("SELECT sum(dur_ns) FROM kernels")
    assert str(file) in caught.value.why
    assert "verify" in caught.value.fix


def test_an_archive_elsewhere_answers_the_same(store, bucket) -> None:
    other = documented(f"{bucket}/runs")
    text = "SELECT trace_id, format, gpu, name, sum(dur_ns) AS ns FROM kernels JOIN traces USING (trace_id, format)"
    text += " GROUP BY ALL ORDER BY ALL"
    with Engine(store) as here, Engine(other) as there:
        answer = there.sql(text)
        assert answer.num_rows == 5
        assert answer.equals(here.sql(text))
        assert there.missing == ()
        with pytest.raises(duckdb.Error), there._connection.cursor() as cursor:
            cursor.execute(f"FROM read_text('{bucket}/runs/archive.json')")


@pytest.mark.parametrize("place", ["arch*", "arch?", "arch[1]", "[", "a]b", "a'b", "x=1"])
def test_an_archive_whose_name_is_a_pattern_is_asked_alone(tmp_path, place):
    for number, name in enumerate(dict.fromkeys(("arch1", "arch*", "archive", place))):
        add_trace(new_archive(tmp_path / name), f"{number}a", tables(kernels=[(0, 10 + number, GEMM)]))
    expected = 10 + [*dict.fromkeys(("arch1", "arch*", "archive", place))].index(place)
    with Engine(Store.at(tmp_path / place)) as engine:
        answer = engine.sql("SELECT trace_id, format, dur_ns FROM kernels").to_pylist()
    assert answer == [{"trace_id": f"{expected - 10}a", "format": "nsys", "dur_ns": expected}]


@pytest.mark.parametrize("text", ["1 / 0", "0 / 0", "1.5 / 0", "5 % 0", "5 // 0", "sum(1) / sum(0)"])
def test_what_is_divided_by_zero_cannot_be_told(tmp_path, text):
    with Engine(new_archive(tmp_path / "archive")) as engine:
        assert engine.sql(f"SELECT {text} AS x").to_pylist() == [{"x": None}]
