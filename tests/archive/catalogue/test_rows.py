"""A row of the catalogue states the same as the report of that rank, and only measured values."""

from dataclasses import replace

import pyarrow as pa
import pytest

import traceviz
from traceviz.archive.catalogue.columns import CATALOGUE
from traceviz.archive.catalogue.rows import Origin, quarantined_rows, ready_rows, stated_tags, tag_pairs, with_times
from traceviz.gates.metrics import METRICS, Candidate
from traceviz.report import Finding, Severity
from traceviz.trace.tables import TraceTables


def origin(name="a.sqlite", tags=None, job=None, found_job=""):
    return Origin("0" * 16, "0" * 64, 12, name, name.rpartition("/")[2], 7, "1.0", tags or {}, job, found_job)


def rows_for(tables, name="a.sqlite", stated=None, **known):
    report = traceviz.analyze(tables)
    return ready_rows(origin(name, **known), tables, report, "nsys", stated or {}).to_pylist(), report


def with_ranks(tables, *ranks):
    processes = tables.arrow("processes")
    place = processes.schema.get_field_index("rank")
    return tables.replace({"processes": processes.set_column(place, "rank", pa.array(ranks, pa.int32()))})


def with_settings(tables, pairs):
    rows = [{"process_id": None, "key": key, "value": value} for key, value in pairs.items()]
    return tables.replace(
        {"settings": pa.Table.from_pylist(rows, schema=traceviz.trace.schema.table("settings").arrow)}
    )


@pytest.fixture(scope="module")
def input_bound(samples):
    return traceviz.open(samples / "synthetic" / "input_bound.sqlite")


@pytest.fixture(scope="module")
def two_ranks(samples):
    return with_ranks(traceviz.open(samples / "synthetic" / "two_ranks.sqlite"), 3, 5)


def test_a_row_has_the_figures_that_budgets_read_in_the_report(input_bound):
    (row,), report = rows_for(input_bound)
    for metric in METRICS:
        if metric.name in CATALOGUE.names and metric.name != "findings":
            assert row[metric.name] == pytest.approx(metric.read(Candidate((report,))).value), metric.name
    assert (row["step_median"], row["steps"], row["devices"]) == (8_102_142, 29, 1)
    assert row["input_share"] == pytest.approx(0.4631773)
    assert row["exposed_api_ns"] == 156_293_284
    assert row["recorded_ns"] == 1_700_000_000_000_000_000
    assert row["span_ns"] == 493_590_835
    assert row["gpu"] == "Synthetic GPU"


@pytest.mark.parametrize(
    ("stated", "name", "version"),
    [
        ("JAX 0.10.2", "JAX", "0.10.2"),
        ("JAX", "JAX", None),
        ("PyTorch 2.4.1+cu121", "PyTorch", "2.4.1+cu121"),
        ("JAX 0.10.2 + TensorFlow", "JAX + TensorFlow", "0.10.2"),
        ("JAX 0.10.1 + JAX 0.10.2", "JAX", "0.10.1 + 0.10.2"),
        ("Framework 3D", "Framework 3D", None),
        (None, None, None),
    ],
)
def test_a_framework_and_its_version_are_two_columns(input_bound, stated, name, version):
    run = input_bound.arrow("run")
    place = run.schema.get_field_index("framework")
    versions = input_bound.replace(
        {"run": run.set_column(place, run.schema.field(place), pa.array([stated], pa.string()))}
    )
    (row,), _ = rows_for(versions)
    assert (row["framework"], row["framework_version"]) == (name, version)


def test_what_several_ranks_without_numbers_have_at_stake_is_the_mean_of_them(samples):
    """A report adds up what its ranks lose, except their common loss to the slowest one."""
    tables = traceviz.open(samples / "synthetic" / "two_ranks.sqlite")
    summed = Finding("TV101", "input-bound", Severity.ERROR, "", (), (), 100, 0.5, "steady step time")
    of_one = Finding("TV501", "straggler-rank", Severity.ERROR, "", (), (), 100, 0.5, "steady step time of a rank")
    report = replace(traceviz.analyze(tables), findings=(summed, of_one))
    (row,) = ready_rows(origin(), tables, report, "nsys", {}).to_pylist()
    assert report.fact("ranks", "count") == row["devices"] == 2
    assert [one["stake_ns"] for one in row["findings"]] == [50, 100]


def test_the_verdict_is_in_words_and_findings_have_their_stakes(input_bound):
    (row,), _ = rows_for(input_bound)
    assert row["verdict"] == "highly input-bound"
    assert row["sentence"].startswith("Highly input-bound: 46.3 %")
    assert row["cause"] == "input"
    (finding,) = row["findings"]
    assert (finding["code"], finding["name"], finding["stake_ns"]) == ("TV101", "input-bound", 108_793_976)


def test_late_launches_are_nothing_where_they_are_no_finding_and_unknown_without_kernels(samples, input_bound):
    launch_bound = traceviz.open(samples / "synthetic" / "launch_bound.sqlite")
    assert rows_for(launch_bound)[0][0]["launch_bound"] == pytest.approx(0.43401423)
    assert rows_for(input_bound)[0][0]["launch_bound"] == 0.0
    summary = traceviz.open(samples / "synthetic" / "nvprof_summary.csv")
    (row,), _ = rows_for(summary)
    assert row["launch_bound"] is None
    assert (row["verdict"], row["span_ns"], row["step_median"]) == ("cannot judge", None, None)


def test_every_rank_of_a_trace_has_the_figures_of_the_report_on_it_alone(two_ranks):
    rows, whole = rows_for(two_ranks, "logs/both.sqlite")
    assert [row["rank"] for row in rows] == [3, 5]
    assert {row["job"] for row in rows} == {"logs/both.sqlite"}
    for row in rows:
        alone = traceviz.analyze(traceviz.trace.slicing.select(two_ranks, traceviz.Selection(rank=row["rank"])))
        assert row["step_median"] == alone.fact("steps", "median_ns")
        assert row["devices"] == 1
        assert row["exposed_api_ns"] == alone.fact("cuda_api", "exposed_ns")
    assert sum(row["exposed_api_ns"] for row in rows) == whole.fact("cuda_api", "exposed_ns")


@pytest.mark.parametrize(
    ("name", "ranks", "settings", "expected"),
    [
        ("job42/rank3.sqlite", (None,), {}, (3, "job42")),
        ("logs/big_rank-3.sqlite", (None,), {}, (3, "logs/big_rank*.sqlite")),
        ("logs/rank3/trace.sqlite", (None,), {}, (3, "logs/rank*/trace.sqlite")),
        ("logs/host7.sqlite", (2,), {"distributedInfo.world_size": "8"}, (2, "logs")),
        ("logs/host7.sqlite", (2,), {"distributedInfo.world_size": "1"}, (2, None)),
        ("host7.sqlite", (2,), {"distributedInfo.world_size": "8"}, (2, None)),
        ("logs/franking1.sqlite", (None,), {}, (None, None)),
    ],
)
def test_rank_and_job_are_those_of_the_trace_else_those_of_its_name(input_bound, name, ranks, settings, expected):
    tables = with_settings(with_ranks(input_bound, *ranks), settings)
    (row,), _ = rows_for(tables, name)
    assert (row["rank"], row["job"]) == expected


def test_the_job_is_what_the_user_says_then_the_recording_then_where_it_lay(input_bound):
    name, stated = "job1/rank0.sqlite", {"job": "of the run"}
    assert rows_for(input_bound, name, stated, job="said", found_job="found")[0][0]["job"] == "said"
    assert rows_for(input_bound, name, stated, tags={"job": "tagged"}, found_job="found")[0][0]["job"] == "tagged"
    assert rows_for(input_bound, name, stated, found_job="found")[0][0]["job"] == "of the run"
    assert rows_for(input_bound, name, found_job="found")[0][0]["job"] == "found"
    assert rows_for(input_bound, name)[0][0]["job"] == "job1"


def test_tags_of_the_user_win_over_those_of_the_recording(input_bound):
    tables = with_settings(input_bound, {"tag.batch": "32", "tag.model": "r50", "run.name": "x"})
    assert stated_tags(tables) == {"batch": "32", "model": "r50"}
    (row,), _ = rows_for(tables, stated=stated_tags(tables), tags={"batch": "64"})
    assert row["tags"] == [("batch", "64"), ("model", "r50")]
    assert tag_pairs({"a": "b"}) == tag_pairs([{"key": "a", "value": "b"}]) == [("a", "b")]


def test_a_quarantined_row_has_the_error_and_no_figures():
    (row,) = quarantined_rows(origin(tags={"a": "b"}), "damaged: it is cut off.").to_pylist()
    assert (row["state"], row["error"], row["tags"]) == ("quarantined", "damaged: it is cut off.", [("a", "b")])
    assert {name for name in CATALOGUE.names if row[name] is not None} == {
        *("trace_id", "state", "error", "source", "source_sha256", "source_bytes", "tags", "added_ns", "changed_ns"),
        *("traceviz_version", "private"),
    }


def test_times_are_those_of_the_writing():
    rows = with_times(quarantined_rows(origin(), "x"), 11)
    assert (rows["added_ns"].to_pylist(), rows["changed_ns"].to_pylist()) == ([7], [11])
    assert rows.schema == CATALOGUE


def test_a_trace_without_any_table_is_a_row_that_knows_nothing():
    (row,), _ = rows_for(TraceTables({}))
    assert (row["rank"], row["gpu"], row["step_median"], row["findings"]) == (None, None, None, [])
