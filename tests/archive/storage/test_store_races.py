"""Programs that write the same place of a local archive at once."""

import errno
import os
import threading
from pathlib import Path

import pytest

from traceviz.archive.storage.store import LAST, Store
from traceviz.core.errors import OutputError

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
