"""Zip files of object stores: who lists them reads their directory, and only who unpacks them all of them."""

import os

import fsspec
import pytest

from tests.archive.packing import SUFFIX, codes, fetched, find_items, tar_of, trace, zip_of
from traceviz.archive.sources.discover import fetch
from traceviz.archive.sources.hashes import Limits
from traceviz.archive.sources.packed import members
from traceviz.archive.storage.spool import SPOOL
from traceviz.core.errors import UnknownFormatError

LARGE = 1_000_000


pytestmark = pytest.mark.usefixtures("own_spool")


@pytest.fixture
def contents():
    """A trace by its name, one by its first bytes, something else, and much that is none of these."""
    large = [(f"{number}.bin", os.urandom(LARGE)) for number in range(8)]
    return [(f"a{SUFFIX}", trace("a")), *large, ("b.json", trace("b")), ("c.json", b"{}")]


@pytest.fixture
def copied(monkeypatch):
    """Counts how often an archive file is copied to this machine."""
    copies, unpacked = [], members._unpack
    monkeypatch.setattr(members, "_unpack", lambda *given: copies.append(1) or unpacked(*given))
    members._index.cache_clear()
    return copies


class _Counting:
    """A file that adds up what is read of it."""

    def __init__(self, file, reads):
        self._file, self._reads = file, reads

    def __getattr__(self, name):
        return getattr(self._file, name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()

    def read(self, size=-1):
        data = self._file.read(size)
        self._reads.append(len(data))
        return data


@pytest.fixture
def memory(monkeypatch):
    """An object store of this process, and the bytes that are read of it."""
    filesystem = fsspec.filesystem("memory")
    filesystem.store.clear()
    reads, opened = [], type(filesystem).open
    monkeypatch.setattr(type(filesystem), "open", lambda *given, **more: _Counting(opened(*given, **more), reads))
    yield filesystem, reads
    filesystem.store.clear()


def test_to_list_a_zip_of_an_object_store_only_a_part_of_it_is_read(tmp_path, memory, contents, copied):
    filesystem, reads = memory
    filesystem.pipe_file("/bucket/t.zip", zip_of(tmp_path / "t.zip", contents).read_bytes())
    reads.clear()
    taken, refused = find_items("memory://bucket/t.zip")
    assert set(taken) == {f"t.zip/a{SUFFIX}", "t.zip/b.json"}
    assert len(refused) == 9
    assert 0 < sum(reads) < 2 * LARGE  # of 8: the starts of files whose names show nothing
    assert copied == []
    (tmp_path / "room").mkdir()
    assert fetched(taken["t.zip/b.json"], tmp_path / "room").read_bytes() == trace("b")
    assert copied == [1]
    assert sum(reads) > 8 * LARGE


def test_a_zip_on_s3_is_listed_where_it_lies_and_its_members_fetched(tmp_path, bucket, contents, copied):
    made = zip_of(tmp_path / "t.zip", contents)
    fsspec.filesystem("s3").put_file(str(made), f"{bucket}/t.zip")
    taken, _ = find_items(f"{bucket}/t.zip")
    assert list(taken) == list(find_items(made)[0])
    assert copied == []
    for number, item in enumerate(taken.values()):
        (tmp_path / str(number)).mkdir()
        assert fetched(item, tmp_path / str(number)).read_bytes() in {trace("a"), trace("b")}
    assert copied == [1]


def test_a_tar_of_an_object_store_is_copied_to_list_it(tmp_path, memory, copied):
    filesystem, _ = memory
    filesystem.pipe_file("/bucket/t.tar", tar_of(tmp_path / "t.tar", [(f"a{SUFFIX}", trace())]).read_bytes())
    assert list(find_items("memory://bucket/t.tar")[0]) == [f"t.tar/a{SUFFIX}"]
    assert copied == [1]


def test_a_store_that_fails_while_a_zip_is_listed_is_no_zip_that_is_cut(tmp_path, memory, contents, monkeypatch):
    filesystem, _ = memory
    filesystem.pipe_file("/bucket/t.zip", zip_of(tmp_path / "t.zip", contents).read_bytes())
    read = _Counting.read

    def failing(self, size=-1):
        if self._file.tell() > LARGE:
            raise OSError(5, "Input/output error")
        return read(self, size)

    monkeypatch.setattr(_Counting, "read", failing)
    taken, refused = find_items("memory://bucket/t.zip")
    assert (taken, codes(refused)) == ({}, {"t.zip": "unreachable"})
    assert "Input/output error" in refused[0].why


def test_a_copy_that_another_add_of_this_process_lets_go_of_is_made_again(tmp_path, memory, contents, monkeypatch):
    filesystem, _ = memory
    filesystem.pipe_file("/bucket/t.zip", zip_of(tmp_path / "t.zip", contents).read_bytes())
    taken, _ = find_items("memory://bucket/t.zip")
    plain_copy = members._plain_copy

    def released_at_once(*given):
        monkeypatch.undo()
        path = plain_copy(*given)
        SPOOL.release()
        return path

    into = tmp_path / "into"
    into.mkdir()
    monkeypatch.setattr(members, "_plain_copy", released_at_once)
    assert fetch(taken["t.zip/b.json"], into, Limits()).read_bytes() == trace("b")


def test_a_zip_that_is_gone_when_it_is_fetched_is_said(tmp_path, memory, contents):
    filesystem, _ = memory
    filesystem.pipe_file("/bucket/t.zip", zip_of(tmp_path / "t.zip", contents).read_bytes())
    taken, _ = find_items("memory://bucket/t.zip")
    filesystem.rm("/bucket/t.zip")
    into = tmp_path / "into"
    into.mkdir()
    with pytest.raises(UnknownFormatError, match="cannot be read"):
        fetch(taken["t.zip/b.json"], into, Limits())
