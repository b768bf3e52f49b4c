"""Ranks of a job as one: the same report as on their files."""

from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.archive.catalogues import DAY_NS, START_NS, archive_of, catalogue_of
from tests.conftest import REPOSITORY
from traceviz import api
from traceviz.archive.population.jobs import members, report_on_job
from traceviz.archive.storage.layout import trace_parts
from traceviz.archive.storage.store import LAST, Store
from traceviz.core.errors import DamagedTraceError, UsageError

FOLDER = REPOSITORY / "sample_traces" / "synthetic" / "torch_four_ranks_straggler"
FILES = sorted(FOLDER.iterdir())


def rank(number, **facts):
    return {"job": "j", "rank": number, "format": "kineto", "source": f"rank{number}.json", **facts}


def test_the_report_on_a_job_is_that_on_its_files(tmp_path):
    store = Store.at(tmp_path / "archive")
    rows = archive_of(store, FILES, job="four")
    report, expected = report_on_job(store, rows, "four"), api.report_on(*FILES)
    assert (report.verdict, report.findings, report.sections) == (
        expected.verdict,
        expected.findings,
        expected.sections,
    )
    assert "TV501" in {finding.code for finding in report.findings}
    assert {fact.key: fact.value for fact in report.run}["traces"] == 4


def test_a_job_in_an_object_store_is_read_too(bucket):
    store = Store.at(f"{bucket}/archive")
    rows = archive_of(store, FILES[:2], job="two")
    assert report_on_job(store, rows, "two").sections == api.report_on(*FILES[:2]).sections


def test_members_are_in_the_order_of_their_ranks():
    assert [member.ranks for member in members(catalogue_of(rank(2), rank(0), rank(1)), "j")] == [(0,), (1,), (2,)]


def test_a_trace_of_several_ranks_is_a_job():
    (member,) = members(catalogue_of(rank(0, trace_id="a"), rank(1, trace_id="a")), "j")
    assert member.ranks == (0, 1)


def test_a_job_of_1_rank_is_refused():
    with pytest.raises(UsageError, match=r"Job 'j' has a single rank: rank0\.json"):
        members(catalogue_of(rank(0)), "j")


def test_2_captures_of_a_rank_are_refused_with_the_ids_of_the_last_run():
    first = [rank(number, recorded_ns=START_NS, span_ns=1000) for number in (0, 1)]
    again = [rank(number, recorded_ns=START_NS + DAY_NS, span_ns=1000) for number in (0, 1)]
    with pytest.raises(UsageError, match="two captures of rank 0") as caught:
        members(catalogue_of(*first, *again), "j")
    assert caught.value.why == "It ran 2 times."
    assert f"('{2:016x}', '{3:016x}')" in caught.value.fix


def test_of_2_captures_of_a_rank_at_the_same_time_only_one_is_proposed():
    rows = [rank(number, recorded_ns=START_NS, span_ns=1000) for number in (0, 1, 1)]
    with pytest.raises(UsageError, match="two captures of rank 1") as caught:
        members(catalogue_of(*rows), "j")
    assert caught.value.why == "They were recorded at the same time."
    assert f"('{0:016x}', '{1:016x}')" in caught.value.fix


def test_ranks_that_were_recorded_on_different_days_are_refused():
    rows = [rank(number, recorded_ns=START_NS + number * DAY_NS, span_ns=1000) for number in (0, 1)]
    with pytest.raises(UsageError, match=r"is of several runs: rank0\.json .*2026-01-01.* were not recorded") as caught:
        members(catalogue_of(*rows), "j")
    assert f"('{1:016x}')" in caught.value.fix


def test_ranks_whose_clocks_differ_by_seconds_are_one_run():
    rows = [rank(number, recorded_ns=START_NS + number * 10**10, span_ns=1000) for number in (0, 1)]
    assert len(members(catalogue_of(*rows, rank(2)), "j")) == 3


def test_a_rank_that_only_the_path_told_is_still_known(tmp_path):
    store = Store.at(tmp_path / "archive")
    rows = archive_of(store, FILES[:2], job="two")
    without = rows.with_columns(pl.lit("trace.json.gz").alias("source"), pl.Series("rank", [7, 3], dtype=pl.Int64))
    for number in (1, 2):
        _forget_rank(store, "kineto", f"{number:016x}")
    report = report_on_job(store, without, "two")
    assert [row["rank"] for row in report.rows("ranks")] == [3, 7]


def _forget_rank(store, format_name, trace_id):
    """Remove the rank from the tables of a trace, as if the trace had never stated it."""
    path = Path(store.url_of(*trace_parts(format_name, trace_id), "processes.parquet"))
    table = pq.read_table(path)
    place = table.schema.get_field_index("rank")
    unknown = pa.nulls(len(table), table.schema.field(place).type)
    pq.write_table(table.set_column(place, table.schema.field(place), unknown), path)


def test_removed_traces_are_no_members():
    with pytest.raises(UsageError, match="single rank"):
        members(catalogue_of(rank(0), rank(1, state="removed")), "j")


def test_a_job_that_does_not_exist_is_refused_with_those_that_do():
    with pytest.raises(UsageError, match="Did you mean 'nightly'"):
        members(catalogue_of(rank(0, job="nightly")), "nightli")
    with pytest.raises(UsageError, match="No trace belongs to a job"):
        members(catalogue_of({}), "j")


def test_a_trace_that_is_gone_is_said_to_be(tmp_path):
    store = Store.at(tmp_path / "archive")
    rows = archive_of(store, FILES[:2], job="two")
    store.remove(*trace_parts("kineto", f"{1:016x}"), LAST)
    with pytest.raises(DamagedTraceError, match="is in the catalogue, and not in the archive"):
        report_on_job(store, rows, "two")
