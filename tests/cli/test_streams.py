"""Commands whose stdout, stderr or stdin cannot be used."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SAMPLE = Path(__file__).parents[2] / "sample_traces" / "synthetic" / "input_bound.sqlite"
pytestmark = pytest.mark.process


def traceviz(*words, shell="", **options):
    """Return a ``traceviz`` of its own below a shell, which redirects its streams."""
    line = ["bash", "-c", f'exec "$@" {shell}', "bash", sys.executable, "-m", "traceviz", *map(str, words)]
    return subprocess.run(line, check=False, capture_output=True, text=True, **options)


QUICK = [["--help"], ["explain", "TV101"], ["completion", "bash"], ["archive", "add", "--help"]]
SLOW = [
    ["--version"],
    ["explain"],
    ["doctor"],
    ["doctor", SAMPLE],
    ["report", SAMPLE],
    ["compare", SAMPLE, SAMPLE],
    ["convert", SAMPLE, "-o", "OUT"],
    ["scrub", SAMPLE, "-o", "OUT"],
    ["archive", "add", "OUT", SAMPLE, "--workers", "1"],
]


def check_failing_stdout(words, shell, why, tmp_path):
    done = traceviz(*(tmp_path / "out" if word == "OUT" else word for word in words), shell=shell)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.splitlines() == [
        "error: The output cannot be written to stdout.",
        f"  {why}.",
        "  Redirect it to a place that can be written.",
    ]


@pytest.mark.parametrize(("shell", "why"), [(">/dev/full", "No space left on device"), (">&-", "It is closed")])
@pytest.mark.parametrize("words", QUICK, ids=" ".join)
def test_a_stdout_that_takes_nothing_is_one_error(words, shell, why, tmp_path):
    check_failing_stdout(words, shell, why, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("shell", "why"), [(">/dev/full", "No space left on device"), (">&-", "It is closed")])
@pytest.mark.parametrize("words", SLOW, ids=lambda words: " ".join(map(str, words[:2])))
def test_a_stdout_that_takes_nothing_is_one_error_of_commands_that_read(words, shell, why, tmp_path):
    check_failing_stdout(words, shell, why, tmp_path)


@pytest.mark.slow
def test_every_command_of_archive_says_that_stdout_takes_nothing(tmp_path):
    store, out = tmp_path / "archive", tmp_path / "out"
    assert traceviz("archive", "add", store, SAMPLE, "--workers", "1").returncode == 0
    trace_id = traceviz("archive", "list", store, "--columns", "trace_id", "--format", "csv").stdout.split()[-1]
    after = {
        "list": [],
        "show": [trace_id],
        "query": ["SELECT 1"],
        "report": [],
        "trend": ["input_share"],
        "verify": [],
        "export": [trace_id, "-o", out],
        "remove": [trace_id],
    }
    for name, rest in after.items():
        check_failing_stdout(["archive", name, store, *rest], ">/dev/full", "No space left on device", tmp_path)


@pytest.mark.parametrize("shell", ["2>&-", "2>/dev/full"])
def test_a_stderr_that_takes_nothing_changes_no_exit_code(shell, tmp_path):
    bad = tmp_path / "bad.txt"
    bad.write_text("no trace")
    assert traceviz("report", bad, shell=shell).returncode == 3
    assert traceviz("frobnicate", shell=shell).returncode == 2
    assert traceviz("explain", "TV101", shell=shell).stdout.startswith("TV101")


def test_a_file_that_is_written_does_not_get_what_is_meant_for_a_closed_stderr(tmp_path):
    program = (
        "from traceviz.core.process import streams; streams.guard(); import os; "
        "print(os.open('file', os.O_CREAT | os.O_RDWR))"
    )
    done = subprocess.run(
        ["bash", "-c", 'exec "$@" 2>&- <&-', "bash", sys.executable, "-c", program],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert int(done.stdout) > 2


def test_a_reader_that_has_enough_ends_the_command_quietly():
    done = traceviz("explain", shell="| head -1")
    assert (len(done.stdout.splitlines()), done.stderr) == (1, "")


def test_a_stdout_that_takes_a_little_at_a_time_gets_all_of_it():
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    program = "from traceviz.core.process import streams; streams.guard(); print('x' * 1_000_000)"
    child = subprocess.Popen([sys.executable, "-c", program], stdout=theirs)
    os.close(theirs)
    with os.fdopen(ours, "rb") as reading:
        assert len(reading.read()) == 1_000_001
    assert child.wait() == 0


def test_a_trace_on_standard_input_is_read_and_called_so(tmp_path):
    done = traceviz("report", "-", shell=f"< <(cat {SAMPLE})", env={**os.environ, "TMPDIR": str(tmp_path)})
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "standard input")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "shell", "code", "message"),
    [
        (["report", "-"], "< /dev/null", 3, "Standard input is empty."),
        (["report", "-"], "<&-", 3, "Standard input cannot be read.\n  It is closed."),
        (["compare", "-", "/dev/stdin"], f"< {SAMPLE}", 2, "Standard input is named twice."),
        (["report", "-"], "< <(echo hello)", 3, "standard input is not a trace that traceviz knows."),
        (["report", "/dev/fd/7"], "7< <(cat)", 3, "/dev/fd/7 is a named pipe."),
    ],
)
def test_a_standard_input_that_is_no_trace_is_an_error(words, shell, code, message):
    done = traceviz(*words, shell=shell)
    assert done.returncode == code
    assert done.stderr.startswith(f"error: {message}")


def test_a_terminal_as_standard_input_is_refused():
    ours, theirs = os.openpty()
    done = traceviz("report", "-", stdin=theirs)
    os.close(ours)
    os.close(theirs)
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, "error: Standard input is a terminal.")


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [["doctor", "-"], ["scrub", "-", "-o", "OUT"], ["convert", "-", "-o", "OUT"], ["archive", "add", "OUT", "-"]],
    ids=lambda words: words[0],
)
def test_every_command_that_takes_a_trace_takes_it_from_standard_input(words, tmp_path):
    (tmp_path / "tmp").mkdir()
    env = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    done = traceviz(
        *(tmp_path / "out" if word == "OUT" else word for word in words), shell=f"< <(cat {SAMPLE})", env=env
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_library_takes_no_signal():
    program = (
        "import signal, traceviz.api, traceviz.core.files, traceviz.archive.runners.local\n"
        "print(*(signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)), sep='\\n')"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    expected = [signal.default_int_handler, signal.SIG_DFL, signal.SIG_DFL]
    assert done.stdout.splitlines() == [str(handler) for handler in expected]
