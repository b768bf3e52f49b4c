"""Signals and terminals: what reaches the program, how often, and what is kept of the run."""

import contextlib
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.collectors.core_runs import begin, command, is_alive, manifest, python, wait_for

COUNTING = """
import os, signal, sys, time
log = open({log!r}, 'a', buffering=1)
def note(number, frame):
    log.write(f'{{number}}\\n')
    if number in {ends}:
        time.sleep(0.3)
        log.write('saved\\n')
        sys.exit(7)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT):
    signal.signal(number, note)
log.write('up\\n')
while True:
    time.sleep(0.05)
"""


class Counted:
    """A program that writes down the signals that it gets, and ends with 7 upon those in ``ends``."""

    def __init__(self, folder, ends=(2, 15, 1)):
        self.log = folder / "log"
        self.run = folder / "run"
        self.arguments = ("-o", self.run, "--no-report", *python(COUNTING.format(log=str(self.log), ends=tuple(ends))))

    @property
    def lines(self):
        return self.log.read_text().split() if self.log.exists() else []

    def wait_until_up(self):
        wait_for(lambda: "up" in self.lines)


@contextlib.contextmanager
def in_terminal(*arguments, collectors="fake"):
    """A recording whose terminal we hold the other end of; yields the process and that end."""
    line, environment = command(*arguments, collectors=collectors)
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(line[0], line, environment)
    try:
        yield pid, terminal
    finally:
        os.close(terminal)
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def exit_of(pid):
    """The exit code of a process, once it has ended."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    raise AssertionError("it did not end in time")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_us_goes_to_the_program_once_and_we_wait_for_it_to_save(tmp_path, number):
    program = Counted(tmp_path)
    running = begin(*program.arguments)
    program.wait_until_up()
    running.send_signal(number)
    assert running.wait(timeout=20) == 7
    assert program.lines == ["up", str(int(number)), "saved"]
    found = manifest(program.run)
    assert (found["status"], found["exit"]["code"], found["collectors"][0]["state"]) == ("interrupted", 7, "recorded")


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT])
def test_signals_that_a_program_uses_for_itself_reach_it(tmp_path, number):
    program = Counted(tmp_path)
    running = begin(*program.arguments)
    program.wait_until_up()
    running.send_signal(number)
    wait_for(lambda: len(program.lines) == 2)
    running.terminate()
    assert running.wait(timeout=20) == 7
    assert program.lines == ["up", str(int(number)), "15", "saved"]


def test_ctrl_c_in_a_terminal_reaches_the_program_exactly_once(tmp_path):
    program = Counted(tmp_path)
    with in_terminal(*program.arguments) as (pid, terminal):
        program.wait_until_up()
        os.write(terminal, b"\x03")
        assert exit_of(pid) == 7
    assert program.lines == ["up", "2", "saved"]
    assert manifest(program.run)["status"] == "interrupted"


def test_a_second_ctrl_c_ends_the_program_and_its_children_at_once(tmp_path):
    code = (
        "import signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'], start_new_session=True)\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(f'{{child.pid}} ')\n"
        "time.sleep(60)\n"
    )
    with in_terminal("-o", tmp_path / "run", *python(code)) as (pid, terminal):
        wait_for(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().endswith(" "))
        child = int((tmp_path / "pid").read_text())
        os.write(terminal, b"\x03")
        time.sleep(0.7)
        assert is_alive(child)
        os.write(terminal, b"\x03")
        assert exit_of(pid) == 130
    wait_for(lambda: not is_alive(child), 2)
    found = manifest(tmp_path / "run")
    assert (found["status"], found["exit"]) == ("interrupted", {"code": 137, "signal": 9})
    assert [problem["code"] for problem in found["problems"]] == ["not-harvested"]


def test_ctrl_c_while_the_harvest_lasts_ends_it_and_keeps_the_exit_code(tmp_path):
    running = begin("-o", tmp_path / "run", *python("raise SystemExit(3)"), collectors="slow")
    wait_for((tmp_path / "run/harvesting").exists)
    running.send_signal(signal.SIGINT)
    assert running.wait(timeout=10) == 3
    found = manifest(tmp_path / "run")
    assert (found["status"], found["collectors"][0]["state"]) == ("failed", "recording")
    assert [problem["code"] for problem in found["problems"]] == ["not-harvested"]


def test_a_signal_that_comes_to_the_process_and_to_its_group_is_one_request(tmp_path):
    program = Counted(tmp_path)
    line, environment = command(*program.arguments)
    limited = ["timeout", "--signal=INT", "3", *line]
    done = subprocess.run(limited, env=environment, check=False, capture_output=True, timeout=30)
    assert done.returncode == 124
    assert program.lines[0] == "up"
    assert "saved" in program.lines
    assert manifest(program.run)["exit"]["signal"] is None


def test_a_program_without_a_handler_dies_of_the_signal_and_we_say_which(tmp_path):
    log = tmp_path / "up"
    running = begin("-o", tmp_path / "run", *python(f"import time; open({str(log)!r}, 'w'); time.sleep(60)"))
    wait_for(log.exists)
    running.terminate()
    assert running.wait(timeout=20) == 143
    found = manifest(tmp_path / "run")
    assert (found["status"], found["exit"]) == ("interrupted", {"code": 143, "signal": 15})


def test_a_program_in_a_terminal_reads_what_is_typed(tmp_path):
    code = "import sys; print(sys.stdin.isatty(), sys.stdout.isatty(), input().upper()); raise SystemExit(3)"
    with in_terminal("-o", tmp_path / "run", "--no-report", *python(code)) as (pid, terminal):
        os.write(terminal, b"typed\n")
        said = b""
        with contextlib.suppress(OSError):
            while piece := os.read(terminal, 4096):
                said += piece
        assert exit_of(pid) == 3
    assert b"True True TYPED" in said


def test_a_terminal_that_closes_leaves_a_saved_run(tmp_path):
    program = Counted(tmp_path)
    with in_terminal(*program.arguments):
        program.wait_until_up()
    wait_for(lambda: "saved" in program.lines)
    assert program.lines.count("saved") == 1


def state_of(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_paused_recording_pauses_the_program_and_both_go_on(tmp_path):
    program = Counted(tmp_path)
    running = begin(*program.arguments, process_group=0)
    program.wait_until_up()
    child = manifest(program.run)["pid"]
    running.send_signal(signal.SIGTSTP)
    wait_for(lambda: (state_of(running.pid), state_of(child)) == ("T", "T"))
    running.send_signal(signal.SIGCONT)
    wait_for(lambda: state_of(running.pid) != "T" and state_of(child) != "T")
    running.terminate()
    assert running.wait(timeout=20) == 7
    assert manifest(program.run)["status"] == "interrupted"


def test_signals_that_were_ignored_from_the_start_stay_ignored_and_none_is_held_back(tmp_path):
    code = "print(next(x.split()[1] for x in open('/proc/self/status') if x.startswith({0!r})))"
    shown = {}
    for name in ("SigBlk:", "SigIgn:"):
        line, environment = command("-o", tmp_path / name[:6], "--no-report", *python(code.format(name)))
        ignoring = ["sh", "-c", 'trap "" HUP; exec "$@"', "sh", *line]
        done = subprocess.run(ignoring, env=environment, check=True, capture_output=True, text=True)
        shown[name] = int(done.stdout, 16)
    assert shown["SigBlk:"] == 0
    # SIGHUP (1); and SIGPIPE (13), SIGXFSZ (25), which that Python ignores for itself; 32 and 33 are the C library's
    assert shown["SigIgn:"] & 0x7FFFFFFF == 1 << 0 | 1 << 12 | 1 << 24


def test_a_program_whose_reader_goes_away_ends_as_it_would_alone(tmp_path):
    line, environment = command("-o", tmp_path / "run", "--no-report", "--", "yes")
    with subprocess.Popen(line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as running:
        assert running.stdout.readline() == b"y\n"
        running.stdout.close()
        assert running.wait(timeout=20) == 141
    assert manifest(tmp_path / "run")["exit"] == {"code": 141, "signal": 13}


def test_a_recording_called_from_a_program_with_threads_ends_when_its_program_does(tmp_path):
    code = (
        "import sys, threading, time\n"
        "from pathlib import Path\n"
        "from traceviz.recording import CollectOptions, collect\n"
        "threading.Thread(target=time.sleep, args=(4,), daemon=True).start()\n"
        f"options = CollectOptions(output=Path({str(tmp_path)!r}) / 'run', collectors=('resources',))\n"
        "begin = time.monotonic()\n"
        "codes = []\n"
        "command = [sys.executable, '-c', 'raise SystemExit(6)']\n"
        "inner = threading.Thread(target=lambda: codes.append(collect(options, command).exit_code))\n"
        "inner.start(); inner.join()\n"
        "print(codes, time.monotonic() - begin < 10)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=60)
    assert done.stdout == "[6] True\n", done.stderr
