"""``traceviz.Archive``: lazy frames of the catalogue and of every table."""

import shutil
import subprocess
import sys

import polars as pl
import pytest

import traceviz
from tests.archive.made_sources import INPUT_BOUND, LAUNCH_BOUND, READABLE, UNREADABLE
from traceviz.archive.archive import Archive
from traceviz.core.errors import UsageError
from traceviz.trace import schema


@pytest.fixture
def archive(filled_once):
    return traceviz.Archive(filled_once / "archive")


def id_of(archive, source):
    return archive.rows().filter(pl.col("source") == source)["trace_id"][0]


def test_the_catalogue_is_lazy_and_has_every_trace(archive):
    assert isinstance(archive.catalogue, pl.LazyFrame)
    rows = archive.catalogue.select("source", "state").collect()
    assert dict(rows.iter_rows()) == dict.fromkeys(READABLE, "ready") | dict.fromkeys(UNREADABLE, "quarantined")


def test_a_table_of_all_traces_has_their_ids_and_the_rows_of_the_sources(archive, filled_once):
    scanned = archive.scan("kernels")
    assert isinstance(scanned, pl.LazyFrame)
    names = scanned.collect_schema().names()
    assert names == [*schema.table("kernels").arrow.names, "format", "trace_id"]
    counts = scanned.group_by("trace_id").agg(pl.len(), pl.col("dur_ns").sum()).collect()
    expected = {id_of(archive, source): source for source in (INPUT_BOUND, LAUNCH_BOUND)}
    assert set(counts["trace_id"]) == set(expected)
    for trace_id, count, total in counts.iter_rows():
        kernels = traceviz.open(filled_once / "sources" / expected[trace_id]).kernels.collect()
        assert (count, total) == (kernels.height, kernels["dur_ns"].sum())


def test_every_declared_table_can_be_scanned_and_joined_on_the_trace(archive):
    for name in schema.TABLES:
        assert archive.scan(name).select(pl.len()).collect().item() >= 0
    joined = archive.scan("kernels").join(archive.catalogue, on="trace_id").group_by("source").len().collect()
    assert dict(joined.iter_rows()) == {INPUT_BOUND: 510, LAUNCH_BOUND: 1456}


def test_a_table_that_no_trace_has_is_empty_with_its_columns(archive):
    scanned = archive.scan("device_ops").collect()
    assert scanned.height == 0
    assert scanned.columns == [*schema.table("device_ops").arrow.names, "format", "trace_id"]


def test_an_id_of_digits_stays_a_text(filled):
    archive = Archive(filled / "archive")
    trace_id = id_of(archive, LAUNCH_BOUND)
    folder = next((filled / "archive" / "traces").rglob(f"trace_id={trace_id}"))
    folder.rename(folder.with_name("trace_id=0000000000000012"))
    rows = archive.rows().with_columns(pl.col("trace_id").replace(trace_id, "0000000000000012"))
    archive.rows = lambda: rows
    assert "0000000000000012" in set(archive.scan("kernels").collect()["trace_id"])


def test_a_trace_that_was_removed_or_never_finished_is_not_scanned(filled):
    archive = Archive(filled / "archive")
    kernels = next((filled / "archive" / "traces").glob("format=nsys/*/kernels.parquet")).read_bytes()
    strange = filled / "archive" / "traces" / "format=nsys" / "trace_id=00000000000000ff"
    strange.mkdir()
    (strange / "kernels.parquet").write_bytes(kernels)
    archive.remove(id_of(archive, LAUNCH_BOUND))
    assert set(archive.scan("kernels").collect()["trace_id"]) == {id_of(archive, INPUT_BOUND)}


def test_queries_and_reports_are_those_of_the_commands(archive):
    scanned = archive.query("SELECT count(*) AS n FROM kernels WHERE trace_id = ?", [id_of(archive, INPUT_BOUND)])
    assert scanned["n"].to_list() == [510]
    assert archive.report().schema == "traceviz.population/1"
    assert archive.report("format = 'nsys'").run != archive.report().run


def test_an_archive_must_be_there_and_a_table_declared(tmp_path, archive):
    with pytest.raises(UsageError, match="is not an archive"):
        Archive(tmp_path).rows()
    with pytest.raises(UsageError, match="kernels"):
        archive.scan("kernel")
    assert repr(Archive("s3://bucket/a/")) == "Archive('s3://bucket/a')"


def test_neither_the_command_line_nor_the_package_loads_what_only_archives_need():
    program = (
        "import sys, traceviz.cli.main, traceviz; assert not {'duckdb', 'fsspec', 'polars'} & set(sys.modules);"
        "traceviz.Archive; loaded = {'distributed', 'dask'} & set(sys.modules); assert not loaded, loaded"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def counts_of(scanned):
    return dict(scanned.group_by("trace_id").agg(pl.len()).collect().sort("trace_id").iter_rows())


@pytest.mark.parametrize("place", ["x=1/archive", "trace_id=5/archive", "a b#c?d/archive", "archive[1]*"])
def test_an_archive_may_lie_below_any_folder(filled_once, tmp_path, place):
    whole = Archive(filled_once / "archive")
    shutil.copytree(filled_once / "archive", tmp_path / place)
    if "[" in place:  # what the name as a pattern would match, too
        shutil.copytree(filled_once / "archive", tmp_path / "archive1")
    scanned = Archive(tmp_path / place).scan("kernels")
    assert counts_of(scanned) == counts_of(whole.scan("kernels"))
    assert scanned.collect_schema() == whole.scan("kernels").collect_schema()


def test_a_remote_archive_is_scanned_with_the_options_of_its_store(filled_once, bucket, s3_environment, monkeypatch):
    import s3fs

    s3fs.S3FileSystem().put(str(filled_once / "archive"), f"{bucket}/archive", recursive=True)
    for name in s3_environment:
        monkeypatch.delenv(name)
    s3fs.S3FileSystem.clear_instance_cache()
    options = {"endpoint_url": s3_environment["AWS_ENDPOINT_URL"], "key": "testing", "secret": "testing"}
    remote, whole = Archive(f"{bucket}/archive", options), Archive(filled_once / "archive")
    for name in ("kernels", "processes", "device_ops"):
        scanned = remote.scan(name)
        assert scanned.collect_schema() == whole.scan(name).collect_schema()
        assert counts_of(scanned) == counts_of(whole.scan(name))
    trace_id = id_of(whole, LAUNCH_BOUND)
    assert set(remote.scan("kernels").filter(pl.col("trace_id") == trace_id).collect()["trace_id"]) == {trace_id}
