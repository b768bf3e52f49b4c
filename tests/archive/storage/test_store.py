"""Folders and files of an archive: written at once, with errors of libraries, and in an object store."""

import errno
import ftplib
import os
import threading
from pathlib import Path

import fsspec
import pytest
from botocore.exceptions import NoCredentialsError
from click.testing import CliRunner
from fsspec.implementations.memory import MemoryFileSystem

from traceviz.archive.archive import Archive
from traceviz.archive.storage.layout import check, create
from traceviz.archive.storage.store import LAST, Store
from traceviz.cli.main import main
from traceviz.core.errors import OutputError, UsageError


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


PLACE = ("traces", "format=nsys", "trace_id=0000000000000000")
LARGE = 200_000
NAMES = ("kernels.parquet", "report.json", LAST)


@pytest.fixture(params=["memory", pytest.param("s3", marks=pytest.mark.slow)])
def store(request):
    if request.param == "s3":
        yield Store.at(f"{request.getfixturevalue('bucket')}/archive")
        return
    filesystem = fsspec.filesystem("memory")
    filesystem.store.clear()
    yield Store.at("memory://bucket/archive")
    filesystem.store.clear()


def put(store, letter):
    with store.new_folder(*PLACE) as folder:
        for name in NAMES:
            (folder / name).write_text(letter * LARGE)


def recorded(store, monkeypatch, between):
    """Return the names of written files, in order; ``between`` runs before the last file is first written."""
    filesystem = store.filesystem()
    whole, order = filesystem.put_file, []

    def putting(local, remote, **options):
        name = remote.rpartition("/")[2]
        if name == LAST and LAST not in order:
            between(lambda name, text: filesystem.pipe_file(f"{remote.rpartition('/')[0]}/{name}", text.encode()))
        order.append(name)
        return whole(local, remote, **options)

    monkeypatch.setattr(filesystem, "put_file", putting)
    return order


@pytest.mark.parametrize("name", NAMES[:2])
def test_a_large_file_of_another_program_is_put_once_more(store, monkeypatch, name):
    order = recorded(store, monkeypatch, lambda write: write(name, "b" * LARGE))
    put(store, "a")
    assert order == [*NAMES, *NAMES]
    assert {store.read(*PLACE, one) for one in NAMES} == {b"a" * LARGE}


def test_what_nobody_else_writes_is_put_once(store, monkeypatch):
    order = recorded(store, monkeypatch, lambda _: None)
    put(store, "a")
    assert order == [*NAMES]


def test_what_s3_tells_of_a_file_is_enough_to_know_it(bucket, monkeypatch):
    store = Store.at(f"{bucket}/archive")
    monkeypatch.setattr(Store, "open", lambda *_: pytest.fail("A file was read back."))
    put(store, "a")
    assert store.names(*PLACE) == [*NAMES[:1], LAST, NAMES[1]]


URL, SHOWN = "failing://user:hunter2@host/archive", "failing://host/archive"
SECRET = "hunter2"


class Failing(MemoryFileSystem):
    """A file system that raises the given errors."""

    protocol = "failing"
    cachable = False
    error = None

    def _fail(self, *_given, **_more):
        raise self.error

    ls = find = info = exists = cat_file = pipe_file = open = _fail


@pytest.fixture(
    params=[NoCredentialsError(), ftplib.error_perm("530 user:hunter2@host"), OSError(5, "no"), ValueError("x")]
)
def failing(request, monkeypatch):
    fsspec.register_implementation("failing", Failing, clobber=True)
    monkeypatch.setattr(Failing, "error", request.param)
    return Store.at(URL)


@pytest.mark.parametrize(
    "action",
    [
        lambda store: store.exists("a"),
        lambda store: store.names("a"),
        lambda store: store.read("a"),
        lambda store: store.write(b"", "a"),
        lambda store: store.sizes("a"),
        lambda store: store.open("a").__enter__(),
        create,
        check,
    ],
    ids=["exists", "names", "read", "write", "sizes", "open", "create", "check"],
)
def test_every_error_of_a_library_is_one_of_the_archive(failing, action):
    with pytest.raises(OutputError, match=f"{SHOWN} cannot be used") as raised:
        action(failing)
    assert SECRET not in str(raised.value)


def test_the_command_ends_with_3_and_without_a_password(failing):
    ran = CliRunner().invoke(main, ["archive", "list", URL])
    assert ran.exit_code == 3
    assert SHOWN in ran.output
    assert SECRET not in ran.output


def test_errors_of_the_program_itself_stay_what_they_are(failing, monkeypatch):
    monkeypatch.setattr(Failing, "error", ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        failing.read("a")


def test_an_archive_is_called_without_user_and_password(failing):
    assert failing.called("catalogue", "a") == f"{SHOWN}/catalogue/a"
    assert repr(Archive(URL)) == f"Archive('{SHOWN}')"
    assert SECRET not in repr(Store.at("s3://bucket", {"secret": SECRET}))
    with pytest.raises(UsageError, match="nosuch://host/x cannot be reached") as raised:
        Store.at("nosuch://user:hunter2@host/x")
    assert SECRET not in str(raised.value)


def test_what_the_reader_of_a_file_complains_of_is_its_own_affair(tmp_path):
    store = Store.at(tmp_path)
    store.write(b"content", "a")

    def copy():
        with store.open("a") as file:
            assert file.read(3) == b"con"
            assert (file.tell(), file.seek(1), file.read()) == (3, 1, b"ontent")
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        copy()


WRITERS, ROUNDS = 4, 50


def test_folders_written_at_once_under_one_name_end_whole_and_nobody_fails(tmp_path):
    store = Store.at(tmp_path)
    barrier = threading.Barrier(WRITERS)
    failed = []

    def write(writer):
        try:
            for _ in range(ROUNDS):
                barrier.wait()
                with store.new_folder("traces", "one") as folder:
                    for name in ("kernels.parquet", LAST):
                        (folder / name).write_text(str(writer))
        except Exception as error:  # noqa: BLE001 (it must reach the test)
            failed.append(error)
            barrier.abort()

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert store.names("traces", "one") == ["kernels.parquet", LAST]
    assert store.read("traces", "one", LAST) == store.read("traces", "one", "kernels.parquet")
    assert store.names("work") == []


def test_files_written_at_once_under_one_name_are_one_of_them(tmp_path):
    store = Store.at(tmp_path)
    texts = [bytes([letter]) * 100_000 for letter in b"abcd"]
    threads = [threading.Thread(target=store.write, args=(text, "archive.json")) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.read("archive.json") in texts
    assert store.names("work") == []


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (errno.EROFS, r"^The archive /\S+ is read-only\. Nothing was written\.$"),
        (errno.EACCES, r"cannot be used\. Permission denied\.$"),
    ],
)
def test_a_place_that_cannot_be_written_is_said_without_names_of_temporary_files(
    tmp_path, monkeypatch, number, message
):
    def refuse(*_, **__):
        raise OSError(number, os.strerror(number), str(tmp_path / "work" / "traceviz-0"))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(OutputError, match=message):
        Store.at(tmp_path / "archive").write(b"", "archive.json")
