"""A deep, narrow network is trained with one example at a time: a step costs the same with thirty-two."""

import torch
from torch import nn

STEPS, BATCH = 100, 1


def train_step(model, optimizer, features, labels):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(features), labels)
    loss.backward()
    optimizer.step()


def train():
    torch.set_num_threads(1)
    layers = [layer for _ in range(50) for layer in (nn.Linear(64, 64), nn.LayerNorm(64), nn.ReLU())]
    model = nn.Sequential(*layers, nn.Linear(64, 10))
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)
    features, labels = torch.randn(STEPS, 64), torch.randint(0, 10, (STEPS,))
    for first in range(0, STEPS, BATCH):
        train_step(model, optimizer, features[first : first + BATCH], labels[first : first + BATCH])


if __name__ == "__main__":
    train()
