"""A thread that publishes metrics holds a lock while it sends them, and the training thread waits for the lock."""

import threading
import time

import torch
from torch import nn

STEPS, BATCH = 45, 64
lock = threading.Lock()
metrics = []


def publish(stop):
    while not stop.is_set():
        with lock:
            metrics.clear()
            time.sleep(0.050)
        time.sleep(0.002)


def add_metric(value):
    with lock:
        metrics.append(value)


def train_step(model, optimizer, features, labels):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(features), labels)
    loss.backward()
    optimizer.step()
    return loss.item()


def train():
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    features, labels = torch.randn(BATCH, 256), torch.randint(0, 10, (BATCH,))
    for _ in range(STEPS):
        add_metric(train_step(model, optimizer, features, labels))


if __name__ == "__main__":
    stop = threading.Event()
    publisher = threading.Thread(target=publish, args=(stop,), name="publisher")
    publisher.start()
    train()
    stop.set()
    publisher.join()
