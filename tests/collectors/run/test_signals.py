"""Signals and terminals: what reaches the program, how often, and what is kept of the run."""

import contextlib
import fcntl
import functools
import os
import pty
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from tests.collectors.run.driven import begin, collect, command, is_alive, manifest, python, wait_for
from traceviz.collectors.base import Plan, Wrapped
from traceviz.collectors.nsys.collector import NsysCollector
from traceviz.collectors.program.processes import kill_tree
from traceviz.collectors.program.start import Started
from traceviz.collectors.program.supervise import Wrapper, _Program

SECOND_NS = 1_000_000_000

COUNTING = """
import os, signal, sys, time
log = os.open({log!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
def note(number, frame):
    os.write(log, f'{{number}}\\n'.encode())
    if number in {ends}:
        time.sleep(0.1)
        os.write(log, b'saved\\n')
        sys.exit(7)
for number in ("INT", "TERM", "HUP", "USR1", "USR2", "QUIT", "WINCH"):
    signal.signal(getattr(signal, f'SIG{{number}}'), note)
{first}
os.write(log, b'up\\n')
while True:
    time.sleep(0.05)
"""


class Counted:
    """A program that writes down the signals that it gets, and ends with 7 upon those in ``ends``."""

    def __init__(self, folder, ends=(2, 15, 1), first=""):
        self.log = folder / "log"
        self.run = folder / "run"
        code = COUNTING.format(log=str(self.log), ends=tuple(ends), first=first)
        self.arguments = ("-o", self.run, "--no-report", *python(code))

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
        kill_tree(pid)  # what a failed test leaves
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)


def pressing_until_it_ends(pid, terminal):
    """Press Ctrl-C until the process ends (presses in quick succession may be one); its exit code."""
    codes = []

    def ended():
        with contextlib.suppress(OSError):
            os.write(terminal, b"\x03")
        codes[:] = [os.waitstatus_to_exitcode(status) for done, status in [os.waitpid(pid, os.WNOHANG)] if done]
        return codes

    wait_for(ended)
    return codes[0]


def exit_of(pid):
    """Return the exit code of a process, once it has ended."""
    end = time.monotonic() + 60
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
    assert running.wait(timeout=60) == 7
    assert program.lines == ["up", str(int(number)), "saved"]
    document = manifest(program.run)
    assert (document["status"], document["exit"]["code"], document["collectors"][0]["state"]) == (
        "interrupted",
        7,
        "recorded",
    )


def test_signals_that_a_program_uses_for_itself_reach_it(tmp_path):
    program = Counted(tmp_path)
    running = begin(*program.arguments)
    program.wait_until_up()
    for count, number in enumerate((signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT), 2):
        running.send_signal(number)
        wait_for(lambda count=count: len(program.lines) == count)
    running.terminate()
    assert running.wait(timeout=60) == 7
    assert program.lines == ["up", "10", "12", "3", "15", "saved"]


@pytest.mark.parametrize("collectors", ["fake", "launched"])
def test_ctrl_c_in_a_terminal_reaches_the_program_exactly_once(tmp_path, collectors):
    program = Counted(tmp_path)
    with in_terminal(*program.arguments, collectors=collectors) as (pid, terminal):
        program.wait_until_up()
        os.write(terminal, b"\x03")
        assert exit_of(pid) == 7
    assert program.lines == ["up", "2", "saved"]
    assert manifest(program.run)["status"] == "interrupted"


@pytest.mark.parametrize("collectors", ["fake", "launched"])
def test_ctrl_c_in_a_terminal_reaches_the_program_that_a_shell_runs(tmp_path, collectors):
    program = Counted(tmp_path)
    *ours, _, python_, flag, code = program.arguments
    script = 'trap : INT; "$@"; exit 5'
    with in_terminal(*ours, "--", "sh", "-c", script, "sh", python_, flag, code, collectors=collectors) as (pid, tty):
        program.wait_until_up()
        os.write(tty, b"\x03")
        assert exit_of(pid) == 5
    assert program.lines == ["up", "2", "saved"]


@pytest.mark.parametrize("collectors", ["fake", "launched"])
def test_a_program_hears_that_its_terminal_has_another_size(tmp_path, collectors):
    program = Counted(tmp_path)
    with in_terminal(*program.arguments, collectors=collectors) as (pid, terminal):
        program.wait_until_up()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        wait_for(lambda: len(program.lines) == 2)
        os.write(terminal, b"\x03")
        assert exit_of(pid) == 7
    assert program.lines == ["up", "28", "2", "saved"]


@pytest.mark.parametrize("collectors", ["fake", "launched"])
def test_a_second_ctrl_c_ends_the_program_and_its_children_at_once(tmp_path, collectors):
    child = (
        "import subprocess\n"
        "child = subprocess.Popen(['sleep', '60'], start_new_session=True)\n"
        "os.write(log, f'{child.pid}\\n'.encode())\n"
    )
    program = Counted(tmp_path, ends=(), first=child)
    with in_terminal(*program.arguments, collectors=collectors) as (pid, terminal):
        program.wait_until_up()
        child = int(program.lines[0])
        os.write(terminal, b"\x03")
        wait_for(lambda: program.lines[2:] == ["2"])
        assert is_alive(child)
        code = pressing_until_it_ends(pid, terminal)
    assert code == 130
    wait_for(lambda: not is_alive(child))
    document = manifest(tmp_path / "run")
    assert (document["status"], document["exit"]) == ("interrupted", {"code": 137, "signal": 9})
    assert [problem["code"] for problem in document["problems"]] == ["not-harvested"]


def test_a_process_that_asks_twice_is_passed_on_twice_and_is_no_second_ctrl_c(tmp_path):
    program = Counted(tmp_path, ends=(15,))
    running = begin(*program.arguments, process_group=0)
    program.wait_until_up()
    running.send_signal(signal.SIGINT)
    wait_for(lambda: program.lines == ["up", "2"])
    running.send_signal(signal.SIGINT)
    wait_for(lambda: program.lines == ["up", "2", "2"])
    running.send_signal(signal.SIGINT)
    os.killpg(running.pid, signal.SIGINT)  # as `timeout` does: the process, then its group
    wait_for(lambda: len(program.lines) >= 4)
    running.terminate()
    assert running.wait(timeout=60) == 7
    assert manifest(program.run)["exit"] == {"code": 7, "signal": None}


def test_what_a_program_sends_to_its_own_group_comes_back_to_it_once_and_is_no_request_to_us(tmp_path):
    program = Counted(tmp_path, ends=(12,), first="os.killpg(0, signal.SIGHUP)")
    running = begin(*program.arguments, process_group=0)
    program.wait_until_up()
    running.send_signal(signal.SIGUSR2)  # is looked at after the other, whose number is lower
    assert running.wait(timeout=60) == 7
    assert program.lines == ["1", "up", "12", "saved"]
    assert manifest(program.run)["status"] == "failed"


def test_ctrl_c_while_the_harvest_lasts_ends_it_and_keeps_the_exit_code(tmp_path):
    running = begin("-o", tmp_path / "run", *python("raise SystemExit(3)"), collectors="slow")
    wait_for((tmp_path / "run/harvesting").exists)
    running.send_signal(signal.SIGINT)
    assert running.wait(timeout=60) == 3
    document = manifest(tmp_path / "run")
    assert (document["status"], document["collectors"][0]["state"]) == ("failed", "recording")
    (problem,) = document["problems"]
    assert problem["code"] == "not-harvested"
    assert problem["fix"] == "What is in raw/ of the run stays: traceviz report reads it."


def test_a_program_without_a_handler_dies_of_the_signal_and_we_say_which(tmp_path):
    log = tmp_path / "up"
    running = begin("-o", tmp_path / "run", *python(f"import time; open({str(log)!r}, 'w'); time.sleep(60)"))
    wait_for(log.exists)
    running.terminate()
    assert running.wait(timeout=60) == 143
    document = manifest(tmp_path / "run")
    assert (document["status"], document["exit"]) == ("interrupted", {"code": 143, "signal": 15})


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


@pytest.mark.parametrize("collectors", ["fake", "launched"])
def test_a_terminal_that_closes_leaves_a_saved_run(tmp_path, collectors):
    program = Counted(tmp_path)
    with in_terminal(*program.arguments, collectors=collectors) as (pid, terminal):
        program.wait_until_up()
        # Close the terminal; its descriptor stays one that can be closed again.
        with Path(os.devnull).open("rb") as nothing:
            os.dup2(nothing.fileno(), terminal)
        assert exit_of(pid) == 7
    assert program.lines == ["up", "1", "saved"]
    document = manifest(program.run)
    assert (document["status"], document["collectors"][0]["state"]) == ("interrupted", "recorded")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("nsys") is None, reason="nsys is not on PATH")
def test_a_terminal_that_closes_costs_nsys_nothing(tmp_path):
    program = Counted(tmp_path)
    arguments = ("--with", "nsys", "--nvtx", "off", *program.arguments)
    with in_terminal(*arguments, collectors=None) as (pid, _):
        program.wait_until_up()
        os.killpg(pid, signal.SIGHUP)  # as a shell signals its jobs: us, nsys, and the program if it is in our group
        assert exit_of(pid) == 7
    document = manifest(program.run)
    (entry,) = (entry for entry in document["collectors"] if entry["name"] == "nsys")
    assert (program.lines, document["status"]) == (["up", "1", "saved"], "interrupted")
    assert (entry["sources"][-1], entry["problems"]) == ("raw/nsys/report.nsys-rep", [])


@pytest.mark.skipif(shutil.which("nsys") is None, reason="nsys is not on PATH")
def test_a_second_ctrl_c_leaves_nothing_of_nsys_with_the_terminal_open(tmp_path):
    program = Counted(tmp_path, ends=())
    with in_terminal("--with", "nsys", "--nvtx", "off", *program.arguments, collectors=None) as (pid, terminal):
        program.wait_until_up()
        assert len(list(NsysCollector().helpers(Plan(program.run, (), ())))) >= 1
        assert pressing_until_it_ends(pid, terminal) == 130
        wait_for(lambda: not list(NsysCollector().helpers(Plan(program.run, (), ()))))


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
    assert running.wait(timeout=60) == 7
    assert manifest(program.run)["status"] == "interrupted"


def test_a_pause_stops_what_the_program_has_started_wherever_that_is(tmp_path):
    child = "import subprocess\nos.write(log, f'{subprocess.Popen(['sleep', '60']).pid}\\n'.encode())\n"
    program = Counted(tmp_path, first=child.replace("['sleep', '60']", '["sleep", "60"]'))
    running = begin(*program.arguments, process_group=0, collectors="launched")
    program.wait_until_up()
    child = int(program.lines[0])
    running.send_signal(signal.SIGTSTP)
    wait_for(lambda: (state_of(running.pid), state_of(child)) == ("T", "T"))
    running.send_signal(signal.SIGCONT)
    wait_for(lambda: "T" not in (state_of(running.pid), state_of(child)))
    running.terminate()
    assert running.wait(timeout=60) == 7
    os.kill(child, signal.SIGKILL)


def test_signals_that_were_ignored_from_the_start_stay_ignored_and_none_is_held_back(tmp_path):
    code = "print(*(x.split()[1] for x in open('/proc/self/status') if x.startswith(('SigBlk:', 'SigIgn:'))))"
    line, environment = command("-o", tmp_path / "run", "--no-report", *python(code))
    ignoring = ["sh", "-c", 'trap "" HUP INT; exec "$@"', "sh", *line]
    done = subprocess.run(ignoring, env=environment, check=True, capture_output=True, text=True)
    blocked, ignored = (int(mask, 16) for mask in done.stdout.split())
    assert blocked == 0
    # SIGHUP (1) and SIGINT (2); SIGPIPE (13) and SIGXFSZ (25), which that Python ignores for itself; 32 and 33 are the
    # C library's.
    assert ignored & 0x7FFFFFFF == 1 << 0 | 1 << 1 | 1 << 12 | 1 << 24


def test_a_recording_in_the_background_outlives_a_ctrl_c_that_is_meant_for_the_foreground(tmp_path):
    up, end = tmp_path / "up", tmp_path / "end"
    code = f"import os, time; open({str(up)!r}, 'w')\nwhile not os.path.exists({str(end)!r}): time.sleep(0.02)"
    ignore = functools.partial(signal.signal, signal.SIGINT, signal.SIG_IGN)  # as shells do for what ends with &
    running = begin("-o", tmp_path / "run", *python(code), process_group=0, preexec_fn=ignore)
    wait_for(up.exists)
    os.killpg(running.pid, signal.SIGINT)
    end.touch()
    assert running.wait(timeout=60) == 0
    assert manifest(tmp_path / "run")["status"] == "finished"


def test_a_program_whose_reader_goes_away_ends_as_it_would_alone(tmp_path):
    line, environment = command("-o", tmp_path / "run", "--no-report", "--", "yes")
    with subprocess.Popen(line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as running:
        assert running.stdout.readline() == b"y\n"
        running.stdout.close()
        assert running.wait(timeout=60) == 141
    assert manifest(tmp_path / "run")["exit"] == {"code": 141, "signal": 13}


def test_a_recording_called_from_a_program_with_threads_ends_when_its_program_does(tmp_path):
    code = (
        "import sys, threading, time\n"
        "from pathlib import Path\n"
        "from traceviz import CollectOptions, collect\n"
        "threading.Thread(target=time.sleep, args=(120,), daemon=True).start()\n"
        f"options = CollectOptions(output=Path({str(tmp_path)!r}) / 'run', collectors=())\n"
        "codes = []\n"
        "command = [sys.executable, '-c', 'raise SystemExit(6)']\n"
        "inner = threading.Thread(target=lambda: codes.append(collect(options, command).exit_code))\n"
        "inner.start(); inner.join()\n"
        "print(codes)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=60)
    assert done.stdout == "[6]\n", done.stderr


def test_the_second_request_ends_what_wraps_a_program_that_is_gone():
    with subprocess.Popen(["sleep", "60"]) as wrapper:
        program = _Program(wrapper.pid, Wrapper(lambda: Wrapped(pid=1 << 30)))
        program.ask_to_end(signal.SIGTERM, "other")
        assert (program.killed, wrapper.poll()) == (False, None)
        program.ask_to_end(signal.SIGTERM, "other")
        assert (program.killed, wrapper.wait(timeout=60)) == (True, -9)


def test_the_second_request_keeps_the_exit_code_of_a_program_that_is_gone():
    with subprocess.Popen(["sleep", "60"]) as wrapper:
        program = _Program(wrapper.pid, Wrapper(lambda: Wrapped(pid=1 << 30, code=7)))
        program.ask_to_end(signal.SIGINT, "terminal")
        program.ask_to_end(signal.SIGINT, "terminal")
        wait_for(program.has_ended)
        assert (program.killed, program.has_left_code, program.status) == (True, True, 7)


def shown_in_terminal(terminal, until):
    """Return the output of a terminal until the process that writes to it closed it, or wrote ``until``."""
    shown = b""
    while until not in shown:
        try:
            more = os.read(terminal, 1 << 16)
        except OSError:  # closed
            break
        shown += more
    return shown.decode(errors="replace")


def test_after_ctrl_c_a_terminal_shows_what_is_done_and_the_last_line_of_the_program_stays(tmp_path):
    code = (
        "import sys, time\n"
        "try:\n    print('up', flush=True); time.sleep(60)\n"
        "except KeyboardInterrupt:\n    sys.stdout.write('half a line'); sys.exit(7)\n"
    )
    with in_terminal("-o", tmp_path / "run", *python(code)) as (pid, terminal):
        assert "up" in shown_in_terminal(terminal, b"up\r\n")
        os.write(terminal, b"\x03")
        shown = shown_in_terminal(terminal, b"no table was made of it")
        assert exit_of(pid) == 7
    before, line, after = shown.partition("traceviz: collecting what was recorded (Ctrl-C: do not wait)")
    assert line
    # Blanks fill the line that the program left, so that the drawing starts below it.
    assert f"half a line{' ' * 79}\r" in before
    assert after.startswith("\r\x1b[K")
    assert manifest(tmp_path / "run")["status"] == "interrupted"


def test_where_stderr_is_no_terminal_no_progress_is_shown(tmp_path):
    done = collect("-o", tmp_path / "run", *python("print('out')"))
    assert done.stdout == "out\n"
    assert "collecting what was recorded" not in done.stderr
    assert "\x1b" not in done.stderr


@pytest.mark.parametrize(
    ("began_s", "ended_s", "expected"),
    [
        (1.0, 3.0, (1.0, 2.0)),
        (-0.01, 3.0, (-0.01, 3.01)),  # times of files lag
        (-1.0, 1.0, None),  # a server of files whose clock is late
        (1.0, 3600.0, None),  # one whose clock is early
        (3.0, 1.0, None),  # the clock was set back
        (1.0, None, None),
    ],
)
def test_when_the_program_ran_is_believed_where_it_lies_within_the_recording(began_s, ended_s, expected):
    now = time.time_ns()
    started = Started(1, now, time.monotonic_ns() - 10 * SECOND_NS)
    began, ended = (None if told is None else now + round(told * SECOND_NS) for told in (began_s, ended_s))
    told_ns, ran_ns = _Program(1, Wrapper(lambda: Wrapped(1, 0, began, ended))).ran(started)
    if expected is None:
        assert told_ns == now
        assert ran_ns >= 10 * SECOND_NS
    else:
        assert ((told_ns - now) / SECOND_NS, ran_ns / SECOND_NS) == expected
