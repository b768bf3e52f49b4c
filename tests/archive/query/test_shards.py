"""Queries that workers answer: in two halves, over parts of the traces and over what these gave, or whole."""

import os
import signal
import subprocess
import sys

import polars as pl
import pytest
from click.testing import CliRunner

from tests.analyses.builders import tables
from tests.archive import adding
from tests.archive.clusters import wait_until
from tests.archive.small_archives import GEMM, add_trace, half_written, new_archive
from traceviz.archive.catalogue import segments as catalogue
from traceviz.archive.ingest.add import add
from traceviz.archive.query import shards
from traceviz.archive.query.engine import Engine
from traceviz.archive.query.shards import RemoteEngine, divide, engine_over_parts
from traceviz.archive.runners.base import RunnerError
from traceviz.archive.runners.local import LocalRunner, SerialRunner
from traceviz.archive.storage.store import Store
from traceviz.cli.archive.query import query
from traceviz.core.errors import UsageError, WorkerError

PER_PART = "SELECT format, name, count(*) AS calls, sum(dur_ns) AS ns FROM kernels GROUP BY ALL"
ORDERED = "ORDER BY ns DESC, name, format"
WHOLE = f"SELECT format, name, sum(calls) AS calls, sum(ns) AS ns FROM parts GROUP BY ALL {ORDERED}"


@pytest.fixture(scope="module")
def store(samples, tmp_path_factory):
    filled = Store.at(tmp_path_factory.mktemp("shards") / "archive")
    add(filled, adding.sources(samples), adding.OPTIONS, SerialRunner())
    return filled


@pytest.mark.parametrize(("runner", "size"), [(SerialRunner(), 1), (LocalRunner(2), 3), (SerialRunner(), 50)], ids=str)
def test_both_halves_give_what_1_query_gives(store, runner, size):
    check_halves(store, runner, size)


def check_halves(store, runner, size):
    with Engine(store) as engine:
        expected = engine.sql(f"{PER_PART} {ORDERED}")
    with engine_over_parts(store, PER_PART, runner, size=size) as engine:
        answer = engine.sql(WHOLE)
    assert expected.num_rows > 20
    assert answer.to_pylist() == expected.to_pylist()
    assert store.names("work") == []


def test_the_second_half_knows_the_catalogue_and_all_tables(store):
    with engine_over_parts(store, "SELECT trace_id, count(*) AS n FROM kernels GROUP BY ALL", SerialRunner()) as engine:
        answer = engine.sql(
            "SELECT count(*) AS traces, sum(n) AS n FROM parts JOIN traces USING (trace_id)"
        ).to_pylist()
        (kernels,) = engine.sql("SELECT count(*) AS n FROM kernels").to_pylist()
    assert answer == [{"traces": len(adding.SAMPLES), "n": kernels["n"]}]


class Backwards:
    """A runner that is done with the last part first."""

    def map(self, function, arguments):
        return SerialRunner().map(function, reversed(list(arguments)))


def test_parts_come_in_the_order_of_their_traces_whoever_is_quicker(store):
    with engine_over_parts(store, "SELECT trace_id FROM traces ORDER BY ALL", Backwards(), size=2) as engine:
        answer = engine.sql("FROM parts")["trace_id"].to_pylist()
    assert answer == sorted(answer)
    assert len(answer) == len(adding.SAMPLES)


def test_only_chosen_rows_are_asked(store):
    rows = catalogue.read(store)
    some = rows.filter(rows["format"] == "kineto")
    with engine_over_parts(store, "SELECT DISTINCT format FROM kernels", SerialRunner(), rows=some, size=1) as engine:
        assert engine.sql("FROM parts").to_pylist() == [{"format": "kineto"}] * 2


def test_without_traces_parts_have_their_columns_and_no_rows(store):
    rows = catalogue.read(store).clear()
    with engine_over_parts(store, PER_PART, SerialRunner(), rows=rows) as engine:
        answer = engine.sql("FROM parts")
    assert (answer.column_names, answer.num_rows) == (["format", "name", "calls", "ns"], 0)


class NoRunner:
    def map(self, function, arguments):
        raise AssertionError("no worker is needed")


def test_a_wrong_first_half_is_said_before_any_worker_is_asked_and_nothing_stays(store):
    wrong = {"SELECT nothing_such": "nothing_such", "COPY kernels TO 'x'": "COPY is refused"}
    for text, message in wrong.items():
        with pytest.raises(UsageError, match=message):
            engine_over_parts(store, text, NoRunner()).__enter__()
        with pytest.raises(UsageError, match=message):
            RemoteEngine(store, NoRunner()).answer(text).__enter__()
    assert store.names("work") == []


def test_what_goes_wrong_in_a_part_is_said_and_nothing_stays(store):
    text = "SELECT CASE WHEN dur_ns > 0 THEN error('too long') END AS e FROM kernels"
    with pytest.raises(UsageError, match="too long"):
        engine_over_parts(store, text, SerialRunner(), size=2).__enter__()
    assert store.names("work") == []


def test_a_part_whose_workers_die_ends_the_query(store):
    class Dying:
        def map(self, function, arguments):
            for argument in arguments:
                yield argument, RunnerError("worker-died", "It was killed.")

    with pytest.raises(WorkerError, match=r"8 traces from [0-9a-f]{16} on cannot be queried\. It was killed"):
        shards.engine_over_parts(store, PER_PART, Dying()).__enter__()
    assert store.names("work") == []


@pytest.mark.parametrize(
    ("sizes", "parts"),
    [
        ((1, 1, 1, 1, 1), ["012", "34"]),
        ((60, 40, 1, 1, 1), ["01", "234"]),
        ((500, 1, 100, None, None), ["0", "1", "234"]),
        ((), []),
    ],
)
def test_parts_have_3_traces_and_100_bytes_of_sources_at_most(sizes, parts):
    ids = [str(number) for number in range(len(sizes))]
    rows = pl.DataFrame(
        {"trace_id": [*ids, "x"], "source_bytes": [*sizes, 1], "state": ["ready"] * len(ids) + ["quarantined"]},
        schema={"trace_id": pl.String, "source_bytes": pl.Int64, "state": pl.String},
    )
    twice = pl.concat([rows, rows])  # two ranks
    assert ["".join(part) for part in divide(twice.reverse(), 3, 100)] == parts


def test_parts_are_asked_of_the_archive_as_it_was_when_the_query_began(tmp_path):
    store = new_archive(tmp_path / "archive")
    add_trace(store, "1a", tables(kernels=[(0, 7, GEMM)]))

    class Late:
        def map(self, function, arguments):
            add_trace(store, "1a", tables(kernels=[(0, 7, GEMM)]), framework="renamed")
            add_trace(store, "2a", tables(kernels=[(0, 9, GEMM)]))
            yield from SerialRunner().map(function, arguments)

    text = "SELECT framework, sum(dur_ns) AS ns FROM kernels JOIN traces USING (trace_id) GROUP BY ALL"
    with engine_over_parts(store, text, Late()) as engine:
        assert engine.sql("FROM parts").to_pylist() == [{"framework": None, "ns": 7}]


def test_types_of_the_first_half_are_kept_and_sums_may_be_larger_than_64_bits(store):
    text = """SELECT DISTINCT 4 * 9223372036854775807::HUGEINT AS "a ""b", TIMESTAMP_S '2026-05-10 00:00:00' AS at,
              MAP {'k': [1]} AS m, 0.5::DECIMAL(4, 2) AS d, 1 AS n, 2 AS n"""
    with engine_over_parts(store, text, SerialRunner(), size=4) as engine:
        types = engine.sql("SELECT column_type FROM (DESCRIBE parts)")["column_type"].to_pylist()
        (answer,) = engine.sql('SELECT sum("a ""b") AS total, count(*) AS parts, sum(n_2) AS n FROM parts').to_pylist()
    assert types == ["HUGEINT", "TIMESTAMP_S", "MAP(VARCHAR, INTEGER[])", "DECIMAL(4,2)", "INTEGER", "INTEGER"]
    assert answer == {"total": 8 * (2**63 - 1), "parts": 2, "n": 4}


def test_an_answer_that_cannot_be_sent_is_said(store):
    with pytest.raises(UsageError, match="Parquet has no such type"):
        engine_over_parts(store, "SELECT INTERVAL 3 DAY AS i", SerialRunner()).__enter__()


def test_traces_that_are_gone_are_told_by_the_workers(tmp_path):
    store = new_archive(tmp_path / "archive")
    add_trace(store, "1a", tables(kernels=[(0, 7, GEMM)]))
    half_written(store, "2a", tables(kernels=[(0, 7, GEMM)]))
    with engine_over_parts(store, "SELECT sum(dur_ns) AS ns FROM kernels", SerialRunner(), size=1) as engine:
        assert engine.sql("SELECT sum(ns) AS ns FROM parts").to_pylist() == [{"ns": 7}]
        assert engine.missing == ("2a",)
    remote = RemoteEngine(store, SerialRunner())
    with remote.answer("SELECT sum(dur_ns) AS ns FROM kernels") as batches:
        assert batches.read_all().to_pylist() == [{"ns": 7}]
    assert remote.missing == ("2a",)


def test_progress_counts_parts(store):
    reports = []
    with engine_over_parts(store, PER_PART, SerialRunner(), size=3, progress=lambda *report: reports.append(report)):
        assert reports == [("querying traces", done, 3) for done in (1, 2, 3)]


def check_whole(store, runner, text):
    with Engine(store) as engine, engine.answer(text) as batches:
        expected = batches.read_all()
    with RemoteEngine(store, runner).answer(text) as batches:
        answer = batches.read_all()
    assert answer.schema.names == expected.schema.names
    assert answer.to_pylist() == expected.to_pylist()
    assert expected.num_rows > 7
    assert store.names("work") == []


@pytest.mark.parametrize("runner", [SerialRunner(), pytest.param(LocalRunner(1), marks=pytest.mark.slow)], ids=str)
def test_a_whole_query_on_a_worker_gives_what_it_gives_here(store, runner):
    check_whole(store, runner, f"{PER_PART} {ORDERED}")


@pytest.mark.parametrize("text", ["SHOW TABLES", "SELECT * FROM catalogue ORDER BY trace_id", "FROM steps"])
def test_lists_maps_and_times_come_back_from_a_worker_as_they_are(store, text):
    check_whole(store, SerialRunner(), text)


def test_of_a_long_answer_only_the_wanted_rows_come_back(store):
    with RemoteEngine(store, SerialRunner(), most=3).answer("FROM range(1000000000) AS t(i)") as batches:
        assert batches.read_all().to_pylist() == [{"i": 0}, {"i": 1}, {"i": 2}]


def invoke(*arguments):
    return CliRunner().invoke(query, [str(argument) for argument in arguments])


@pytest.mark.parametrize("format_name", [pytest.param("terminal", marks=pytest.mark.slow), "csv"])
def test_the_command_prints_the_same_page_whoever_answers(store, format_name):
    check_command(store, format_name, lambda whole, parts: [(*parts, "--workers", 2)])


def check_command(store, format_name, commands):
    options = (store.url, "--format", format_name, "--limit", "2")
    whole = "SELECT name, sum(dur_ns) AS total_ns FROM kernels GROUP BY name ORDER BY 2 DESC, 1"
    expected = invoke(*options, whole)
    parts = ("--per-part", "SELECT name, sum(dur_ns) AS ns FROM kernels GROUP BY name")
    second = "SELECT name, sum(ns) AS total_ns FROM parts GROUP BY name ORDER BY 2 DESC, 1"
    assert expected.stdout.count("ms" if format_name == "terminal" else "gemm") >= 2
    for arguments in commands(whole, (second, *parts)):
        result = invoke(*options, *arguments)
        assert (result.exit_code, result.stdout, result.stderr) == (0, expected.stdout, ""), result.exception


def test_workers_without_parts_are_the_threads_of_1_query(store, monkeypatch):
    threads = "SELECT value::INTEGER AS n FROM duckdb_settings() WHERE name = 'threads'"
    monkeypatch.setattr("traceviz.archive.query.guard._TABLE_FUNCTIONS", {"duckdb_settings"})
    for workers in (1, 3):
        assert invoke(store.url, threads, "--workers", workers, "--format", "csv").stdout == f"n\n{workers}\n"


@pytest.mark.slow
def test_ctrl_c_ends_the_workers_queries_and_leaves_nothing(store, tmp_path):
    endless = "SELECT count(*) AS n FROM kernels, kernels AS b, kernels AS c, kernels AS d WHERE b.dur_ns <> d.dur_ns"
    command = [sys.executable, "-m", "traceviz", "archive", "query", store.url, "FROM parts", "--per-part", endless]
    program = subprocess.Popen(
        [*command, "--workers", "1"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        wait_until(lambda: store.names("work") and list(tmp_path.glob("traceviz-query-*")))
        os.killpg(program.pid, signal.SIGINT)  # as a terminal does: to the workers, too
        _, errors = program.communicate(timeout=60)
    finally:
        program.kill()
    assert (program.returncode, errors) == (130, "Interrupted; nothing half-written was left behind.\n")
    assert store.names("work") == []
    assert list(tmp_path.iterdir()) == []
