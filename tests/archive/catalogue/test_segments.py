"""Segments of the catalogue: written once; any change of their bytes is detected."""

import hashlib
import json
import random
import shutil
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.archive.made_sources import INPUT_BOUND
from tests.archive.small_archives import add_rows, new_archive
from traceviz.archive.archive import Archive
from traceviz.archive.catalogue import segments as catalogue
from traceviz.archive.catalogue.columns import CATALOGUE
from traceviz.archive.catalogue.segments import FOLDER, stored_rows
from traceviz.archive.runners.local import SerialRunner
from traceviz.archive.storage.layout import ROWS
from traceviz.archive.storage.store import LAST
from traceviz.archive.upkeep.verify import repair, verify
from traceviz.core.errors import DamagedTraceError


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


FLIPS, LARGEST = 200, 256


def damaged(data, seed):
    """Return the bytes with 3 of them changed."""
    chance, changed = random.Random(seed), bytearray(data)
    for at in chance.sample(range(len(changed)), 3):
        changed[at] ^= chance.randrange(1, LARGEST)
    return bytes(changed)


@pytest.fixture
def store(tmp_path):
    made = new_archive(tmp_path / "archive")
    add_rows(made, {"trace_id": "a1", "state": "quarantined"}, {"trace_id": "b2", "tags": [("a", "b")]})
    return made


def test_every_change_of_the_bytes_of_a_segment_is_seen(store):
    (name,) = catalogue.segments(store)
    whole = store.read(FOLDER, name)
    assert len(catalogue.read_segment(store, name)) == 2
    for seed in range(FLIPS):
        store.write(damaged(whole, seed), FOLDER, name)
        with pytest.raises(DamagedTraceError, match="verify --repair"):
            catalogue.read_segment(store, name)
    store.write(whole, FOLDER, name)
    assert len(catalogue.read_segment(store, name)) == 2


def test_what_parquet_itself_complains_of_is_damage_and_nothing_else_is_raised(store):
    (name,) = catalogue.segments(store)
    whole = store.read(FOLDER, name)
    reasons = []
    for seed in range(FLIPS):
        try:
            catalogue.parse_rows(damaged(whole, seed))
        except DamagedTraceError as error:
            reasons.append(error.why)
    assert len(reasons) > FLIPS / 2
    assert all(reasons)


def test_a_damaged_segment_is_a_fault_that_is_mended(store):
    (name,) = catalogue.segments(store)
    store.write(damaged(store.read(FOLDER, name), 1), FOLDER, name)
    faults = verify(store).faults
    assert [(one.kind, one.why) for one in faults] == [("catalogue", "Its SHA-256 is not that of its name.")]
    assert repair(store, faults).count == 1
    assert catalogue.read(store).is_empty()
    assert verify(store).faults == ()


@pytest.mark.parametrize("how", ["without it", "null"])
def test_rows_without_what_every_row_has_are_damage(how):
    row = {"trace_id": "a1", "state": "ready", "source": "x", "source_sha256": "0", "added_ns": 1, "changed_ns": 1}
    rows = pa.Table.from_pylist([row], schema=pa.schema([field for field in CATALOGUE if field.name in row]))
    if how == "null":
        rows = rows.append_column("traceviz_version", pa.nulls(1, pa.string()))
    written = pa.BufferOutputStream()
    pq.write_table(rows, written)
    with pytest.raises(DamagedTraceError) as raised:
        catalogue.parse_rows(written.getvalue().to_pybytes())
    assert raised.value.why == "It lacks values of the column traceviz_version."


def test_columns_of_a_newer_version_are_null_in_rows_of_an_older_one():
    needed = [field for field in CATALOGUE if not field.nullable]
    values = [pa.array([1 if pa.types.is_integer(field.type) else "x"], field.type) for field in needed]
    written = pa.BufferOutputStream()
    pq.write_table(pa.table(values, schema=pa.schema(needed)), written)
    (row,) = catalogue.parse_rows(written.getvalue().to_pybytes()).to_pylist()
    assert (row["trace_id"], row["changed_ns"], row["verdict"], row["findings"]) == ("x", 1, None, None)
