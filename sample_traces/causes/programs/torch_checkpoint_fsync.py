"""A checkpoint is saved after every step, and forced to the disk."""

import os
import tempfile

import torch
from torch import nn

STEPS, BATCH = 45, 128


def save_checkpoint(model, optimizer, folder):
    for name, state in (("model", model), ("optimizer", optimizer)):
        path = os.path.join(folder, f"{name}.pt")
        with open(path + ".new", "wb") as file:
            torch.save(state.state_dict(), file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(path + ".new", path)


def train_step(model, optimizer, features, labels):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(features), labels)
    loss.backward()
    optimizer.step()


def train(folder):
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    features, labels = torch.randn(BATCH, 1024), torch.randint(0, 10, (BATCH,))
    for _ in range(STEPS):
        train_step(model, optimizer, features, labels)
        save_checkpoint(model, optimizer, folder)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        train(folder)
