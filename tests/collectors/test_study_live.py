"""The recipe of docs/studies.md in front of a real program, and the table that `traceviz compare --by` makes of it."""

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

SETTINGS = """\
loader=slow,batch=8      python examples/pytorch_cifar10_cnn.py --steps 10 --batch-size 8
loader=slow,batch=16     python examples/pytorch_cifar10_cnn.py --steps 10 --batch-size 16
"""


@pytest.fixture(scope="module")
def runs(torch_python: str, tmp_path_factory) -> Path:
    """Two settings, each recorded twice by the recipe."""
    folder = tmp_path_factory.mktemp("study")
    settings = folder / "settings.txt"
    settings.write_text(SETTINGS)
    path = os.pathsep.join([str(Path(torch_python).parent), str(Path(sys.executable).parent), os.environ["PATH"]])
    options = ["2", "--with", "torch", "--steps", "1:9"]
    words = [REPOSITORY / "examples" / "study.sh", settings, folder / "runs", *options]
    variables = {**os.environ, "PATH": path, "CUDA_VISIBLE_DEVICES": "-1"}
    done = subprocess.run(
        words, cwd=REPOSITORY, env=variables, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("10 steps of 8 images") == done.stdout.count("10 steps of 16 images") == 2
    return folder / "runs"


def compared(runs: Path, *options: str) -> dict[str, Any]:
    """The comparison of the runs as JSON."""
    words = [sys.executable, "-m", "traceviz", "compare", str(runs), *options, "--format", "json"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def sides(comparison: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows of the table of sides, by column."""
    effect = next(section for section in comparison["sections"] if section["slug"] == "effect")
    return next(block for block in effect["blocks"] if block["type"] == "grid")["rows"]


def means(runs: Path, batch: int) -> list[float]:
    """Mean step of each run, warm-up left out, from a report of its own, ns."""
    return [statistics.mean(steady_steps(run)) for run in runs.glob(f"*+batch={batch}+*")]


def steady_steps(run: Path) -> list[int]:
    """Durations of the steps of one run that are no warm-up, ns."""
    words = [sys.executable, "-m", "traceviz", "report", str(run), "--section", "steps", "--format", "json"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True)
    blocks = json.loads(done.stdout)["sections"][0]["blocks"]
    steps = next(block["rows"] for block in blocks if block.get("title") == "Every step")
    return [step["dur_ns"] for step in steps if not step["warmup"]]


def test_runs_of_the_recipe_are_compared_by_their_tags(runs):
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


COUNT = {
    "torch": """
import torch, pytorch_resnet50 as program
from pytorch_input_pipeline import ResidualNetwork, Size
network, made = ResidualNetwork(Size(32, 1, 64, program.BLOCKS, pooled=True)).eval(), []
def count(layer, _, output): made.append(output.numel() * layer.weight[0].numel())
for layer in network.modules():
    if isinstance(layer, torch.nn.Conv2d): layer.register_forward_hook(count)
network(torch.zeros(1, 3, 32, 32))
print(sum(made))
""",
    "keras": """
import math, keras, resnet50
layers = resnet50.network().layers[0].layers
convolutions = [layer for layer in layers if isinstance(layer, keras.layers.Conv2D)]
print(sum(math.prod(layer.output.shape[1:]) * math.prod(layer.kernel.shape[:3]) for layer in convolutions))
""",
}
"""Multiplications of the convolutions for one image."""


def counted(python: str, program: str) -> int:
    words = [python, "-c", program]
    variables = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    folder = REPOSITORY / "examples"
    done = subprocess.run(words, cwd=folder, env=variables, capture_output=True, text=True, timeout=120, check=True)
    return int(done.stdout)


def test_both_resnets_do_about_the_same_work(oracle_python, torch_python):
    keras, torch = counted(oracle_python, COUNT["keras"]), counted(torch_python, COUNT["torch"])
    assert (round(keras / 1e6), round(torch / 1e6)) == (79, 83)  # as docs/studies.md says; unpooled, 326


def test_a_side_has_what_its_runs_have_in_the_middle(runs):
    for row in sides(compared(runs, "--by", "batch")):
        each = means(runs, int(row["tag.batch"]))
        assert len(each) == 2
        assert min(each) <= row["mean_ns"] <= max(each)
