"""A thread fills a queue of batches from slow storage; the training thread waits for it."""

import queue
import threading
import time

import torch
from torch import nn

STEPS, BATCH = 45, 64


def read_shard():
    time.sleep(0.040)
    return torch.randn(BATCH, 256), torch.randint(0, 10, (BATCH,))


def fill(batches):
    for _ in range(STEPS):
        batches.put(read_shard())


def train_step(model, optimizer, features, labels):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(features), labels)
    loss.backward()
    optimizer.step()


def train(batches):
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(STEPS):
        features, labels = batches.get()
        train_step(model, optimizer, features, labels)


if __name__ == "__main__":
    batches = queue.Queue(maxsize=4)
    threading.Thread(target=fill, args=(batches,), name="filler", daemon=True).start()
    train(batches)
