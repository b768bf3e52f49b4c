"""A store on S3 does what a local one does."""

import pytest

from traceviz.archive.storage.store import LAST, Store
from traceviz.core.errors import OutputError


def test_what_is_written_is_read_listed_measured_and_removed(bucket):
    store = Store.at(f"{bucket}/archive")
    assert store.names() == []
    store.write(b"one", "catalogue", "a.parquet")
    store.write(b"three", "catalogue", "b.parquet")
    store.write(b"3", "catalogue", "b.parquet")
    assert store.names("catalogue") == ["a.parquet", "b.parquet"]
    assert store.read("catalogue", "b.parquet") == b"3"
    assert store.sizes("catalogue") == {"a.parquet": 3, "b.parquet": 1}
    store.remove("catalogue", "a.parquet")
    assert store.names("catalogue") == ["b.parquet"]
    with pytest.raises(FileNotFoundError):
        store.read("catalogue", "a.parquet")
    store.remove("catalogue", "a.parquet")


def test_a_folder_is_there_when_its_last_file_is(bucket, monkeypatch):
    store = Store.at(bucket)
    filesystem = store.filesystem()  # one for the process
    put, order = filesystem.put_file, []

    def recorded(local, remote, **options):
        if remote.startswith(bucket.removeprefix("s3://")):  # others may share this file system of the process
            order.append(remote.rpartition("/")[2])
        return put(local, remote, **options)

    monkeypatch.setattr(filesystem, "put_file", recorded)
    with store.new_folder("traces", "one") as folder:
        for name in (LAST, "kernels.parquet", "zzz.json"):
            (folder / name).write_text(name)
        assert store.names("traces") == []
    assert order == ["kernels.parquet", "zzz.json", LAST]
    assert store.names("traces", "one") == ["kernels.parquet", LAST, "zzz.json"]
    store.remove("traces", "one")
    assert not store.exists("traces", "one")


def test_a_folder_that_fails_is_not_there(bucket):
    store = Store.at(bucket)

    def fail():
        with store.new_folder("traces", "one") as folder:
            (folder / LAST).write_text("{}")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert store.names("traces") == []


def test_what_another_process_wrote_meanwhile_is_seen(bucket):
    store = Store.at(bucket)
    store.write(b"", "catalogue", "a.parquet")
    assert store.names("catalogue") == ["a.parquet"]
    other = type(store.filesystem())(skip_instance_cache=True)
    other.pipe_file(f"{bucket}/catalogue/b.parquet", b"")
    assert store.names("catalogue") == ["a.parquet", "b.parquet"]
    other.rm_file(f"{bucket}/catalogue/a.parquet")
    assert store.names("catalogue") == ["b.parquet"]
    assert sorted(store.sizes("catalogue")) == ["b.parquet"]
    other.pipe_file(f"{bucket}/catalogue/c.parquet", b"")
    assert store.exists("catalogue", "c.parquet")
    assert not store.exists("catalogue", "a.parquet")
    other.pipe_file(f"{bucket}/new/c.parquet", b"")
    assert store.exists("new", "c.parquet")


def test_a_bucket_that_is_not_there_is_said(bucket):
    store = Store.at(f"{bucket}-of-others/archive")
    with pytest.raises(OutputError, match=r"of-others/archive cannot be written"):
        store.write(b"", "archive.json")
