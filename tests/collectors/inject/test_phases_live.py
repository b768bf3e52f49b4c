"""Phases of unmodified programs with the real frameworks, from the hooks to the parts of the run."""

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.collectors.inject.runs import run_under

pytestmark = pytest.mark.live

TORCH = """
import torch
from torch.utils.tensorboard import SummaryWriter
model, double = torch.nn.Linear(2_000, 2_000), torch.compile(lambda x: x * 2, backend="eager")
torch.save(model.state_dict(), "model.pt")
model.load_state_dict(torch.load("model.pt"))
double(torch.ones(3))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
loader = torch.utils.data.DataLoader(torch.ones(24, 2_000), batch_size=4)
for rows in [*loader, *loader]:
    model(rows).sum().backward()
    optimizer.step()
for epoch in range(2):
    for rows in loader:
        model(rows).sum().backward()
        optimizer.step()
with SummaryWriter("logs") as writer:
    writer.add_scalar("Loss/train", 0.5, 12)
"""

KERAS = """
import os
os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="-1", KERAS_BACKEND="tensorflow")
import keras, numpy
model = keras.Sequential([keras.layers.Dense(64), keras.layers.Dense(1)])
model.compile("sgd", "mse")
rows = numpy.ones((320, 4), "float32")
saving = keras.callbacks.ModelCheckpoint("model.keras")
board = keras.callbacks.TensorBoard("logs", write_graph=False)
model.fit(rows, rows[:, :1], epochs=2, batch_size=32, verbose=0, validation_split=0.1, callbacks=[saving, board])
"""


def told_in(folder: Path, python: str, program: str) -> tuple[Counter[tuple[str, str]], Counter[tuple[str, str]]]:
    """Return the number of phases by kind and name, and the number of figures by source and name."""
    ran = run_under(folder / "run", ["stacks"], [python, "-c", program])
    assert (ran.code, ran.problems) == (0, [])
    files = folder.glob("run/raw/stacks/*/stacks.jsonl")
    records = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    phases = Counter((record[1], record[2]) for record in records if record[0] == "phase")
    return phases, Counter((record[6], record[1]) for record in records if record[0] == "metric")


def test_torch_tells_of_saving_loading_compiling_steps_and_figures_in_event_files(
    tmp_path: Path, torch_python: str
) -> None:
    told, figures = told_in(tmp_path, torch_python, TORCH)
    assert figures == {("tensorboard", "Loss/train"): 1}
    assert (told["saving", "torch.save"], told["loading", "torch.load"]) == (1, 1)
    assert told["compilation", "torch.compile"] >= 1
    assert told["step", "torch_optimizer"] >= 11
    assert told["epoch", "torch"] == 2


def test_keras_tells_of_its_epochs_evaluations_checkpoints_figures_and_what_is_compiled(
    tmp_path: Path, oracle_python: str
) -> None:
    told, figures = told_in(tmp_path, oracle_python, KERAS)
    assert {key: figures[key] for key in (("keras", "loss"), ("keras", "val_loss"))} == dict.fromkeys(
        (("keras", "loss"), ("keras", "val_loss")), 2
    )
    assert figures["tensorboard", "validation/epoch_loss"] == 2
    assert (told["epoch", "keras"], told["validation", "keras evaluate"], told["train", "keras fit"]) == (2, 2, 1)
    assert told["saving", "keras save_model"] == 2
    assert told["compilation", "tf.function"] >= 1
    assert told["step", "keras"] == 18
