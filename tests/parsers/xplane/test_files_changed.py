"""A capture that is cut or written to while it is read: an error, and not the end of the process by SIGBUS."""

import os
import shutil

import pytest

from tests.conftest import REPOSITORY
from traceviz.core.errors import DamagedTraceError
from traceviz.parsers.xplane import content

SAMPLE = min((REPOSITORY / "sample_traces").rglob("*.xplane.pb"))


@pytest.fixture
def capture(tmp_path):
    return shutil.copyfile(SAMPLE, tmp_path / "a.xplane.pb")


def when_opened(monkeypatch, change):
    """Have ``change`` happen once the file is open and its size known, before its content is read."""
    fstat, seen = os.fstat, []

    def changing(descriptor):
        state = fstat(descriptor)
        if not seen:
            seen.append(state)
            change()
        return state

    monkeypatch.setattr(content.os, "fstat", changing)


def test_a_file_that_is_cut_while_it_is_read_is_an_error(capture, monkeypatch):
    size = capture.stat().st_size
    when_opened(monkeypatch, lambda: os.truncate(capture, 1_000))
    with pytest.raises(DamagedTraceError) as raised:
        content.read_file(capture)
    assert raised.value.what == "a.xplane.pb was changed while it was read."
    assert raised.value.why == f"It held {size:,} bytes, and 1,000 could be read."


def test_a_file_that_is_overwritten_while_it_is_read_is_an_error(capture, monkeypatch):
    before = capture.read_bytes()
    when_opened(monkeypatch, lambda: (capture.write_bytes(before[::-1]), os.utime(capture, ns=(1, 1))))
    with pytest.raises(DamagedTraceError, match="was changed while it was read"):
        content.read_file(capture)


def test_what_happens_to_the_file_later_changes_nothing(capture, monkeypatch):
    """The content is in memory, and no mapping of a file that can shrink."""
    expected = len(content.read_file(capture).planes)
    read_space = content.read_space

    def cutting(data):
        os.truncate(capture, 0)
        return read_space(data)

    monkeypatch.setattr(content, "read_space", cutting)
    assert expected > 0
    assert len(content.read_file(capture).planes) == expected


def test_a_file_that_grows_while_it_is_read_is_an_error(capture, monkeypatch):
    size = capture.stat().st_size
    when_opened(monkeypatch, lambda: os.truncate(capture, size + 4))
    with pytest.raises(DamagedTraceError) as raised:
        content.read_file(capture)
    assert raised.value.why == f"It held {size:,} bytes, and {size + 4:,} could be read."
