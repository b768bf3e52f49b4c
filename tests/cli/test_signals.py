"""A signal at any moment of a command: the exit code of a shell, no traceback, and nothing left."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SAMPLES = Path(__file__).parents[2] / "sample_traces" / "synthetic"
INPUT_BOUND, TWO_RANKS = SAMPLES / "input_bound.sqlite", SAMPLES / "two_ranks.sqlite"
pytestmark = pytest.mark.process

COMMANDS = {
    "report": ["report", INPUT_BOUND],
    "convert": ["convert", INPUT_BOUND, "-o", "OUT"],
    "scrub": ["scrub", INPUT_BOUND, "-o", "OUT"],
    "archive add": ["archive", "add", "OUT", INPUT_BOUND, TWO_RANKS, "--workers", "2"],
    "collect": ["collect", "--with", "resources", "-o", "OUT", "--", "sleep", "0.5"],
}
NEVER_HALF = {"report", "convert", "scrub"}
"""Commands that leave their whole output or none; an archive and a run keep what they have so far."""


class Run:
    """A command under way, in a session of its own, with folders of its own for output and temporary files."""

    def __init__(self, name, folder):
        self.name, self.out, self.tmp = name, folder / "out", folder / "tmp"
        self.out.mkdir(parents=True)
        self.tmp.mkdir()
        words = (self.out / "it" if word == "OUT" else word for word in COMMANDS[name])
        self.process = subprocess.Popen(
            [sys.executable, "-m", "traceviz", *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, "TMPDIR": str(self.tmp), "HOME": str(folder)},
        )
        self.began = time.monotonic()

    def wait_until_guarded(self):
        """Wait until the process takes signals: before it runs our code, Python may print anything."""
        while self.process.poll() is None and not self._takes(signal.SIGTERM):
            time.sleep(0.002)
        self.began = time.monotonic()

    def _takes(self, number):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("SigCgt:")[2].split()[0], 16) >> (number - 1) & 1

    def end(self):
        """End it and return its output on stderr."""
        return self.process.communicate(timeout=120)[1]

    def left(self):
        """Return half-written and temporary files."""
        names = [str(path) for path in self.tmp.rglob("*")]
        hidden = (path for path in self.out.rglob(".*") if path.name != ".reserve")
        return names + [str(path) for path in hidden]


def seconds_of(name, folder):
    """Return the duration of the command when nothing ends it."""
    run = Run(name, folder)
    run.wait_until_guarded()
    errors = run.end()
    assert run.process.returncode == 0, errors
    assert run.left() == []
    return time.monotonic() - run.began


def check(name, folder, number, delay_s, *, to_all):
    run = Run(name, folder)
    run.wait_until_guarded()
    time.sleep(delay_s)
    (os.killpg if to_all else os.kill)(run.process.pid, number)
    errors = run.end()
    assert "Traceback" not in errors
    assert "Exception ignored" not in errors
    assert run.left() == []
    # It may have been complete by then; and a program that has ended decides about the exit code of its recording.
    assert run.process.returncode in {0, 128 + number}
    if run.process.returncode and name in NEVER_HALF:
        assert errors == "Interrupted; nothing half-written was left behind.\n"
    return run.process.returncode


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_it_imports_ends_a_command_with_its_number(number, tmp_path):
    assert check("convert", tmp_path, number, 0.02, to_all=False) == 128 + number
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_signal_at_any_moment_ends_a_command_without_a_trace_of_it(name, tmp_path):
    chance = random.Random(name)
    whole_s = seconds_of(name, tmp_path / "whole")
    codes = [
        check(
            name,
            tmp_path / str(moment),
            chance.choice([signal.SIGINT, signal.SIGTERM]),
            chance.uniform(0, whole_s),
            to_all=chance.random() < 0.5,
        )
        for moment in range(8)
    ]
    assert any(codes)


WRAPPED = """
import os, signal, sys
import traceviz.__main__

class Wraps:
    @staticmethod
    def find_spec(name, path, target=None):
        if name == "traceviz.cli.main":
            try:
                os.kill(os.getpid(), signal.SIGTERM)
                for _ in range(1000): pass
            except BaseException as error:
                raise RuntimeError("as classes make it of what is raised in __set_name__") from error

sys.meta_path.insert(0, Wraps)
traceviz.__main__.run()
"""


def test_a_request_that_an_import_turns_into_an_error_of_its_own_still_ends_the_command():
    ended = subprocess.run([sys.executable, "-c", WRAPPED], capture_output=True, text=True, check=False)
    assert ended.stderr == "Interrupted; nothing half-written was left behind.\n"
    assert ended.returncode == 128 + signal.SIGTERM
