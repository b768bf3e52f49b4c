"""After every step all predictions are turned into JSON, to be sent to a dashboard."""

import json

import torch
from torch import nn

STEPS, BATCH = 45, 256


def encode_predictions(predictions):
    return json.dumps([{"scores": row, "best": max(row)} for row in predictions.tolist()], indent=1)


def train_step(model, optimizer, features, labels):
    optimizer.zero_grad()
    predictions = model(features)
    loss = nn.functional.cross_entropy(predictions, labels)
    loss.backward()
    optimizer.step()
    return predictions.detach()


def train():
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 100))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    features, labels = torch.randn(BATCH, 256), torch.randint(0, 100, (BATCH,))
    for _ in range(STEPS):
        encode_predictions(train_step(model, optimizer, features, labels))


if __name__ == "__main__":
    train()
