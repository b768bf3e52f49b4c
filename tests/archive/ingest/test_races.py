"""Concurrent programs that add, remove, merge and check: all data stays complete, and nothing is lost."""

import os
import shutil
import time
from pathlib import Path

import fsspec
import polars as pl
import pyarrow.parquet as pq
import pytest

from tests.archive.catalogues import catalogue_of
from tests.archive.made_sources import LAUNCH_BOUND
from traceviz.archive.archive import Archive
from traceviz.archive.catalogue import segments as catalogue
from traceviz.archive.ingest import ingest
from traceviz.archive.ingest.ingest import IngestOptions
from traceviz.archive.runners.local import SerialRunner
from traceviz.archive.sources.hashes import Item
from traceviz.archive.storage import layout, store
from traceviz.archive.storage.layout import ROWS
from traceviz.archive.storage.leases import ABANDONED_S
from traceviz.archive.storage.store import LAST, Store
from traceviz.archive.upkeep import removal, verify
from traceviz.core.errors import DamagedTraceError

PLACE = ("traces", "format=nsys", "trace_id=0000000000000000")


@pytest.fixture
def remote():
    """A store on an object store of this process."""
    filesystem = fsspec.filesystem("memory")

    def empty():
        filesystem.store.clear()
        filesystem.pseudo_dirs[:] = [""]

    empty()
    yield Store.at("memory://bucket/archive")
    empty()


@pytest.fixture
def local(tmp_path):
    return Store.at(tmp_path / "archive")


def rows(*ids, changed=1):
    return catalogue_of(*({"trace_id": trace_id, "changed_ns": changed} for trace_id in ids)).to_arrow()


def put(place, text, names=("kernels.parquet", ROWS)):
    """Write a folder whose files all have the same contents."""
    with place.new_folder(*PLACE) as folder:
        for name in (*names, LAST):
            (folder / name).write_text(f"{text} {name}")


def texts(place):
    return {place.read(*PLACE, name).decode().partition(" ")[0] for name in place.names(*PLACE)}


class TestCatalogue:
    def test_rows_of_a_segment_that_was_merged_while_segments_were_listed_are_found(self, local, monkeypatch):
        old = [catalogue.append(local, rows(one)) for one in ("a", "b")]
        merged = catalogue.append(local, rows("a", "b"))
        local.remove("catalogue", old[0])
        lists = [[old[1]]]  # the old one is gone already, and the merged one was not there yet

        def listed(self, *parts):
            return lists.pop() if lists else names(self, *parts)

        names = Store.names
        monkeypatch.setattr(Store, "names", listed)
        assert catalogue.read(local)["trace_id"].to_list() == ["a", "b"]
        assert names(local, "catalogue") == sorted([old[1], merged])

    def test_a_segment_that_is_listed_and_never_there_is_an_error(self, tmp_path, local):
        catalogue.append(local, rows("a"))
        (Path(local.url) / "catalogue" / "x.parquet").symlink_to(tmp_path / "nowhere")
        with pytest.raises(DamagedTraceError, match="listed, but not there"):
            catalogue.read(local)

    def test_merging_leaves_out_what_counts_no_more(self, local):
        for changed in (1, 3, 2):
            catalogue.append(local, rows("a", "b", changed=changed))
        catalogue.append(local, rows("c"))
        before = catalogue.read(local)
        catalogue.merge(local, most=3)
        (segment,) = catalogue.segments(local)
        assert len(catalogue.read_segment(local, segment)) == 3
        assert catalogue.read(local).equals(before)
        assert before["changed_ns"].to_list() == [3, 3, 1]

    def test_where_another_program_merged_meanwhile_what_it_left_is_merged(self, local, monkeypatch):
        for name in ("a", "b"):
            catalogue.append(local, rows(name))
        left = catalogue.segments(local)
        lists = [[*left, "merged-meanwhile.parquet"], left]
        monkeypatch.setattr(catalogue, "segments", lambda _: lists.pop(0))
        catalogue.merge(local, most=1)
        (segment,) = local.names("catalogue")
        assert segment not in left
        assert lists == []


class TestStore:
    def test_a_folder_written_while_the_old_one_is_removed_stays_whole(self, local, monkeypatch):
        put(local, "old")

        def removed(path, **options):
            monkeypatch.undo()
            put(local, "new")
            shutil.rmtree(path, **options)

        monkeypatch.setattr(store.shutil, "rmtree", removed)
        local.remove(*PLACE)
        assert texts(local) == {"new"}
        assert local.names("work") == []

    @pytest.mark.parametrize("other", ["writes", "removes"])
    def test_a_remote_folder_is_whole_though_another_program_writes_or_removes_it(self, remote, monkeypatch, other):
        filesystem = remote.filesystem()
        whole = filesystem.put_file

        def late(source, target, **options):
            if target.endswith(LAST):  # all others of this one are there
                monkeypatch.undo()
                put(remote, "other") if other == "writes" else remote.remove(*PLACE)
            whole(source, target, **options)

        monkeypatch.setattr(filesystem, "put_file", late)
        put(remote, "mine")
        assert remote.names(*PLACE) == ["kernels.parquet", LAST, ROWS]
        assert texts(remote) == {"mine"}

    def test_who_was_not_last_leaves_it_to_who_was(self, remote, monkeypatch):
        filesystem = remote.filesystem()
        whole, count = filesystem.put_file, []

        def early(source, target, **options):
            whole(source, target, **options)
            count.append(target)
            if target.endswith(LAST):
                monkeypatch.undo()
                put(remote, "other")

        monkeypatch.setattr(filesystem, "put_file", early)
        put(remote, "mine")
        assert texts(remote) == {"other"}
        assert len(count) == 3

    def test_files_of_what_was_there_before_do_not_stay(self, remote, local):
        for place in (remote, local):
            put(place, "old", ("kernels.parquet", "memcpy.parquet"))
            put(place, "new", ("kernels.parquet",))
            assert place.names(*PLACE) == ["kernels.parquet", LAST]

    def test_what_is_there_meanwhile_may_stay(self, remote, local):
        for place in (remote, local):
            put(place, "first")
            with place.new_folder(*PLACE, unless=lambda: True) as folder:
                (folder / LAST).write_text("second")
            assert texts(place) == {"first"}

    def test_the_time_of_a_store_and_of_what_is_in_it_are_of_one_clock(self, remote, local):
        for place in (remote, local):
            put(place, "x")
            assert abs(place.now() - place.touched(*PLACE)) < 60
            assert place.touched("nowhere") is None


@pytest.fixture
def one(samples, tmp_path):
    """An item, and an archive without it."""
    source = shutil.copy(samples / "synthetic" / LAUNCH_BOUND, tmp_path)
    archive = Archive(tmp_path / "archive")
    layout.create(archive.store)
    return Item(str(source), LAUNCH_BOUND), archive


def ingested(item, archive, **options):
    return ingest.ingest(item, archive.store, IngestOptions(now_ns=time.time_ns(), **options))


class TestAdding:
    def test_who_comes_second_keeps_what_the_first_wrote(self, one, monkeypatch):
        item, archive = one
        whole = ingest._write_summary

        def slow(*arguments):
            monkeypatch.undo()
            assert ingested(item, archive, tags={"by": "first"}).outcome == "added"
            whole(*arguments)

        monkeypatch.setattr(ingest, "_write_summary", slow)
        second = ingested(item, archive, tags={"by": "second"})
        assert second.outcome == "known"
        assert second.rows["tags"].to_pylist() == [[("by", "first")]]
        (folder,) = Path(archive.store.url).glob("traces/*/*")
        assert pq.read_table(folder / ROWS)["tags"].to_pylist() == [[("by", "first")]]

    def test_what_cannot_be_read_here_and_was_added_elsewhere_is_not_quarantined(self, one, monkeypatch):
        item, archive = one

        def fail(*_):
            monkeypatch.undo()
            ingested(item, archive)
            raise MemoryError

        monkeypatch.setattr(ingest, "_convert", fail)
        assert ingested(item, archive).outcome == "known"

    def test_a_quarantined_trace_whose_folder_is_there_is_taken_up(self, one):
        item, archive = one
        trace_id = ingested(item, archive).rows["trace_id"][0].as_py()
        assert ingested(item, archive, quarantined=frozenset({trace_id})).outcome == "known"

    def test_rows_that_are_damaged_are_made_anew(self, one):
        item, archive = one
        ingested(item, archive)
        (path,) = Path(archive.store.url).glob(f"traces/*/*/{ROWS}")
        path.write_bytes(bytes(path.stat().st_size))
        assert ingested(item, archive).outcome == "added"
        assert len(pq.read_table(path)) == 1

    def test_a_trace_that_is_removed_while_it_is_looked_at_is_added(self, one, monkeypatch):
        item, archive = one
        ingested(item, archive)
        read = Store.read

        def removed_before(self, *parts):
            if parts[-1] == ROWS:
                monkeypatch.undo()
                self.remove(*parts[:-1])
            return read(self, *parts)

        monkeypatch.setattr(Store, "read", removed_before)
        assert ingested(item, archive).outcome == "added"
        assert Store.read is read

    def test_a_trace_that_is_removed_before_it_is_listed_is_not_listed(self, one):
        item, archive = one
        trace_id = ingested(item, archive).rows["trace_id"][0].as_py()  # by an add that was killed

        class Removing:
            def map(self, function, arguments):
                for done in SerialRunner().map(function, arguments):
                    archive.store.remove(*layout.trace_parts("nsys", trace_id))
                    yield done

        done = archive.add(item.url, runner=Removing())
        assert (done.added, [one.code for one in done.refused]) == (0, ["removed"])
        assert archive.rows().is_empty()
        assert archive.verify().faults == ()
        assert archive.add(item.url, runner=SerialRunner()).added == 1

    def test_a_trace_that_is_listed_while_it_is_removed_is_removed(self, filled, monkeypatch):
        archive = Archive(filled / "archive")
        (trace_id,) = archive.rows().filter(pl.col("source") == LAUNCH_BOUND)["trace_id"]
        of_it = archive.rows().filter(pl.col("trace_id") == trace_id).to_arrow()
        whole = Store.remove

        def late(self, *parts):
            monkeypatch.undo()
            newer = pl.from_arrow(of_it).with_columns(pl.lit(time.time_ns()).alias("changed_ns"))
            catalogue.append(self, newer.to_arrow())
            whole(self, *parts)

        monkeypatch.setattr(Store, "remove", late)
        assert removal.remove(archive.store, [trace_id]) == 1
        assert trace_id not in set(archive.rows()["trace_id"])
        assert archive.verify().faults == ()


class TestVerifying:
    @pytest.mark.parametrize("change", ["added", "removed", "mended"])
    def test_what_others_change_meanwhile_is_no_fault(self, filled, monkeypatch, change):
        archive = Archive(filled / "archive")
        (trace_id,) = archive.rows().filter(pl.col("source") == LAUNCH_BOUND)["trace_id"]
        place = layout.trace_parts("nsys", trace_id)
        if change == "added":
            archive.remove(trace_id)
        elif change == "mended":
            archive.store.remove(*place)
        whole = layout.traces_in

        def changed(at):
            monkeypatch.undo()
            listed = list(whole(at))
            if change == "removed":
                archive.remove(trace_id)
                return listed
            archive.add(filled / "sources", runner=SerialRunner())
            return whole(at) if change == "added" else listed

        monkeypatch.setattr(verify, "traces_in", changed)
        assert archive.verify().faults == ()

    def test_repair_leaves_alone_what_was_mended_meanwhile(self, filled):
        archive = Archive(filled / "archive")
        folder = min((filled / "archive" / "traces" / "format=nsys").iterdir())
        (folder / "kernels.parquet").unlink()
        faults = archive.verify().faults
        assert len(faults) == 1
        assert archive.add(filled / "sources", runner=SerialRunner()).mended == 1
        assert verify.repair(archive.store, faults) == verify.Repaired(0)
        assert archive.rows().filter(pl.col("state") == "ready")["trace_id"].n_unique() == 5
        assert archive.verify().faults == ()

    def test_a_trace_that_was_added_again_and_not_listed_yet_is_not_taken_for_a_removed_one(self, one):
        item, archive = one
        trace_id = archive.add(item.url, runner=SerialRunner()).ids[0]
        archive.remove(trace_id)
        ingested(item, archive)  # by an add that was killed, or has not listed it yet
        (fault,) = archive.verify().faults
        assert fault.kind == "unlisted"
        verify.repair(archive.store, (fault,))
        assert archive.rows()["trace_id"].to_list() == [trace_id]
        assert archive.verify().faults == ()

    def test_a_second_folder_of_a_trace_is_removed(self, filled):
        archive = Archive(filled / "archive")
        folder = min((filled / "archive" / "traces" / "format=nsys").iterdir())
        shutil.copytree(folder, filled / "archive" / "traces" / "format=old" / folder.name)
        (fault,) = archive.verify().faults
        assert (fault.kind, fault.why) == ("undeleted", "the catalogue has it as format=nsys")
        verify.repair(archive.store, (fault,))
        assert archive.verify().faults == ()
        assert folder.exists()

    def test_a_remote_folder_that_somebody_may_be_writing_is_no_fault(self, remote, monkeypatch):
        layout.create(remote)
        remote.write(b"", *PLACE, "kernels.parquet")
        assert verify.verify(remote).faults == ()
        later = time.time() + 2 * ABANDONED_S
        monkeypatch.setattr(verify.time, "time", lambda: later)
        (fault,) = verify.verify(remote).faults
        assert fault.kind == "incomplete"
        verify.repair(remote, (fault,))
        assert not remote.exists(*PLACE)


def test_what_somebody_writes_for_more_than_a_day_is_not_left_over(local):
    layout.create(local)
    for name in ("live", "left"):
        (Path(local.url) / "work" / name).mkdir()
        (Path(local.url) / "work" / name / "kernels.parquet").touch()
    now = local.now()
    for name in ("live", "left", "left/kernels.parquet"):
        os.utime(Path(local.url) / "work" / name, (now - 1000, now - 1000))
    assert layout.leftovers(local, 500, now) == ["left"]
