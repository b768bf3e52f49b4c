"""Only regular files are opened: a named pipe would be waited for, and a device may have no end."""

import os
import socket

import pytest

from tests.support.command import run
from traceviz.core.errors import UnknownFormatError
from traceviz.scrub import scrub
from traceviz.untrusted.regular_files import check_regular

COMMANDS = (["report"], ["doctor"], ["convert", "-o", "out"], ["compare", "x"], ["scrub", "-o", "out"])


@pytest.fixture
def special(tmp_path, monkeypatch):
    """Files that are not regular, by name."""
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    (tmp_path / "x").write_text("no trace")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "there").symlink_to("back")
    (tmp_path / "back").symlink_to("there")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind("socket")
    for folder in ("plain", "deep"):
        (tmp_path / folder / "below").mkdir(parents=True)
    os.mkfifo("plain/manifest.json")
    os.mkfifo("deep/below/a.pt.trace.json")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("pipe", "pipe is a named pipe."),
        ("socket", "socket is a socket."),
        ("/dev/null", "/dev/null is a device."),
        ("loop", "loop cannot be opened. Too many levels of symbolic links."),
        ("there", "there cannot be opened. Too many levels of symbolic links."),
        ("plain", "plain/manifest.json is a named pipe."),
        ("deep", "deep/below/a.pt.trace.json is a named pipe."),
        ("x" * 300, "File name too long."),
    ],
)
def test_it_is_refused_at_once_by_every_command_that_takes_a_trace(special, name, message):
    for command in COMMANDS:
        done = run(*command, name)
        assert done.returncode == 3
        assert message in " ".join(line.strip() for line in done.stderr.splitlines()).removeprefix("error: ")
    assert not (special / "out").exists()


def test_an_archive_refuses_it_too(special):
    for name, code in (("pipe", "device"), ("deep", "device"), ("loop", "link")):
        done = run("archive", "add", "archive", name)
        assert (done.returncode, f"    {code}: It is" in done.stdout) == (3, True)


def test_what_is_there_to_wait_for_is_no_matter_where_no_reader_opens_it(special):
    (special / "folder").mkdir()
    os.mkfifo("folder/.hidden.json")
    os.mkfifo("folder/agent.sock")
    (special / "folder" / "dangling.json").symlink_to("nowhere")
    check_regular(special / "folder")
    check_regular(special / "x")
    check_regular(special / "nothing")


def test_a_path_with_a_nul_is_no_path(tmp_path):
    with pytest.raises(UnknownFormatError, match="is no path"):
        check_regular(tmp_path / "a\0b")
    with pytest.raises(UnknownFormatError, match="is no path"):
        scrub(tmp_path / "a\0b", tmp_path / "out")
