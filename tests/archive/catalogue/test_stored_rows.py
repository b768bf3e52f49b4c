"""The rows in the folder of a trace count if the folder is complete and the rows are as written."""

import hashlib
import json
import random
import shutil
from pathlib import Path

import polars as pl
import pytest

from tests.archive.made_sources import INPUT_BOUND
from traceviz.archive.archive import Archive
from traceviz.archive.catalogue.segments import stored_rows
from traceviz.archive.runners.local import SerialRunner
from traceviz.archive.storage.layout import ROWS
from traceviz.archive.storage.store import LAST


@pytest.fixture
def folder(filled):
    """The folder of a trace of nsys."""
    return min((filled / "archive" / "traces" / "format=nsys").iterdir())


def rows_of(folder):
    store = Archive(folder.parents[2]).store
    return stored_rows(store, "nsys", folder.name.removeprefix("trace_id="))


def test_rows_of_a_whole_folder_are_those_of_the_catalogue(filled, folder):
    (row,) = rows_of(folder).to_pylist()
    assert row["trace_id"] == folder.name.removeprefix("trace_id=")
    assert row["tags"] == [("branch", "main")]
    listed = Archive(filled / "archive").rows().row(by_predicate=pl.col("trace_id") == row["trace_id"], named=True)
    assert (row["added_ns"], row["source"]) == (listed["added_ns"], listed["source"])


@pytest.mark.parametrize("name", [ROWS, LAST, "kernels.parquet", ""])
def test_of_a_folder_without_one_of_its_files_there_are_none(folder, name):
    if name:
        (folder / name).unlink()
    else:
        shutil.rmtree(folder)
    assert rows_of(folder) is None


def test_of_rows_with_any_changed_byte_there_are_none(folder):
    path = folder / ROWS
    whole, chance = path.read_bytes(), random.Random(1)
    for at in chance.sample(range(len(whole)), 50):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert rows_of(folder) is None
    path.write_bytes(whole)
    assert len(rows_of(folder)) == 1


def test_rows_of_another_trace_do_not_count_though_their_sum_is_right(folder):
    other = max(folder.parent.iterdir())
    data = (other / ROWS).read_bytes()
    (folder / ROWS).write_bytes(data)
    manifest = json.loads((folder / LAST).read_text())
    manifest["files"][ROWS] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    (folder / LAST).write_text(json.dumps(manifest))
    assert rows_of(folder) is None
    assert rows_of(other) is not None


def test_adding_mends_a_trace_whose_rows_are_damaged(filled):
    archive = Archive(filled / "archive")
    rows = archive.rows()
    trace_id = rows.filter(rows["source"] == INPUT_BOUND)["trace_id"][0]
    path = Path(archive.store.url, "traces", "format=nsys", f"trace_id={trace_id}", ROWS)
    path.write_bytes(bytes(path.stat().st_size))
    done = archive.add(filled / "sources", runner=SerialRunner())
    assert (done.mended, done.known, done.added, done.ids) == (1, 4, 0, (trace_id,))
    assert done.quarantined == ()
    assert archive.verify().faults == ()
