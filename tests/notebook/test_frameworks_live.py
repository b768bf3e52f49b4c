"""``%%traceviz`` with the profilers of PyTorch, TensorFlow and JAX, in kernels of the Pythons that have them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import traceviz
from tests.notebook.executed import run_notebook

pytestmark = pytest.mark.live

TORCH = """
import time, torch
from torch.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self): return 96
    def __getitem__(self, index):
        time.sleep(0.005)
        return torch.randn(64), index % 10

model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

def train():
    for features, labels in DataLoader(Slow(), batch_size=8):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(features), labels).backward()
        optimizer.step()

train()
"""
TENSORFLOW = """
import os, time
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np, tensorflow as tf

def slow():
    for number in range(256):
        time.sleep(0.005)
        yield np.ones(64, "f"), number % 10

signature = tf.TensorSpec((64,)), tf.TensorSpec((), tf.int64)
data = tf.data.Dataset.from_generator(slow, output_signature=signature).batch(16)
model = tf.keras.Sequential([tf.keras.layers.Dense(64, activation="relu"), tf.keras.layers.Dense(10)])
model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))

def train():
    model.fit(data, epochs=1, verbose=0)

train()
"""
JAX = """
import time, jax, jax.numpy as jnp, numpy as np

@jax.jit
def step(weights, features):
    return weights - 0.01 * jax.grad(lambda w: jnp.mean((features @ w) ** 2))(weights)

def train():
    weights = jnp.ones((64, 64))
    for _ in range(24):
        with jax.profiler.TraceAnnotation("data loading"):
            time.sleep(0.01)
            features = np.ones((32, 64), "f")
        weights = step(weights, features)
    weights.block_until_ready()

train()
"""


def same_python(python: str) -> str:
    """Return a Python that can use the packages of this one: of the same minor version."""
    asked = subprocess.run(
        [python, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True, check=True
    )
    if tuple(map(int, asked.stdout.split())) != sys.version_info[:2]:
        pytest.skip(f"{python} is of another version than this Python")
    return python


def recorded(python: str, program: str, collector: str, folder: Path) -> list[dict]:
    """Return manifests of two recordings of ``train()`` in one kernel, in which the program ran before."""
    cells = [
        f"%load_ext traceviz{program}",
        f"%%traceviz --with {collector},stacks -o first\ntrain()",
        f"%%traceviz --with {collector},stacks -o second\ntrain()",
    ]
    outputs = run_notebook(cells, folder, same_python(python))
    assert [output.errors for output in outputs] == [(), (), ()], outputs[0].traceback
    assert all("input-bound" in output.html for output in outputs[1:])
    return [json.loads((folder / name / "manifest.json").read_text()) for name in ("first", "second")]


def steps_of(folder: Path) -> list[int]:
    return traceviz.open(folder).to_pandas("steps").sort_values("start_ns")["step"].to_list()


def share_of_input(folder: Path) -> float:
    return traceviz.analyze(folder).fact("input_pipeline", "input_share")


def test_two_cells_of_pytorch_are_input_bound_and_count_their_steps_from_0(torch_python: str, tmp_path: Path) -> None:
    for manifest, name in zip(recorded(torch_python, TORCH, "torch", tmp_path), ("first", "second"), strict=True):
        (torch,) = [entry for entry in manifest["collectors"] if entry["name"] == "torch"]
        assert (torch["state"], torch["problems"]) == ("recorded", [])
        assert len(steps_of(tmp_path / name)) in {11, 12}
        assert steps_of(tmp_path / name)[-1] == 11
        assert share_of_input(tmp_path / name) > 0.1


def test_two_cells_of_keras_are_input_bound_and_have_their_16_steps(oracle_python: str, tmp_path: Path) -> None:
    for manifest, name in zip(
        recorded(oracle_python, TENSORFLOW, "tensorflow", tmp_path), ("first", "second"), strict=True
    ):
        (tensorflow,) = [entry for entry in manifest["collectors"] if entry["name"] == "tensorflow"]
        assert (tensorflow["state"], tensorflow["problems"]) == ("recorded", [])
        assert len(steps_of(tmp_path / name)) == 16
        assert share_of_input(tmp_path / name) > 0.1


def test_two_cells_of_jax_have_the_24_calls_of_what_was_jitted_once_hooks_were_there(
    oracle_python: str, tmp_path: Path
) -> None:
    for manifest, name in zip(recorded(oracle_python, JAX, "jax", tmp_path), ("first", "second"), strict=True):
        (jax,) = [entry for entry in manifest["collectors"] if entry["name"] == "jax"]
        assert (jax["state"], jax["problems"]) == ("recorded", [])
        assert len(steps_of(tmp_path / name)) == 24
        assert share_of_input(tmp_path / name) > 0.1


def test_the_profiler_records_the_steps_that_are_asked_for(torch_python: str, tmp_path: Path) -> None:
    cells = [f"%load_ext traceviz{TORCH}", "%%traceviz --with torch,stacks --steps 4:9 -o run\ntrain()"]
    assert run_notebook(cells, tmp_path, same_python(torch_python))[1].errors == ()
    assert steps_of(tmp_path / "run") == [4, 5, 6, 7, 8]


def test_a_profiler_of_the_program_goes_first_in_every_cell(torch_python: str, tmp_path: Path) -> None:
    own = "with torch.profiler.profile() as own: train()\nlen(own.events()) > 100"
    cells = [
        f"%load_ext traceviz{TORCH}",
        "%%traceviz --with torch,stacks -o first\ntrain()",
        f"%%traceviz --with torch,stacks -o second\n{own}",
    ]
    last = run_notebook(cells, tmp_path, same_python(torch_python))[2]
    assert last.shown[0]["text/plain"] == "True"
    assert "The program started the torch profiler itself" in last.html
