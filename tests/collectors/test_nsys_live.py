"""Programs under ``traceviz collect --with nsys,resources``, with the installed nsys."""

import os
import shutil
import subprocess
import sys

import polars as pl
import pytest

from tests.collectors.core_runs import manifest
from traceviz import api

pytest.importorskip("nvtx")
pytestmark = pytest.mark.skipif(shutil.which("nsys") is None, reason="nsys is not on PATH")

NONE = subprocess.DEVNULL

PROGRAM = """
import os, sys, time, nvtx
print("out", os.environ.get("TMPDIR"), sys.stdin.read().strip(), flush=True)
print("err", file=sys.stderr, flush=True)
for i in range(8):
    with nvtx.annotate(f"step {i}"):
        with nvtx.annotate("data loading"):
            time.sleep(0.004)
        time.sleep(0.004)
end = sys.argv[1]
if end.startswith("-"):
    os.kill(os.getpid(), int(end[1:]))
if end == "child":
    import subprocess
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(20)"], stdout=sys.stderr)
    end = 5
sys.exit(int(end))
"""


def profiled(folder, *arguments, flags=(), env=None, **options):
    program, run = folder / "program.py", folder / "run"
    program.write_text(PROGRAM)
    command = [
        sys.executable,
        "-m",
        "traceviz",
        "collect",
        "--with",
        "nsys,resources",
        "--nvtx",
        "off",
        "-o",
        run,
        *flags,
    ]
    settings = {"capture_output": True, "text": True, "timeout": 60, **options}
    environment = {**os.environ, **(env or {})}
    done = subprocess.run(
        [*command, "--", sys.executable, program, *arguments], check=False, env=environment, **settings
    )
    return done, run


@pytest.mark.parametrize(("end", "code"), [("0", 0), ("3", 3), ("-15", 143), ("-9", 137), ("-11", 139)])
def test_the_exit_code_is_kept_and_every_range_is_there(tmp_path, end, code):
    done, run = profiled(tmp_path, end, input="given\n", env={"TMPDIR": str(tmp_path)})
    assert (done.returncode, done.stdout) == (code, f"out {tmp_path} given\n")
    assert "err\n" in done.stderr
    assert "Generating" not in done.stdout + done.stderr
    told = {entry["name"]: entry for entry in manifest(run)["collectors"]}
    assert told["nsys"]["state"] == told["resources"]["state"] == "recorded"
    assert told["nsys"]["problems"] == []
    assert told["nsys"]["sources"] == ["raw/nsys/report.sqlite", "raw/nsys/report.nsys-rep"]
    names = api.open_trace(run).scan("nvtx").select(pl.col("name").cast(pl.String)).collect()["name"]
    assert (names == "data loading").sum() == 8
    assert names.str.starts_with("step").sum() == 8


def test_the_report_names_steps_and_input_and_reading_raw_agrees(tmp_path):
    _, run = profiled(tmp_path, "0", stdin=NONE)
    found, raw = api.report_on(run), api.report_on(run / "raw" / "nsys" / "report.nsys-rep")
    assert found.findings[0].slug == raw.findings[0].slug == "input-bound"
    assert api.open_trace(run).rows("nvtx") == api.open_trace(run / "raw/nsys/report.sqlite").rows("nvtx") == 16


def test_a_process_that_is_left_behind_does_not_hold_up_the_run(tmp_path):
    done, run = profiled(tmp_path, "child", stdin=NONE, stdout=NONE, stderr=NONE, capture_output=False, timeout=40)
    assert done.returncode == 5
    assert manifest(run)["duration_ns"] < 15e9


def test_flags_that_nsys_refuses_are_said_in_its_words(tmp_path):
    done, run = profiled(tmp_path, "0", flags=("--nsys-args", "--nonsense=1"), stdin=NONE)
    assert done.returncode != 0
    (entry,) = (entry for entry in manifest(run)["collectors"] if entry["name"] == "nsys")
    assert [problem["code"] for problem in entry["problems"]] == ["nsys-refused"]
    assert "nonsense" in entry["problems"][0]["message"]
