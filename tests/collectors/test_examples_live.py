"""`traceviz collect` in front of the programs of examples/, which know nothing of it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import traceviz
from tests.conftest import REPOSITORY

pytestmark = pytest.mark.live

EXAMPLES = REPOSITORY / "examples"
REPAIRED = ("--cache", "--parallel-map", "2", "--prefetch", "2")
SIX_STEPS = ("--steps", "3:9")
SHORT = ("--steps", "10")
ANNOTATED = """
import traceviz
for number in range(6):
    with traceviz.step_range(number):
        with traceviz.record("data loading"):
            sum(range(200_000))
        sum(range(100_000))
"""


@dataclass(frozen=True, slots=True)
class Collected:
    code: int
    stdout: str
    stderr: str
    folder: Path

    @property
    def manifest(self) -> dict[str, Any]:
        return json.loads((self.folder / "manifest.json").read_text())

    @property
    def problems(self) -> list[str]:
        return [problem["code"] for entry in self.manifest["collectors"] for problem in entry["problems"]]

    def report(self) -> traceviz.Report:
        return traceviz.report_on(self.folder)


def collect(folder: Path, collectors: str, *command: object, options: tuple[str, ...] = ()) -> Collected:
    run = folder / "run"
    words = [sys.executable, "-m", "traceviz", "collect", "--with", collectors, "-o", str(run), *options, "--"]
    done = subprocess.run(
        [*words, *map(str, command)],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return Collected(done.returncode, done.stdout, done.stderr, run)


@pytest.fixture
def nsys():
    if not shutil.which("nsys"):
        pytest.skip("nsys is not installed")


def slugs(report: traceviz.Report) -> set[str]:
    return {finding.slug for finding in report.findings}


def test_the_slow_pipeline_of_the_cnn_is_named_and_its_20_steps_recorded(oracle_python, tmp_path):
    run = collect(tmp_path, "tensorflow,resources", oracle_python, EXAMPLES / "cifar10_cnn.py")
    assert (run.code, run.problems) == (0, []), run.stderr
    assert run.stdout.startswith("40 steps of 32 images, loss ")
    report = run.report()
    assert report.verdict.code == "highly-input-bound"
    assert slugs(report) >= {"input-bound", "sequential-map", "pipeline-without-prefetch"}
    assert report.fact("steps", "count") == 20
    samples = pl.read_parquet(run.folder / "tables/samples.parquet")
    assert run.manifest["tables"]["samples"] == samples.height
    assert set(samples["metric"].cast(pl.String)) >= {"program CPU", "program memory", "program threads", "machine CPU"}


def test_the_repaired_pipeline_of_the_cnn_waits_less_than_half_as_much(oracle_python, tmp_path):
    run = collect(tmp_path, "tensorflow,resources", oracle_python, EXAMPLES / "cifar10_cnn.py", *REPAIRED)
    assert (run.code, run.problems) == (0, []), run.stderr
    report = run.report()
    assert report.fact("steps", "count") == 20
    # A busy machine makes a repaired pipeline wait a little; the slow one waits three quarters of the time.
    assert report.fact("input_pipeline", "input_share") < 0.35
    named = slugs(report)
    assert "pipeline-without-prefetch" not in named
    # A sequential Map still flips the images: this is reported if a busy machine makes the program wait for it.
    assert "input-bound" in named or "sequential-map" not in named


def test_a_switch_that_is_out_of_range_is_refused_with_exit_code_2(oracle_python):
    # Without steps, Keras would take batches from the endless pipeline forever.
    words = [oracle_python, str(EXAMPLES / "cifar10_cnn.py"), "--steps", "0"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        2,
        "cifar10_cnn.py: error: argument --steps: 0 is less than 1",
    )


def test_every_other_switch_of_the_cnn_works_in_4_steps(oracle_python):
    words = [oracle_python, str(EXAMPLES / "cifar10_cnn.py"), "--steps", "4", "--batch-size", "8", "--mixed-precision"]
    words += [
        "--xla",
        "--strategy",
        "mirrored",
        "--gpu-thread-mode",
        "gpu_private",
        "--intra-op",
        "1",
        "--inter-op",
        "1",
    ]
    done = subprocess.run(
        [*words, "--prefetch", "-1", "--parallel-map", "-1"], capture_output=True, text=True, timeout=180, check=False
    )
    assert done.stdout.startswith("4 steps of 8 images, loss "), done.stderr


def test_the_loop_of_the_lstm_is_recorded_for_6_steps_without_fit(oracle_python, tmp_path):
    # How many events a step has depends on the threads of the machine (11,807 were seen), so that 20 steps may pass
    # the bound of events; 6 do not.
    command = (oracle_python, EXAMPLES / "lstm_time_series.py", "--steps", 32, "--window", 8)
    run = collect(tmp_path, "tensorflow,resources", *command, options=SIX_STEPS)
    assert (run.code, run.problems) == (0, []), run.stderr
    assert run.report().fact("steps", "count") == 6


def test_a_jitted_loop_that_marks_nothing_has_20_steps_and_no_verdict_but_says_what_to_mark(oracle_python, tmp_path):
    run = collect(tmp_path, "jax,resources", oracle_python, EXAMPLES / "jax_mlp.py")
    assert (run.code, run.problems) == (0, []), run.stderr
    report = run.report()
    assert report.fact("steps", "count") == 20
    assert report.verdict.code == "cannot-judge"
    assert 'jax.profiler.TraceAnnotation("data loading")' in str(report.sections)
    assert "nsys" not in report.verdict.sentence


def test_the_single_process_loader_of_the_torch_cnn_is_named_in_6_steps(torch_python, tmp_path):
    command = (torch_python, EXAMPLES / "pytorch_cifar10_cnn.py", *SHORT)
    run = collect(tmp_path, "torch,resources", *command, options=SIX_STEPS)
    assert (run.code, run.problems) == (0, []), run.stderr
    assert run.stdout.startswith("10 steps of 32 images, loss ")
    report = run.report()
    assert slugs(report) >= {"input-bound", "single-process-loader"}
    assert report.fact("steps", "count") == 6


@pytest.mark.parametrize("program", ["resnet50.py", "pytorch_resnet50.py"])
def test_a_resnet_is_recorded_for_2_of_its_4_steps(request, tmp_path, program):
    of_torch = program.startswith("pytorch")
    python = request.getfixturevalue("torch_python" if of_torch else "oracle_python")
    command = (python, EXAMPLES / program, "--steps", 4, "--batch-size", 2)
    run = collect(tmp_path, "torch" if of_torch else "tensorflow", *command, options=("--steps", "1:3"))
    assert (run.code, run.problems) == (0, []), run.stderr
    assert run.report().fact("steps", "count") == 2


@pytest.mark.usefixtures("nsys")
def test_nsys_and_nvtx_show_the_10_steps_of_the_cnn_and_its_wait(oracle_python, tmp_path):
    command = (oracle_python, EXAMPLES / "cifar10_cnn.py", *SHORT)
    run = collect(tmp_path, "nsys,nvtx,resources", *command)
    assert run.code == 0, run.stderr
    report = run.report()
    assert report.verdict.code == "highly-input-bound"
    assert report.fact("steps", "count") == 10


@pytest.mark.usefixtures("nsys")
def test_ranges_of_the_program_itself_reach_nsys_as_6_steps(tmp_path):
    run = collect(tmp_path, "nsys", sys.executable, "-c", ANNOTATED)
    assert run.code == 0, run.stderr
    nvtx = traceviz.open(run.folder).scan("nvtx").collect()
    texts = nvtx["text" if "text" in nvtx.columns else "name"].cast(str).to_list()
    assert texts.count("data loading") == 6
    assert [text for text in texts if text.startswith("step ")] == [f"step {number}" for number in range(6)]
