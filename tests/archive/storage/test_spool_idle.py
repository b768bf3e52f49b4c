"""Copies of archive files on a machine that never hears that an add has ended."""

import tempfile
import threading
import time

import pytest

from traceviz.archive.storage.spool import Spool

PATIENCE_S = 60


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of the copies."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def spool(folder):
    spool = Spool(idle_s=0.02)
    yield spool
    spool.release()
    assert copies(folder) == []


def copies(folder):
    return [path for path in folder.glob("*/*") if path.is_file()]


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def watching():
    return [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]


def test_copies_that_are_not_used_any_more_are_removed(spool):
    path = spool.copy_of("a", lambda: [b"content"])
    wait_until(lambda: not path.exists())
    wait_until(lambda: not watching())
    assert spool.copy_of("a", lambda: [b"content"]).read_bytes() == b"content"


def test_while_a_trace_is_worked_on_the_copies_stay(spool):
    with spool.room() as room:
        path = spool.copy_of("a", lambda: [b"content"])
        first = watching()
        wait_until(lambda: watching() and watching() != first)  # it was looked at, and will be again
        assert path.read_bytes() == b"content"
        assert room.is_dir()
    wait_until(lambda: not path.exists())


def test_nothing_looks_for_copies_that_were_let_go_of(spool, folder):
    spool.copy_of("a", lambda: [b"content"])
    spool.release()
    wait_until(lambda: not watching())
    assert copies(folder) == []
