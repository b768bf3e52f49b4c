"""Two short steps an epoch, then a validation over a whole data set, and all that was ever learned is saved."""

import os
import tempfile

import torch
from torch import nn

EPOCHS, STEPS, BATCH = 6, 2, 64


def train_step(model, optimizer, features, labels):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(features), labels)
    loss.backward()
    optimizer.step()


@torch.no_grad()
def validate(model, features, labels):
    model.eval()
    right = sum(
        int((model(x).argmax(1) == y).sum()) for x, y in zip(features.split(256), labels.split(256), strict=True)
    )
    model.train()
    return right / len(labels)


def save_checkpoint(model, optimizer, history, folder):
    torch.save(
        {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "history": history},
        os.path.join(folder, "checkpoint.pt"),
    )


def train(folder):
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 4096), nn.ReLU(), nn.Linear(4096, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    features, labels = torch.randn(BATCH, 512), torch.randint(0, 10, (BATCH,))
    held_out, answers = torch.randn(16384, 512), torch.randint(0, 10, (16384,))
    history = []
    for _ in range(EPOCHS):
        for _ in range(STEPS):
            train_step(model, optimizer, features, labels)
        validate(model, held_out, answers)
        history.append({name: value.clone() for name, value in model.state_dict().items()})
        save_checkpoint(model, optimizer, history, folder)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        train(folder)
