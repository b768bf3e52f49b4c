"""One execution of a program, recorded by two profilers at once, compared with itself: a live test."""

import subprocess
import sys
from statistics import median

import pytest

from tests.compare.command import compared, path_of
from tests.conftest import REPOSITORY
from traceviz import api
from traceviz.compare.sides.sides import grid, rows
from traceviz.core.nsys_program import find_nsys
from traceviz.report import EVERY_STEP

pytestmark = [pytest.mark.live, pytest.mark.skipif(find_nsys() is None, reason="nsys is not installed")]

PROGRAM = REPOSITORY / "tests/collectors/torch_training.py"
FIRST, END, ALL = 5, 15, 20


@pytest.fixture(scope="module")
def recorded(torch_python, tmp_path_factory):
    """The trace of ten steps by PyTorch's profiler, and the nsys export of all steps."""
    run = tmp_path_factory.mktemp("one") / "run"
    flags = ["--with", "torch,nvtx,nsys", "--steps", f"{FIRST}:{END}", "--no-report", "-o", run]
    program = [torch_python, "-W", "ignore", PROGRAM, "plain", ALL]
    command = [sys.executable, "-m", "traceviz", "collect", *flags, "--", *program]
    ended = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, timeout=300)
    assert (ended.returncode, ended.stdout) == (0, "trained\n"), ended.stderr
    return path_of(run, "raw/torch/*/*.pt.trace.json.gz"), run / "raw/nsys/report.sqlite"


@pytest.fixture(scope="module")
def result(recorded):
    return compared(*recorded)


def durations(trace):
    """Return the duration of every step by its number, warm-up too, ns."""
    steps = grid(api.report_on(trace), "steps", EVERY_STEP)
    return {row["step"]: row["dur_ns"] for row in rows(steps)}


def test_the_same_steps_last_as_long_in_both_recordings(recorded):
    """Both mark steps from the same hooks, microseconds apart, under any load of the machine.

    The first step of PyTorch's profiler is left out: it starts after the profiler.
    """
    kineto, nsys = map(durations, recorded)
    assert (list(kineto), list(nsys)) == (list(range(FIRST, END)), list(range(ALL)))
    apart = [abs(kineto[step] - nsys[step]) / nsys[step] for step in range(FIRST + 1, END)]
    assert median(apart) < 0.01


def test_nothing_is_said_of_kernels_that_neither_recorded(result):
    (kernels,) = (skip for skip in result.document["skipped"] if skip["slug"] == "kernels")
    assert kernels["reason"]
    assert "kernels" not in result.changes()
    assert {"kernels", "cuda_api", "copies"}.isdisjoint(section["slug"] for section in result.document["sections"])


def test_what_differs_between_the_recordings_is_said(result):
    remarks = {row["code"]: row["text"] for row in result.rows("comparability")}
    assert remarks["format"].startswith("formats differ, kineto against nsys: ")
    assert "NVTX ranges in report" in remarks["step-source"]


def test_the_difference_adds_up_and_waiting_for_input_is_the_same_class_in_both_formats(result):
    """The loader sleeps 8 times 3 ms for a batch, and takes as long at least."""
    classes = result.classes()
    assert sum(row["difference_ns"] for row in classes.values()) == result.facts("attribution")["difference_ns"]
    assert min(classes["input_wait"][side] for side in ("base_ns", "new_ns")) > 8 * 3_000_000
    assert min(result.facts("effect")[side] for side in ("base_ns", "new_ns")) > 8 * 3_000_000
    assert ("stayed", "TV101") in {(row["seen"], row["code"]) for row in result.rows("findings")}
