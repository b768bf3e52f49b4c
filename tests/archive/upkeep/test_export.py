"""Traces leave an archive as folders that every command reads, or one table of all of them."""

import polars as pl
import pyarrow.parquet as pq
import pytest

import traceviz
from tests.analyses.builders import tables
from tests.archive.made_sources import INPUT_BOUND, LAUNCH_BOUND, POINTER, SUMMARY
from tests.archive.small_archives import add_trace, new_archive
from traceviz.archive.archive import Archive
from traceviz.archive.catalogue import segments as catalogue
from traceviz.archive.upkeep.export import export_table
from traceviz.core.errors import DamagedTraceError, OutputExistsError, UsageError


def id_of(archive, source):
    return archive.rows().filter(pl.col("source") == source)["trace_id"][0]


def test_exported_folders_give_the_report_of_the_source(filled_once, tmp_path):
    archive = Archive(filled_once / "archive")
    (folder,) = archive.export(id_of(archive, INPUT_BOUND)[:6], folder=tmp_path / "out")
    assert folder == tmp_path / "out" / id_of(archive, INPUT_BOUND)
    ours, theirs = (traceviz.report_on(path) for path in (folder, filled_once / "sources" / INPUT_BOUND))
    assert (ours.verdict, ours.sections, ours.findings) == (theirs.verdict, theirs.sections, theirs.findings)
    assert not (folder / "rows.parquet").exists()


def test_nothing_is_replaced_unasked_and_nothing_is_written_where_one_is_in_the_way(filled_once, tmp_path):
    archive = Archive(filled_once / "archive")
    first, second = id_of(archive, INPUT_BOUND), id_of(archive, LAUNCH_BOUND)
    archive.export(second, folder=tmp_path)
    with pytest.raises(OutputExistsError):
        archive.export(first, second, folder=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [second]
    assert len(archive.export(first, second, folder=tmp_path, force=True)) == 2


def test_a_table_of_all_traces_has_their_rows_and_their_ids(filled_once, tmp_path):
    archive = Archive(filled_once / "archive")
    ids = [id_of(archive, source) for source in (INPUT_BOUND, LAUNCH_BOUND, SUMMARY)]
    count = export_table(archive.store, archive.rows(), ids, "kernels", tmp_path / "kernels.parquet")
    table = pl.read_parquet(tmp_path / "kernels.parquet")
    assert table.columns[0] == "trace_id"
    counts = dict(table.group_by("trace_id").len().cast({"trace_id": pl.String}).iter_rows())
    assert counts == {ids[0]: 510, ids[1]: 1456}
    assert count == 1966
    source = (
        traceviz.open(filled_once / "sources" / LAUNCH_BOUND).kernels.select("start_ns", "dur_ns", "name").collect()
    )
    ours = table.filter(pl.col("trace_id") == ids[1]).select("start_ns", "dur_ns", "name")
    assert ours.cast({"name": pl.String}).equals(source.cast({"name": pl.String}))


def test_a_table_that_no_trace_has_is_an_empty_file_with_its_columns(filled_once, tmp_path):
    archive = Archive(filled_once / "archive")
    assert export_table(archive.store, archive.rows(), [id_of(archive, SUMMARY)], "nvtx", tmp_path / "n.parquet") == 0
    assert {"trace_id", "name", "start_ns"} <= set(pq.read_schema(tmp_path / "n.parquet").names)


def test_what_was_never_read_and_what_does_not_exist_is_not_exported(filled_once, tmp_path):
    archive = Archive(filled_once / "archive")
    with pytest.raises(UsageError, match="has no tables"):
        archive.export(id_of(archive, POINTER), folder=tmp_path)
    with pytest.raises(UsageError, match="kernels"):
        export_table(archive.store, archive.rows(), [], "kernel", tmp_path / "k.parquet")
    assert list(tmp_path.iterdir()) == []


def test_a_trace_of_which_a_file_is_missing_is_not_exported_in_part(filled, tmp_path):
    archive = Archive(filled / "archive")
    wanted = id_of(archive, INPUT_BOUND)
    next((filled / "archive").rglob(f"trace_id={wanted}/memcpy.parquet")).unlink()
    with pytest.raises(DamagedTraceError, match=r"memcpy\.parquet is missing"):
        archive.export(wanted, folder=tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_a_trace_whose_table_is_damaged_is_not_exported(filled, tmp_path):
    archive = Archive(filled / "archive")
    wanted = id_of(archive, INPUT_BOUND)
    path = next((filled / "archive").rglob(f"trace_id={wanted}/kernels.parquet"))
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 0x55
    path.write_bytes(data)
    with pytest.raises(DamagedTraceError, match=r"SHA-256 of kernels\.parquet"):
        archive.export(wanted, folder=tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_an_empty_table_without_a_file_adds_no_rows_and_is_no_fault(tmp_path):
    store = new_archive(tmp_path / "archive")
    add_trace(store, "a" * 16, tables(kernels=[(0, 100, "gemm")], memset=[]))
    assert Archive(tmp_path / "archive").scan("memset").collect().height == 0
    rows = catalogue.read(store)
    assert export_table(store, rows, ["a" * 16], "memset", tmp_path / "memset.parquet") == 0
    assert export_table(store, rows, ["a" * 16], "kernels", tmp_path / "kernels.parquet") == 1
