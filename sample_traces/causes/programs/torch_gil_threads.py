"""Four threads compute statistics in pure Python beside the training thread: all five want the interpreter at once."""

import threading

import torch
from torch import nn

STEPS, BATCH, THREADS = 32, 128, 4


def count_words(stop):
    text = "the quick brown fox jumps over the lazy dog " * 50
    while not stop.is_set():
        counts = {}
        for word in text.split():
            counts[word] = counts.get(word, 0) + len(word)


def train_step(model, optimizer, features, labels):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(features), labels)
    loss.backward()
    optimizer.step()


def train(counters):
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    features, labels = torch.randn(BATCH, 512), torch.randint(0, 10, (BATCH,))
    for counter in counters:
        counter.start()
    for _ in range(STEPS):
        train_step(model, optimizer, features, labels)


if __name__ == "__main__":
    stop = threading.Event()
    counters = [threading.Thread(target=count_words, args=(stop,), name=f"statistics-{n}") for n in range(THREADS)]
    train(counters)
    stop.set()
    for counter in counters:
        counter.join()
