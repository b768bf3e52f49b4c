"""Sources that are large or claim to be: one that does not fit is refused, and the others are added."""

import os
import struct
from types import SimpleNamespace

import pytest

from tests.archive.packing import codes, fetched, find_items, tar_of, trace, zip_of
from traceviz.archive.archive import Archive
from traceviz.archive.runners.local import SerialRunner
from traceviz.archive.sources.hashes import Limits
from traceviz.archive.sources.packed import members
from traceviz.archive.storage import spool
from traceviz.archive.storage.spool import NoRoomError
from traceviz.core.errors import OutputError

RUN = b'{"kind": "traceviz.run", "version": 1}'


pytestmark = pytest.mark.usefixtures("own_spool")


@pytest.fixture
def disk(own_spool, monkeypatch):
    """Sets the space that is free, from which what is in the spool is taken away."""

    def set_free(free):
        def usage(_):
            written = sum(path.stat().st_size for path in own_spool.rglob("*") if path.is_file())
            return SimpleNamespace(free=free - written)

        monkeypatch.setattr(spool.shutil, "disk_usage", usage)

    return set_free


def saying(path, size, suffix):
    """Return the zip file whose directory states this size for members with that suffix."""
    data, at = bytearray(path.read_bytes()), 0
    while (at := data.find(b"PK\x01\x02", at)) >= 0:
        length = struct.unpack_from("<H", data, at + 28)[0]
        if data[at + 46 : at + 46 + length].endswith(suffix):
            struct.pack_into("<L", data, at + 24, size)
        at += 4
    path.write_bytes(data)
    return path


def test_of_a_packed_folder_the_ratio_of_all_members_together_counts(tmp_path):
    run = [("run/manifest.json", RUN), *((f"run/raw/{number}.bin", bytes(90_000)) for number in range(20))]
    made = zip_of(tmp_path / "t.zip", [*run, ("z.sqlite", b"1")])
    taken, refused = find_items(made, limits=Limits(ratio=100, free=100_000))
    assert list(taken) == ["t.zip/z.sqlite"]
    assert codes(refused) == {"t.zip/run": "bomb"}
    assert "times its packed size; the limit is 100" in refused[0].why
    assert set(find_items(made)[0]) == {"t.zip/run", "t.zip/z.sqlite"}  # as small ones are free under the usual limits
    made = tar_of(tmp_path / "t.tar", run)  # nothing is packed in it
    assert list(find_items(made, limits=Limits(ratio=100, free=100_000))[0]) == ["t.tar/run"]


def test_a_small_zip_that_says_that_it_holds_terabytes_ends_nothing(tmp_path, samples, disk):
    sources = tmp_path / "sources"
    sources.mkdir()
    contents = [("run/manifest.json", RUN), *((f"run/raw/{number}.bin", b"0123456789") for number in range(900))]
    saying(zip_of(sources / "a.zip", contents), (64 << 20) - 1, b".bin")
    one = zip_of(sources / "b.zip", [("b.sqlite", b"0123456789")])
    saying(one, (64 << 20) - 1, b".sqlite")
    (sources / "z.sqlite").write_bytes((samples / "synthetic" / "launch_bound.sqlite").read_bytes())
    disk(spool.RESERVE + (32 << 20))
    done = Archive(tmp_path / "archive").add(sources, runner=SerialRunner())
    assert done.added == 1
    assert codes(done.refused) == {"sources/a.zip/run": "bomb", "sources/b.zip/b.sqlite": "too-large"}
    assert "There is no space to unpack" in done.refused[1].why


def test_a_member_for_which_there_is_no_space_is_not_unpacked_and_a_smaller_one_is(tmp_path, disk):
    taken, _ = find_items(zip_of(tmp_path / "t.zip", [("a.sqlite", bytes(100_000)), ("b.sqlite", bytes(100))]))
    disk(spool.RESERVE + 99_999)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    with pytest.raises(NoRoomError, match="TMPDIR"):
        fetched(taken["t.zip/a.sqlite"], tmp_path / "a")
    assert not list(tmp_path.rglob("a.sqlite"))
    assert fetched(taken["t.zip/b.sqlite"], tmp_path / "b").stat().st_size == 100


def test_an_archive_file_that_unpacks_to_more_than_there_is_space_for_is_refused_and_removed_again(
    tmp_path, own_spool, disk, monkeypatch
):
    runs = tmp_path / "runs"
    runs.mkdir()
    tar_of(runs / "a.tar.zst", [("a.sqlite", os.urandom(100_000)), ("b.sqlite", os.urandom(100_000))])
    tar_of(runs / "b.tar.zst", [("a.sqlite", trace())])
    (runs / "z.sqlite").write_bytes(b"1")
    monkeypatch.setattr(spool, "SPACE_CHECKED", 50_000)
    monkeypatch.setattr(members, "BLOCK", 10_000)
    disk(spool.RESERVE + 150_000)
    taken, refused = find_items(runs)
    assert list(taken) == ["runs/z.sqlite", "runs/b.tar.zst/a.sqlite"]
    assert codes(refused) == {"runs/a.tar.zst": "too-large"}
    assert sum(path.stat().st_size for path in own_spool.rglob("*") if path.is_file()) < 50_000


def test_where_there_is_no_space_for_anything_it_ends(tmp_path, disk):
    made = tar_of(tmp_path / "t.tar.zst", [("a.sqlite", b"1")])
    disk(spool.RESERVE - 1)
    with pytest.raises(OutputError, match="TMPDIR"):
        find_items(made)
    taken, _ = find_items(zip_of(tmp_path / "t.zip", [("a.sqlite", b"1")]))
    (tmp_path / "room").mkdir()
    with pytest.raises(OutputError, match="TMPDIR"):
        fetched(taken["t.zip/a.sqlite"], tmp_path / "room")
