"""Programs of examples/ run under the real TensorFlow, and what traceviz reads of the captures they leave."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import traceviz
from tests.conftest import REPOSITORY

pytestmark = pytest.mark.live

EXAMPLES = REPOSITORY / "examples"

Record = Callable[..., Path]
"""``record(program, option, ...)``: the log folder that the program left."""


@pytest.fixture(scope="module")
def record(oracle_python: str, tmp_path_factory: pytest.TempPathFactory) -> Record:
    """Function that runs a program of examples/ that only its own options control."""

    def run(program: str, *options: str) -> Path:
        folder = tmp_path_factory.mktemp("live")
        environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "CUDA_VISIBLE_DEVICES": "-1"}
        command = [oracle_python, str(EXAMPLES / program), "--logdir", str(folder / "logs"), *options]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=180, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        return folder / "logs"

    return run


def test_a_slow_map_is_recorded_and_read_back_with_its_steps_and_its_verdict(record: Record) -> None:
    report = traceviz.report_on(record("tf_input_pipeline.py", "--pipeline", "slow-map", "--steps", "9"))
    assert report.fact("steps", "count") == 9
    assert report.verdict.code == "highly-input-bound"


def test_the_repaired_pipeline_gives_no_input_finding(record: Record) -> None:
    report = traceviz.report_on(record("tf_input_pipeline.py", "--pipeline", "repaired", "--steps", "9"))
    assert report.fact("steps", "count") == 9
    assert report.verdict.code == "not-input-bound"


def test_the_steps_of_an_unchanged_keras_program_are_found(record: Record) -> None:
    steps = traceviz.open(record("keras_tensorboard.py"), tables=["steps"]).steps.collect()
    assert steps["marker"].to_list() == ["Profiled batch"] * 7


def test_annotated_jax_steps_are_found_by_their_numbers(record: Record) -> None:
    steps = traceviz.open(record("jax_training.py", "--annotate", "--steps", "6"), tables=["steps"]).steps.collect()
    assert steps.sort("start_ns")["step"].to_list() == [0, 1, 2, 3, 4, 5]
