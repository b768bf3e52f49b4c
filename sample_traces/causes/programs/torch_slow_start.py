"""A vocabulary is counted in Python before the first step, which takes far longer than all the steps."""

import random

import torch
from torch import nn

STEPS, BATCH = 40, 64


def build_vocabulary(words):
    counts = {}
    for word in words:
        key = "".join(sorted(word.lower()))
        counts[key] = counts.get(key, 0) + 1
    return {word: number for number, word in enumerate(sorted(counts))}


def train_step(model, optimizer, tokens, labels):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(tokens), labels)
    loss.backward()
    optimizer.step()


def train(vocabulary):
    torch.set_num_threads(1)
    model = nn.Sequential(nn.EmbeddingBag(len(vocabulary), 64), nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    tokens, labels = torch.randint(0, len(vocabulary), (BATCH, 200)), torch.randint(0, 10, (BATCH,))
    for _ in range(STEPS):
        train_step(model, optimizer, tokens, labels)


if __name__ == "__main__":
    letters = random.Random(0)
    words = ["".join(letters.choices("abcdef", k=8)) for _ in range(20_000)]
    train(build_vocabulary(words * 400))
