"""A generator parses lines of text for every batch, number by number, while the model waits."""

import random

import torch
from torch import nn

STEPS, BATCH, FEATURES = 40, 32, 100


def parse_line(line):
    numbers = [float(word.strip()) for word in line.split(",")]
    low, high = min(numbers), max(numbers)
    return [round((number - low) / (high - low), 6) for number in numbers]


def batches(lines):
    for _ in range(STEPS):
        rows = [parse_line(line) for line in lines]
        yield torch.tensor(rows), torch.randint(0, 10, (BATCH,))


def train_step(model, optimizer, features, labels):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(features), labels)
    loss.backward()
    optimizer.step()


def train():
    torch.set_num_threads(1)
    lines = [",".join(f"{random.random():.9f}" for _ in range(FEATURES * 10)) for _ in range(BATCH)]
    model = nn.Sequential(nn.Linear(FEATURES * 10, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for features, labels in batches(lines):
        train_step(model, optimizer, features, labels)


if __name__ == "__main__":
    train()
