"""Folders for temporary files of one process; other processes sweep them if it was killed."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from traceviz.archive.storage import spool as spool_module
from traceviz.archive.storage.spool import Spool
from traceviz.archive.storage.store import LAST, Store
from traceviz.core.errors import OutputError

HOLDER = """
import sys, time
from traceviz.archive.storage.spool import Spool
with Spool().room() as room:
    (room / "secret").write_text("secret")
    print(room, flush=True)
    time.sleep(60)
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def spool(place):
    return Spool()


def entries(place):
    return [entry for folder in place.iterdir() for entry in folder.iterdir()]


def test_a_room_is_empty_of_this_user_alone_and_gone_afterwards(spool, place):
    with spool.room() as room, spool.room() as other:
        assert room != other
        assert list(room.iterdir()) == []
        assert room.stat().st_mode & 0o777 == 0o700
        (room / "a" / "b").mkdir(parents=True)
    assert entries(place) == []


def test_the_room_of_a_living_process_stays_and_that_of_a_killed_one_is_swept(spool, place):
    with subprocess.Popen([sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, text=True) as program:
        room = program.stdout.readline().strip()
        with spool.room():
            assert [entry.name for entry in Path(room).iterdir()] == ["secret"]
        program.send_signal(signal.SIGKILL)
        program.wait()
        assert [entry.name for entry in Path(room).iterdir()] == ["secret"]
        with spool.room() as mine:
            assert entries(place) == [mine]


def test_a_room_that_is_swept_before_it_is_held_is_made_again(spool, monkeypatch):
    whole, swept = os.open, []

    def late(path, flags, *mode):
        handle = whole(path, flags, *mode)
        if flags & os.O_DIRECTORY and not swept:
            swept.append(path)
            path.rmdir()
        return handle

    monkeypatch.setattr(spool_module.os, "open", late)
    with spool.room() as room:
        assert len(swept) == 1
        assert room != swept[0]
        assert room.is_dir()


def test_a_place_that_cannot_be_written_is_named(spool, place, monkeypatch):
    monkeypatch.setattr(spool_module, "_new_room", _full)
    with pytest.raises(OutputError, match=f"{place}.* cannot be written. No space left on device"), spool.room():
        pass


def _full(folder):
    raise OSError(28, os.strerror(28), str(folder))


def test_what_goes_into_a_remote_archive_waits_in_a_room(place):
    store = Store.at("memory://rooms/archive")
    with store.new_folder("traces", "one") as folder:
        (folder / LAST).write_text("{}")
        assert entries(place) == [folder]
    assert entries(place) == []
    assert store.names("traces", "one") == [LAST]
