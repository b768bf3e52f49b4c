"""Answers of queries on a page, as CSV, JSON, Markdown and Parquet; and `traceviz archive query` around them."""

import csv
import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from tests.analyses.builders import tables
from tests.archive.small_archives import GEMM, add_trace, documented, half_written, new_archive
from traceviz.archive.query.answer import leading, page, unit_of
from traceviz.archive.query.engine import Engine
from traceviz.cli.archive.query import query
from traceviz.cli.main import main
from traceviz.core.errors import OutputExistsError, TracevizError, UsageError

A1, A2, B1 = "a000000000000001", "a000000000000002", "b000000000000001"
EVERYTHING = """
    SELECT 18446744073709551615::UBIGINT AS unsigned, 3::HUGEINT * 9223372036854775807 AS huge, 0.5::DECIMAL(4, 2) AS d,
           'a'::ENUM ('a', 'b') AS e, TIMESTAMP '2026-05-10 00:00:00' AS at, DATE '2026-05-10' AS day,
           TIMESTAMP_NS '2026-05-10 00:00:00.000000001' AS ns, TIME '12:00' AS noon, INTERVAL 3 DAY AS i,
           MAP {'k': 1} AS m, {'x': [1, NULL], 't': DATE '2026-05-10'} AS s, '\\xAA'::BLOB AS b, NULL AS n,
           'nan'::DOUBLE AS nan, true AS yes, 'tab\tnewline\n"quote", =1+1 \u202e' AS hostile"""


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return documented(tmp_path_factory.mktemp("answers") / "archive")


def run(*arguments, stdin=None):
    return CliRunner().invoke(query, [str(argument) for argument in arguments], input=stdin)


def printed(*arguments, stdin=None):
    done = run(*arguments, stdin=stdin)
    assert (done.exit_code, done.stderr) == (0, ""), done.exception
    return done.stdout


@pytest.mark.parametrize(
    ("name", "kind", "unit"),
    [
        ("dur_ns", pa.int64(), "ns"),
        ("total_ns", pa.float64(), "ns"),
        ("step_median", pa.int64(), "ns"),
        ("input_share", pa.float64(), "ratio"),
        ("api_share", pa.float64(), "ratio"),
        ("share", pa.float64(), "ratio"),
        ("bytes", pa.int64(), "bytes"),
        ("free_bytes", pa.int64(), "bytes"),
        ("memory_bandwidth", pa.int64(), "bytes/s"),
        ("bytes_per_second", pa.float64(), "bytes/s"),
        ("process_id", pa.int32(), "id"),
        ("rank", pa.int64(), "id"),
        ("calls", pa.int64(), "count"),
        ("sum(x)", pa.decimal128(38, 0), "count"),
        ("slowdown", pa.float64(), "number"),
        ("total_ns", pa.string(), "text"),
        ("is_slow", pa.bool_(), "bool"),
        ("name", pa.dictionary(pa.int32(), pa.string()), "text"),
    ],
)
def test_a_column_has_the_unit_that_its_name_tells(name, kind, unit) -> None:
    assert unit_of(pa.field(name, kind)) == unit


@pytest.mark.parametrize("width", [80, 100])
def test_a_page_is_aligned_with_units_and_never_wider_than_asked(store, width) -> None:
    text = "SELECT trace_id, name, count(*) AS calls, sum(dur_ns) * 1000 AS total_ns, rank FROM kernels JOIN traces"
    text += " USING (trace_id) GROUP BY ALL ORDER BY total_ns DESC, name LIMIT 2"
    lines = printed(store.url, text, "--width", width).splitlines()
    assert max(map(len, lines)) == width  # the rule above the table
    assert lines[0].startswith("2 rows ─")
    assert [line.split() for line in lines[1:]] == [
        ["trace_id", "name", "calls", "total_ns", "rank"],
        [A2, GEMM, "2", "320", "µs", "-"],
        [A1, GEMM, "2", "200", "µs", "-"],
    ]


def test_columns_that_do_not_fit_are_named_and_those_that_say_nothing_go_first(store) -> None:
    text = printed(store.url, "FROM kernels ORDER BY trace_id, start_ns", "--width", 80)
    assert max(map(len, text.splitlines())) <= 80
    assert [line.split()[0] for line in text.splitlines()[2:5]] == [A1, A1, A1]  # ids are whole
    notes = " ".join(text.split("Empty: ")[1].split())
    empty, hidden = notes.split("Not on this page, which is too narrow: ")
    assert "graph_node_id" in empty
    assert "name" in hidden.split(". ")[0].split(", ")
    assert "--format csv" in hidden
    wide = printed(store.url, "FROM kernels", "--width", 400)
    assert "Not on this page" not in wide
    assert GEMM in wide


def test_a_page_shows_the_first_rows_and_says_that_there_are_more(store) -> None:
    text = "SELECT i AS number FROM range({}) AS t(i) ORDER BY i"
    assert printed(store.url, text.format(50)).splitlines()[-1].split() == ["49"]
    shown = printed(store.url, text.format(51))
    assert shown.startswith("First 50 rows ─")
    assert "49\n\n" not in shown
    assert "There are more rows: --limit shows them." in shown
    assert printed(store.url, text.format(51), "--limit", 60).splitlines()[-1].split() == ["50"]
    assert len(printed(store.url, text.format(51), "--limit", 3).splitlines()) == 6


def test_an_answer_without_rows_names_its_columns(store) -> None:
    shown = printed(store.url, "SELECT name, dur_ns FROM kernels WHERE false")
    assert "none" in shown
    assert "Columns: name, dur_ns." in shown


def test_moments_are_dates_for_people_and_numbers_for_programs(store) -> None:
    text = "SELECT recorded_ns, recorded FROM catalogue WHERE trace_id = 'a000000000000001'"
    assert printed(store.url, text).splitlines()[-1].split() == ["2026-05-10", "08:00:00"] * 2
    row = json.loads(printed(store.url, text, "--format", "json"))["rows"][0]
    assert row == {"recorded_ns": 1_778_400_000_000_000_000, "recorded": "2026-05-10 08:00:00"}


def test_every_type_comes_out_as_json(store) -> None:
    document = json.loads(printed(store.url, EVERYTHING, "--format", "json"))
    assert document["schema"] == "traceviz.query/1"
    assert document["columns"][:2] == [{"name": "unsigned", "unit": "count"}, {"name": "huge", "unit": "count"}]
    assert document["rows"] == [
        {
            "unsigned": 2**64 - 1,
            "huge": 3 * (2**63 - 1),
            "d": 0.5,
            "e": "a",
            "at": "2026-05-10 00:00:00",
            "ns": "2026-05-10 00:00:00.000000001",
            "day": "2026-05-10",
            "noon": "12:00:00",
            "i": "0 months 3 days 0 s",
            "m": {"k": 1},
            "s": {"x": [1, None], "t": "2026-05-10"},
            "b": "aa",
            "n": None,
            "nan": None,
            "yes": True,
            "hostile": 'tab\tnewline\n"quote", =1+1 \u202e',
        }
    ]


def test_every_type_comes_out_as_csv(store) -> None:
    heading, row = csv.reader(io.StringIO(printed(store.url, EVERYTHING, "--format", "csv")))
    values = dict(zip(heading, row, strict=True))
    assert values["huge"] == str(3 * (2**63 - 1))
    assert (values["s"], values["m"]) == ('{"x": [1, null], "t": "2026-05-10"}', '{"k": 1}')
    assert (values["n"], values["e"], values["day"]) == ("", "a", "2026-05-10")
    assert "\n" not in values["hostile"]
    assert "\u202e" not in values["hostile"]


def test_every_type_comes_out_on_a_page_and_in_markdown(store) -> None:
    for name in ("terminal", "markdown"):
        shown = printed(store.url, EVERYTHING, "--format", name, "--width", 400)
        assert str(2**64 - 1) in shown.replace(",", "")
        assert str(3 * (2**63 - 1)) in shown.replace(",", "")
        assert "2026-05-10 00:00:00.000000001" in shown
        assert "\u202e" not in shown


def test_csv_says_units_in_the_heading_and_keeps_base_units(store) -> None:
    text = "SELECT input_share, step_median, sum(1) AS n FROM catalogue WHERE rank = 1 GROUP BY ALL"
    assert printed(store.url, text, "--format", "csv") == "input_share [ratio],step_median [ns],n\n0.2,700,1\n"


def test_csv_and_json_of_many_batches_are_one_document(store) -> None:
    text = "SELECT i, i * 2 AS twice FROM range(60000) AS t(i) ORDER BY i"
    lines = printed(store.url, text, "--format", "csv").splitlines()
    assert lines == ["i,twice", *(f"{i},{2 * i}" for i in range(60_000))]
    rows = json.loads(printed(store.url, text, "--format", "json"))["rows"]
    assert rows == [{"i": i, "twice": 2 * i} for i in range(60_000)]
    assert len(printed(store.url, text, "--format", "csv", "--limit", 50_001).splitlines()) == 50_002


def test_nothing_is_a_document_too(store) -> None:
    text = "SELECT name, dur_ns FROM kernels WHERE false"
    assert printed(store.url, text, "--format", "csv") == "name,dur_ns\n"
    assert json.loads(printed(store.url, text, "--format", "json"))["rows"] == []
    assert printed(store.url, text, "--format", "markdown").splitlines() == ["| name | dur_ns |", "| --- | ---: |"]


def test_markdown_is_a_table_in_which_names_are_harmless(store) -> None:
    text = "SELECT 'a|b<i>' AS name, 1500000 AS total_ns"
    assert printed(store.url, text, "--format", "markdown").splitlines() == [
        "| name | total_ns |",
        "| --- | ---: |",
        "| <code>a&#124;b&#60;i&#62;</code> | 1.50 ms |",
    ]


def test_parquet_has_the_rows_with_their_types(store, tmp_path) -> None:
    text = "SELECT trace_id, sum(dur_ns) AS total_ns, max(recorded) AS at FROM kernels JOIN traces USING (trace_id)"
    assert (
        printed(store.url, f"{text} GROUP BY ALL ORDER BY 1", "--format", "parquet", "-o", tmp_path / "a.parquet") == ""
    )
    table = pq.read_table(tmp_path / "a.parquet")
    assert table.schema.types == [pa.string(), pa.int64(), pa.timestamp("us")]
    assert table.column("total_ns").to_pylist() == [250, 371, 50]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.parquet"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT 2::HUGEINT * 9223372036854775807 AS big", "more than 64 bits"),
        ("SELECT INTERVAL 3 DAY AS i", "Parquet has no such type"),
        ("SELECT CASE WHEN i = 150000 THEN error('late') ELSE i END FROM range(200000) AS t(i)", "cannot be run"),
    ],
)
def test_what_cannot_be_a_parquet_file_leaves_none(store, tmp_path, text, message) -> None:
    done = run(store.url, text, "--format", "parquet", "-o", tmp_path / "a.parquet")
    assert isinstance(done.exception, UsageError)
    assert message in str(done.exception)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["csv", "json"])
def test_a_query_that_fails_half_way_prints_and_leaves_nothing(store, tmp_path, name) -> None:
    text = "SELECT CASE WHEN i = 150000 THEN error('late') ELSE i END AS i FROM range(200000) AS t(i)"
    for output in ([], ["-o", tmp_path / "answer"]):
        done = run(store.url, text, "--format", name, *output)
        assert isinstance(done.exception, UsageError)
        assert done.stdout == ""
        assert list(tmp_path.iterdir()) == []


def test_a_file_is_not_overwritten_before_and_without_force(store, tmp_path) -> None:
    target = tmp_path / "answer.csv"
    target.write_text("mine")
    done = run(store.url, "SELECT nonsense", "--format", "csv", "-o", target)
    assert isinstance(done.exception, OutputExistsError)
    assert target.read_text() == "mine"
    assert printed(store.url, "SELECT 1 AS a", "--format", "csv", "-o", target, "--force") == ""
    assert target.read_text() == "a\n1\n"


def test_a_query_comes_from_stdin(store) -> None:
    assert printed(store.url, "-", "--format", "csv", stdin="SELECT count(*) AS n\nFROM traces;\n") == "n\n3\n"


def test_what_is_asked_wrongly_is_said_before_the_work(tmp_path) -> None:
    for options, message in (
        (["--format", "pdf"], "no output format 'pdf'"),
        (["--format", "parquet"], "cannot be printed"),
    ):
        done = run(tmp_path / "no archive", "SELECT 1", *options)
        assert isinstance(done.exception, TracevizError)
        assert message in str(done.exception)


def test_traces_that_are_gone_are_counted_on_stderr(tmp_path) -> None:
    store = new_archive(tmp_path / "archive")
    add_trace(store, "1a", tables(kernels=[(0, 7, GEMM)]))
    half_written(store, "2a", tables(kernels=[(0, 7, GEMM)]))
    done = run(store.url, "SELECT sum(dur_ns) AS ns FROM kernels", "--format", "csv")
    assert (done.exit_code, done.stdout) == (0, "ns\n7\n")
    assert done.stderr.startswith("1 trace is in the catalogue and not in the archive (2a)")


def test_the_first_rows_read_no_more_than_they_need(store) -> None:
    with Engine(store) as engine, engine.answer("FROM range(100000000) AS t(i)") as batches:
        rows = leading(batches, 3)
    assert (rows.table.num_rows, rows.more) == (3, True)
    assert page(rows, 80, color=False).splitlines()[-1].strip() == "There are more rows: --limit shows them."


def test_the_command_line_ends_with_the_code_of_the_error(store, tmp_path) -> None:
    def ended(*arguments):
        return CliRunner().invoke(main, ["archive", "query", *map(str, arguments)])

    done = ended(store.url, "SELECT nme FROM kernels")
    assert (done.exit_code, done.stdout) == (2, "")
    lines = done.stderr.splitlines()
    assert lines[0] == "error: The query cannot be run."
    assert lines[-1].index("^") == lines[-2].index("nme")
    assert ended(tmp_path, "SELECT 1").exit_code == 2
    file = Path(store.url, "traces/format=kineto", f"trace_id={B1}", "memcpy.parquet")
    file.write_bytes(b"no Parquet")
    try:
        assert ended(store.url, "FROM memcpy").exit_code == 3
    finally:
        file.unlink()


@pytest.mark.parametrize(
    ("value", "printed_value"),
    [
        ("TIMESTAMP_NS '2026-05-10 00:00:00.100000002'", "2026-05-10 00:00:00.100000002"),
        ("[TIMESTAMP_NS '2026-05-10 00:00:00.000000001', NULL]", ["2026-05-10 00:00:00.000000001", None]),
        ("{'a': TIMESTAMP_NS '2026-05-10 00:00:00.000000001'}", {"a": "2026-05-10 00:00:00.000000001"}),
        ("MAP {'a': TIMESTAMP_NS '2026-05-10 00:00:00.000000001'}", {"a": "2026-05-10 00:00:00.000000001"}),
        ("'infinity'::DATE", "<value out of range: 2147483647>"),
        ("TIMESTAMP_S '99999-01-01'", "<value out of range: 3093496444800>"),
    ],
)
def test_times_that_python_has_no_type_for_are_texts(store, value, printed_value):
    rows = json.loads(printed(store.url, f"SELECT {value} AS t, 2 AS two", "--format", "json"))["rows"]
    assert rows == [{"t": printed_value, "two": 2}]
