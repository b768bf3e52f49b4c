"""Programs under ``traceviz collect --with nsys``, with the installed nsys."""

import os
import signal
import subprocess
import sys

import polars as pl
import pytest

from tests.collectors.run.driven import is_alive, manifest
from traceviz import api
from traceviz.core.nsys_program import find_nsys

pytest.importorskip("nvtx")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(find_nsys() is None, reason="nsys is not installed")]

NONE = subprocess.DEVNULL

PROGRAM = """
import json, os, sys, time, nvtx
from pathlib import Path
run = Path(sys.argv[0]).with_name("run")

def steps(first, end):
    for i in range(first, end):
        with nvtx.annotate(f"step {i}"):
            with nvtx.annotate("data loading"):
                time.sleep(0.004)
            time.sleep(0.004)

def wait_for(condition):
    end = time.monotonic() + 50
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)

steps(0, 8)
"""
"""The endings of the tests follow; ``run`` is the run folder."""

ENDS_WITH_3 = """
print("out", os.environ.get("TMPDIR"), sys.stdin.read().strip(), flush=True)
print("err", file=sys.stderr, flush=True)
sys.exit(3)
"""

GOES_ON_AFTER_ITS_REPORT = """
report, number = run / "raw" / "nsys" / "report.nsys-rep", 8
while not report.exists() and number < 5000:
    steps(number, number + 1)
    number += 1
nvtx.mark("after")
sys.exit(7)
"""

LEAVES_A_CHILD = """
import subprocess
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], stdout=sys.stderr)
run.with_name("child").write_text(str(child.pid))
sys.exit(5)
"""

KILLS_NSYS = """
def stat(pid):
    name, _, rest = Path(f"/proc/{pid}/stat").read_text().partition("(")[2].rpartition(") ")
    return name, int(rest.split()[1])

pid = os.getpid()
while stat(pid)[0] != "nsys":
    pid = stat(pid)[1]
os.kill(pid, 9)
time.sleep(1)
sys.exit(7)
"""


def profiled(folder, ending, *flags, collectors="nsys", env=None, **options):
    program, run = folder / "program.py", folder / "run"
    program.write_text(PROGRAM + ending)
    own = ["-m", "traceviz", "collect", "--with", collectors, "--nvtx", "off", "--no-report", "-o", run, *flags]
    settings = {"stdin": NONE, "stdout": NONE, "stderr": NONE, "text": True, "timeout": 100, **options}
    command = [sys.executable, *own, "--", sys.executable, program]
    return subprocess.run(command, check=False, env={**os.environ, **(env or {})}, **settings), run


def entry_of(run, name="nsys"):
    return next(entry for entry in manifest(run)["collectors"] if entry["name"] == name)


def ranges(run):
    return api.open_trace(run).scan("nvtx").select(pl.col("name").cast(pl.String)).collect()["name"].to_list()


def steps(first, end):
    return [name for number in range(first, end) for name in (f"step {number}", "data loading")]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A program that reads its input, writes to both outputs, and ends with 3."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "input").write_text("given\n")
    with (folder / "input").open() as given:
        outputs = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        options = {"collectors": "nsys,resources", "env": {"TMPDIR": str(folder)}, "stdin": given, **outputs}
        return folder, *profiled(folder, ENDS_WITH_3, **options)


def test_the_program_has_its_own_input_output_folder_and_exit_code(whole):
    folder, done, _ = whole
    assert (done.returncode, done.stdout) == (3, f"out {folder} given\n")
    assert "err\n" in done.stderr
    assert "Generating" not in done.stdout + done.stderr


def test_what_the_program_writes_has_the_rights_that_the_user_gives(whole):
    mask = os.umask(0)
    os.umask(mask)
    assert (whole[2] / "raw/nsys/program.code").stat().st_mode & 0o777 == 0o666 & ~mask


def test_every_range_is_there_and_the_report_and_its_export_are_kept(whole):
    run = whole[2]
    entry = entry_of(run)
    assert (entry["state"], entry["problems"], entry["facts"]["window"]) == ("recorded", [], "the whole run")
    assert entry["sources"] == ["raw/nsys/report.sqlite", "raw/nsys/report.nsys-rep"]
    assert entry_of(run, "resources")["state"] == "recorded"
    assert ranges(run) == steps(0, 8)


def test_the_report_names_steps_and_input_and_reading_raw_agrees(whole):
    run = whole[2]
    merged, raw = api.report_on(run), api.report_on(run / "raw" / "nsys" / "report.nsys-rep")
    assert merged.findings[0].slug == raw.findings[0].slug == "input-bound"
    assert api.open_trace(run).rows("nvtx") == api.open_trace(run / "raw/nsys/report.sqlite").rows("nvtx") == 16


@pytest.mark.parametrize(("number", "code"), [(15, 143), (9, 137)])
def test_a_program_that_dies_of_a_signal_leaves_what_nsys_had_of_it(tmp_path, number, code):
    # What nsys has not fetched from the program by then is lost: on a busy machine it takes its time.
    done, run = profiled(tmp_path, f"time.sleep(3)\nos.kill(os.getpid(), {number})")
    names = ranges(run)
    assert (done.returncode, manifest(run)["status"]) == (code, "killed")
    assert entry_of(run)["problems"] == []
    assert names == steps(0, 8)[: len(names)]  # nsys loses the latest, which are still with the program
    assert len(names) >= 1


def test_a_duration_ends_the_recording_and_not_the_program(tmp_path):
    done, run = profiled(tmp_path, GOES_ON_AFTER_ITS_REPORT, "--duration", "2s")
    entry = entry_of(run)
    assert (done.returncode, entry["facts"]["window"], entry["problems"]) == (7, "2 s from the start", [])
    names = ranges(run)
    assert names[:2] == ["step 0", "data loading"]
    assert "after" not in names


def test_a_process_that_is_left_behind_does_not_hold_up_the_run(tmp_path):
    done, _ = profiled(tmp_path, LEAVES_A_CHILD)
    child = int((tmp_path / "child").read_text())
    assert (done.returncode, is_alive(child)) == (5, True)
    os.kill(child, signal.SIGKILL)


def test_an_nsys_that_is_killed_costs_neither_the_exit_code_nor_what_it_had(tmp_path):
    done, run = profiled(tmp_path, KILLS_NSYS)
    document = manifest(run)
    assert (done.returncode, document["status"], document["problems"][0]["code"]) == (7, "failed", "wrapper-killed")
    assert len(entry_of(run)["sources"]) >= 1


FAILING = """#!/bin/sh
if [ "$1" = profile ] && [ "$2" != --help ]; then
    if [ "$(wc -l <'{folder}/starts')" -lt {times} ]; then
        echo once >>'{folder}/starts'
        echo 'End of file'
        exit 1
    fi
    '{nsys}' "$@"
    code=$?
    if [ $code = 3 ]; then echo well; else echo lost; fi >>'{folder}/starts'
    exit $code
fi
exec '{nsys}' "$@"
"""
"""An nsys whose processes lose each other at the start, as the real one's do on a busy machine now and then: *lost*."""


@pytest.mark.parametrize(
    ("times", "code", "starts", "problems"),
    [(1, 3, ["once", "well"], []), (9, 1, ["once"] * 3, ["no-report"])],
)
def test_a_program_that_nsys_fails_to_start_is_started_once_by_the_next_try(tmp_path, times, code, starts, problems):
    (tmp_path / "starts").touch()
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin/nsys"
    program.write_text(FAILING.format(folder=tmp_path, times=times, nsys=find_nsys().path))
    program.chmod(0o755)
    env = {"PATH": f"{program.parent}:{os.environ['PATH']}"}
    done, run = profiled(tmp_path, ENDS_WITH_3, collectors="nsys,resources", env=env, stdout=subprocess.PIPE)
    assert (done.returncode, done.stdout.count("out ")) == (code, code == 3)
    assert [start for start in (tmp_path / "starts").read_text().split() if start != "lost"] == starts
    assert [problem["code"] for problem in entry_of(run)["problems"]] == problems
    if code == 3:
        assert ranges(run) == steps(0, 8)
    else:
        assert "did not start the program" in entry_of(run)["problems"][0]["message"]


ENDLESS = """#!/bin/sh
if [ "$1" = profile ] && [ "$2" != --help ]; then
    '{nsys}' "$@"
    exec sleep 600
fi
exec '{nsys}' "$@"
"""
"""An nsys that writes its report and does not end: the real one does so on some machines only, and never on request."""


def test_an_nsys_that_does_not_end_is_given_up_and_costs_neither_the_report_nor_the_time_of_the_program(tmp_path):
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin/nsys"
    program.write_text(ENDLESS.format(nsys=find_nsys().path))
    program.chmod(0o755)
    done, run = profiled(tmp_path, "sys.exit(3)", env={"PATH": f"{program.parent}:{os.environ['PATH']}"})
    document = manifest(run)
    assert (done.returncode, document["status"]) == (3, "failed")
    (problem,) = document["problems"]
    assert problem["code"] == "wrapper-stalled"
    assert "nsys did not end within 10 s of the program's end, and was given up." in problem["message"]
    assert "These processes waited, and computed and wrote nothing: sleep." in problem["message"]
    assert ranges(run) == steps(0, 8)
    began, ended = ((run / f"raw/nsys/program.{name}").stat().st_mtime_ns for name in ("pid", "code"))
    assert document["duration_ns"] == ended - began


def test_flags_that_nsys_refuses_are_said_in_its_words(tmp_path):
    done, run = profiled(tmp_path, "", "--nsys-args", "--nonsense=1")
    (problem,) = entry_of(run)["problems"]
    assert (done.returncode != 0, problem["code"], "nonsense" in problem["message"]) == (True, "nsys-refused", True)
