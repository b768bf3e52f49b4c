"""A convolutional network on data that is at hand: the program computes."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

STEPS, BATCH = 40, 32


def train_step(model, optimizer, images, labels):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()


def train():
    torch.set_num_threads(1)
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3), nn.ReLU(), nn.Conv2d(32, 32, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(4),
        nn.Flatten(), nn.Linear(512, 10),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    data = TensorDataset(torch.randn(STEPS * BATCH, 3, 32, 32), torch.randint(0, 10, (STEPS * BATCH,)))
    for images, labels in DataLoader(data, batch_size=BATCH, shuffle=True):
        train_step(model, optimizer, images, labels)


if __name__ == "__main__":
    train()
