"""A large cache of Python objects, and a full garbage collection after every step."""

import gc

import torch
from torch import nn

STEPS, BATCH = 45, 64


def free_memory():
    gc.collect()


def train_step(model, optimizer, features, labels):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(features), labels)
    loss.backward()
    optimizer.step()


def train(cache):
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    features, labels = torch.randn(BATCH, 256), torch.randint(0, 10, (BATCH,))
    for step in range(STEPS):
        train_step(model, optimizer, features, labels)
        cache[step] = {"step": step}
        free_memory()


if __name__ == "__main__":
    train({-number: {"tokens": [number], "length": number} for number in range(1, 60_000)})
