"""The end of a command that meets an error: a message, the right exit code, and tracebacks only on request."""

import platform
import re

import polars as pl
import pyarrow as pa
import pytest

from tests.support.command import run
from traceviz import api
from traceviz.cli import boundary
from traceviz.core.errors import UsageError
from traceviz.core.sanitize import Lines
from traceviz.version import __version__


def failing(monkeypatch, error, name="report_on"):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(api, name, fail)


def test_a_defect_is_six_lines_without_private_data_and_exit_code_70(monkeypatch):
    failing(monkeypatch, KeyError("secret value"))
    done = run(
        "report", "/home/anna/secret.sqlite", "--width=99", "--top", "7", "--step-marker", "secret", "--", "--force"
    )
    assert done.returncode == 70
    lines = done.stderr.splitlines()
    assert lines[0] == "error: This is a defect of traceviz."
    assert re.fullmatch(
        r"  KeyError at traceviz\.cli\.report:\d+, in traceviz report --width --top --step-marker", lines[1]
    )
    assert lines[2].startswith(f"  traceviz {__version__}, Python {platform.python_version()}, ")
    assert "report these lines" in lines[3]
    assert "TRACEVIZ_DEBUG=1" in lines[4]
    assert len(lines) == 5
    assert not re.search("secret|anna|99|Traceback", done.stderr)


def test_commands_within_groups_are_named(monkeypatch, tmp_path):
    from traceviz.archive.storage.store import Store

    def fail(*_):
        raise AssertionError

    monkeypatch.setattr(Store, "at", fail)
    done = run("archive", "list", tmp_path, "--where", "host = 'secret'")
    assert done.returncode == 70
    assert done.stderr.splitlines()[1].endswith(", in traceviz archive list --where")


def test_a_traceback_is_shown_where_it_is_asked_for_and_is_harmless_too(monkeypatch):
    for error, code in ((KeyError("a"), 70), (OverflowError("\x1b[2J"), 3), (UsageError("\x1b[2J"), 2)):
        failing(monkeypatch, error)
        done = run("report", "x", env={"TRACEVIZ_DEBUG": "1"})
        assert done.returncode == code
        assert "Traceback (most recent call last):\n" in done.stderr
        assert "\x1b" not in done.stderr
        for off in ("", "0"):
            assert "Traceback" not in run("report", "x", env={"TRACEVIZ_DEBUG": off}).stderr


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (OverflowError("int too big"), "A number in it is too large: int too big."),
        (EOFError(), "It ends too early."),
        (RecursionError("deep"), "It is nested too deeply: deep."),
        (MemoryError(), "It needs more memory than there is."),
        (pa.ArrowInvalid("page"), "Arrow refuses it: page."),
        (pl.exceptions.PanicException("unwrap"), "Polars refuses it: unwrap."),
        (PermissionError(13, "Permission denied"), "Permission denied."),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_whatever_foreign_error_gets_to_the_top_is_in_words_with_exit_code_3(monkeypatch, error, why):
    failing(monkeypatch, error)
    done = run("report", "x")
    assert (done.returncode, done.stdout) == (3, "")
    lines = done.stderr.splitlines()
    assert lines[:2] == ["error: traceviz report cannot be completed.", f"  {why}"]
    assert len(lines) == 3


def test_a_defect_of_collect_has_the_exit_code_of_its_own_failures(monkeypatch):
    from traceviz.collectors import collect as collecting

    def fail(*_, **__):
        raise KeyError("secret")

    monkeypatch.setattr(collecting, "collect", fail)
    done = run("collect", "--with", "resources", "--", "python", "--name=secret", "--tag")
    assert done.returncode == 125
    assert done.stderr.splitlines()[1].endswith(", in traceviz collect --with")


def test_only_lines_that_traceviz_breaks_are_broken(capsys):
    boundary.complain(UsageError("a\nb", Lines.of("LINE 1: c\nd", "  ^"), "e\nf"))
    assert capsys.readouterr().err == "error: a␊b\n  LINE 1: c␊d\n    ^\n  e␊f\n"


def test_a_message_of_400_kb_is_printed_in_2(monkeypatch):
    failing(monkeypatch, UsageError("word " * 80_000))
    done = run("report", "x")
    assert len(done.stderr) == 1_985
    assert "398,056 characters left out" in done.stderr
