"""A sweep of a real program, the table that `traceviz compare --by` makes of it, and the models of the studies."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPOSITORY

pytestmark = pytest.mark.live

SWEEP = """
command = "python examples/pytorch_cifar10_cnn.py --steps 10 --batch-size {batch}"
repeats = 2
collect = ["--with", "torch", "--steps", "1:9"]
tags = { loader = "slow" }
settings = { batch = [8, 16] }
"""


@pytest.fixture(scope="module")
def runs(torch_python: str, tmp_path_factory) -> Path:
    """Two settings, each recorded twice by a sweep."""
    folder = tmp_path_factory.mktemp("study")
    sweep = folder / "sweep.toml"
    sweep.write_text(f'runs = "{folder / "runs"}"\n{SWEEP}')
    path = os.pathsep.join([str(Path(torch_python).parent), os.environ["PATH"]])
    done = subprocess.run(
        [sys.executable, "-m", "traceviz", "sweep", str(sweep), "--no-table"],
        cwd=REPOSITORY,
        env={**os.environ, "PATH": path, "CUDA_VISIBLE_DEVICES": "-1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    outputs = [log.read_text() for log in (folder / "runs").glob("*/output.log")]
    assert [sum(f"10 steps of {batch} images" in text for text in outputs) for batch in (8, 16)] == [2, 2]
    return folder / "runs"


def compared(runs: Path, *options: str) -> dict[str, Any]:
    """Return the comparison of the runs as JSON."""
    words = [sys.executable, "-m", "traceviz", "compare", str(runs), *options, "--format", "json"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def sides(comparison: dict[str, Any]) -> list[dict[str, Any]]:
    """Return rows of the table of sides, by column."""
    effect = next(section for section in comparison["sections"] if section["slug"] == "effect")
    return next(block for block in effect["blocks"] if block["type"] == "grid")["rows"]


def means(runs: Path, batch: int) -> list[float]:
    """Return the mean step of each run, warm-up left out, from a report of its own, ns."""
    return [statistics.mean(steady_steps(run)) for run in runs.glob(f"*batch={batch}+*")]


def steady_steps(run: Path) -> list[int]:
    """Return durations of the steps of one run that are no warm-up, ns."""
    words = [sys.executable, "-m", "traceviz", "report", str(run), "--section", "steps", "--format", "json"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True)
    blocks = json.loads(done.stdout)["sections"][0]["blocks"]
    steps = next(block["rows"] for block in blocks if block.get("title") == "Every step")
    return [step["dur_ns"] for step in steps if not step["warmup"]]


def test_runs_of_a_sweep_are_compared_by_their_tags(runs):
    small, large = sides(compared(runs, "--by", "batch", "--per", "batch"))
    assert (small["tag.batch"], large["tag.batch"]) == ("8", "16")
    assert (small["runs"], large["runs"]) == (2, 2)
    assert small["verdict"] == "base"
    ratio = large["mean_ns"] / small["mean_ns"]
    assert large["ratio"] == pytest.approx(ratio - 1)
    assert large["speedup"] == (None if large["verdict"] == "cannot judge" else pytest.approx(1 / ratio))


def test_other_batches_are_judged_per_sample_only(runs):
    plain, per = compared(runs, "--by", "batch"), compared(runs, "--by", "batch", "--per", "batch")
    assert sides(plain)[1]["verdict"] == "cannot judge"
    assert "compare the time per sample with --per batch" in plain["verdict"]["sentence"]
    assert "batch 8 against 16" not in json.dumps(per["verdict"])
    for steps, samples, batch in zip(sides(plain), sides(per), (8, 16), strict=True):
        assert samples["mean_ns"] == pytest.approx(steps["mean_ns"] / batch)


BUILT = {
    "tensorflow": "print(image_tensorflow.built(model).count_params())",
    "pytorch": "print(sum(p.numel() for p in image_pytorch.sequence(model).parameters()))",
    "paddle": "print(sum(int(p.size) for p in image_paddle.sequence(model).parameters()))",
    "mxnet": """
network = image_mxnet.sequence(model)
network.initialize()
print(sum(p.data().size for p in network.collect_params().values()))
""",
}
"""Prints the numbers that a model of the framework holds."""


@pytest.mark.parametrize("framework", list(BUILT))
def test_a_framework_builds_the_models_of_the_studies_with_the_same_parameters(framework, request):
    pythons = {"tensorflow": "oracle_python", "pytorch": "torch_python"}
    python = request.getfixturevalue(pythons.get(framework, f"{framework}_python"))
    program = f"import image_models, image_{framework}\nmodel = image_models.mobilenet(10)\n{BUILT[framework]}"
    variables = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    folder = REPOSITORY / "examples"
    words = [python, "-c", program]
    done = subprocess.run(words, cwd=folder, env=variables, capture_output=True, text=True, timeout=120, check=True)
    # All but PyTorch count the running means and variances of what is normalised as well, which are not trained.
    running = 0 if framework == "pytorch" else 34_112
    assert int(done.stdout.splitlines()[-1]) == 2_236_682 + running


def test_a_side_has_what_its_runs_have_in_the_middle(runs):
    for row in sides(compared(runs, "--by", "batch")):
        each = means(runs, int(row["tag.batch"]))
        assert len(each) == 2
        assert min(each) <= row["mean_ns"] <= max(each)
