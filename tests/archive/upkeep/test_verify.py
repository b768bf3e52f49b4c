"""All damage of an archive is named, and fixed without the sources as far as possible."""

import json
import os
import shutil
import time

import polars as pl
import pyarrow.parquet as pq
import pytest

from tests.archive.made_sources import READABLE
from traceviz.archive.archive import Archive
from traceviz.archive.catalogue import segments as catalogue
from traceviz.archive.runners.local import SerialRunner
from traceviz.archive.upkeep import removal
from traceviz.archive.upkeep.verify import ABANDONED_S, Repaired, repair, verify
from traceviz.core.errors import DamagedTraceError, UsageError

NSYS = "format=nsys"


def trace_in(filled, format_folder=NSYS):
    return min((filled / "archive" / "traces" / format_folder).iterdir())


def only_fault(filled):
    faults = Archive(filled / "archive").verify().faults
    assert len(faults) == 1, faults
    return faults[0]


def test_a_whole_archive_has_no_faults_and_all_of_it_was_read(filled_once):
    verified = Archive(filled_once / "archive").verify()
    assert verified.faults == ()
    assert verified.traces == 5
    files = [path for path in (filled_once / "archive" / "traces").rglob("*") if path.is_file()]
    assert verified.bytes == sum(path.stat().st_size for path in files if path.name != "manifest.json")


def test_what_is_no_archive_is_not_verified(tmp_path):
    with pytest.raises(UsageError, match="is not an archive"):
        Archive(tmp_path).verify()


def test_a_changed_byte_is_found_unless_only_sizes_are_compared(filled):
    folder = trace_in(filled)
    data = bytearray((folder / "kernels.parquet").read_bytes())
    data[len(data) // 2] ^= 1
    (folder / "kernels.parquet").write_bytes(data)
    fault = only_fault(filled)
    assert (fault.kind, fault.trace_id) == ("damaged", folder.name.removeprefix("trace_id="))
    assert fault.name.endswith("kernels.parquet")
    assert "SHA-256" in fault.why
    assert Archive(filled / "archive").verify(quick=True).faults == ()


def test_a_file_that_was_cut_is_found_by_its_size(filled):
    path = trace_in(filled) / "report.json"
    path.write_bytes(path.read_bytes()[:-10])
    assert "bytes, and the manifest says" in only_fault(filled).why


def test_a_missing_file_and_a_strange_one_are_named(filled):
    folder = trace_in(filled)
    (folder / "memcpy.parquet").unlink()
    (folder / "stranger.parquet").write_bytes(b"")
    faults = Archive(filled / "archive").verify().faults
    assert {(one.name.rpartition("/")[2], one.why) for one in faults} == {
        ("memcpy.parquet", "it is missing"),
        ("stranger.parquet", "the manifest does not name it"),
    }


def test_a_table_of_another_number_of_rows_than_the_manifest_says_is_damaged(filled):
    path = trace_in(filled) / "manifest.json"
    manifest = json.loads(path.read_text())
    rows = pq.read_metadata(path.parent / "kernels.parquet").num_rows
    path.write_text(json.dumps({**manifest, "tables": {**manifest["tables"], "kernels": rows + 1}}))
    assert only_fault(filled).why == f"it has {rows:,} rows, and the manifest says {rows + 1}"


def test_repair_takes_out_what_is_damaged_and_adding_its_source_brings_it_back(filled):
    archive = Archive(filled / "archive")
    trace_id = trace_in(filled).name.removeprefix("trace_id=")
    (trace_in(filled) / "kernels.parquet").unlink()
    (trace_in(filled) / "memcpy.parquet").unlink()
    verified = archive.verify()
    name = archive.rows().filter(pl.col("trace_id") == trace_id)["source"][0]
    assert repair(archive.store, verified.faults) == Repaired(2, ((trace_id, name),))
    assert archive.verify().faults == ()
    assert trace_id not in set(archive.rows()["trace_id"])
    done = archive.add(filled / "sources", runner=SerialRunner())
    assert (done.added, done.ids) == (1, (trace_id,))
    assert archive.verify().faults == ()


def test_a_folder_that_is_gone_is_missing_and_repair_takes_its_row_out(filled):
    archive = Archive(filled / "archive")
    folder = trace_in(filled)
    shutil.rmtree(folder)
    fault = only_fault(filled)
    assert (fault.kind, fault.name) == ("missing", f"traces/{NSYS}/{folder.name}")
    repair(archive.store, (fault,))
    assert archive.verify().faults == ()
    assert archive.rows().filter(pl.col("state") == "ready")["trace_id"].n_unique() == 4


def test_traces_that_the_catalogue_does_not_have_are_listed_again(filled):
    archive = Archive(filled / "archive")
    before = archive.rows().filter(pl.col("state") == "ready").drop("changed_ns")
    for name in catalogue.segments(archive.store):
        archive.store.remove(catalogue.FOLDER, name)
    faults = archive.verify().faults
    assert [one.kind for one in faults] == ["unlisted"] * 5
    repair(archive.store, faults)
    assert archive.verify().faults == ()
    assert archive.rows().drop("changed_ns").equals(before)
    assert set(archive.rows()["source"]) == READABLE


def test_a_damaged_segment_is_named_everywhere_and_repaired_from_the_folders(filled):
    archive = Archive(filled / "archive")
    (segment,) = catalogue.segments(archive.store)
    (filled / "archive" / "catalogue" / segment).write_bytes(b"PAR1 no more")
    with pytest.raises(DamagedTraceError, match="verify --repair"):
        archive.rows()
    faults = archive.verify().faults
    assert [one.kind for one in faults] == ["catalogue", *["unlisted"] * 5]
    assert faults[0].name == f"catalogue/{segment}"
    repair(archive.store, faults)
    assert archive.verify().faults == ()
    assert set(archive.rows()["source"]) == READABLE


def test_a_folder_without_a_manifest_is_incomplete_where_nobody_knows_it_and_damaged_where_it_was_added(filled):
    strange = filled / "archive" / "traces" / NSYS / "trace_id=0123456789abcdef"
    strange.mkdir()
    (strange / "kernels.parquet").write_bytes(b"")
    assert only_fault(filled).kind == "incomplete"
    repair(Archive(filled / "archive").store, Archive(filled / "archive").verify().faults)
    assert not strange.exists()
    (trace_in(filled) / "manifest.json").unlink()
    fault = only_fault(filled)
    assert (fault.kind, fault.why) == ("damaged", "it has no manifest.json")


def test_a_removal_that_was_interrupted_is_named_and_ended(filled, monkeypatch):
    archive = Archive(filled / "archive")
    folder = trace_in(filled)
    monkeypatch.setattr("traceviz.archive.storage.store.Store.remove", lambda *_: None)
    removal.remove(archive.store, [folder.name.removeprefix("trace_id=")])
    monkeypatch.undo()
    fault = only_fault(filled)
    assert fault.kind == "undeleted"
    repair(archive.store, (fault,))
    assert not folder.exists()
    assert archive.verify().faults == ()


def test_leftovers_of_who_was_killed_a_day_ago_are_named_and_removed(filled):
    left = filled / "archive" / "work" / "traceviz-left"
    left.mkdir(parents=True)
    assert Archive(filled / "archive").verify().faults == ()  # another process may be writing it
    long_ago = time.time() - 2 * ABANDONED_S
    os.utime(left, (long_ago, long_ago))
    fault = only_fault(filled)
    assert (fault.kind, fault.name) == ("leftover", "work/traceviz-left")
    repair(Archive(filled / "archive").store, (fault,))
    assert not left.exists()


def test_progress_names_every_trace(filled_once):
    told = []
    verify(Archive(filled_once / "archive").store, quick=True, progress=lambda *said: told.append(said))
    assert told == [("verifying traces", done, 5) for done in range(5)]
