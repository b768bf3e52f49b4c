"""The edit distance of every prediction is computed in a Python loop, inside of the step."""

import torch
from torch import nn

STEPS, BATCH, LENGTH = 40, 16, 64


def edit_distance(first, second):
    row = list(range(len(second) + 1))
    for i, a in enumerate(first, 1):
        before, row[0] = row[0], i
        for j, b in enumerate(second, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
    return row[-1]


def train_step(model, optimizer, features, labels):
    optimizer.zero_grad()
    scores = model(features)
    loss = nn.functional.cross_entropy(scores.flatten(0, 1), labels.flatten())
    loss.backward()
    optimizer.step()
    guesses = scores.argmax(-1)
    return sum(map(edit_distance, guesses.tolist(), labels.tolist())) / BATCH


def train():
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 30))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    features, labels = torch.randn(BATCH, LENGTH, 64), torch.randint(0, 30, (BATCH, LENGTH))
    for _ in range(STEPS):
        train_step(model, optimizer, features, labels)


if __name__ == "__main__":
    train()
