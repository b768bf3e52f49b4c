"""One worker process distorts every image in Python, and cannot keep up with a small model."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

STEPS, BATCH = 45, 8


def distort(image, seed):
    random = np.random.default_rng(seed)
    for _ in range(10):
        image = np.roll(image, int(random.integers(1, 9)), axis=1)
        image = np.sort(image + random.normal(0, 0.1, image.shape).astype(np.float32), axis=2)
    return image[:, ::4, ::4].copy()


class Images(Dataset):
    def __init__(self):
        self.image = np.random.default_rng(0).random((3, 128, 128), dtype=np.float32)

    def __len__(self):
        return STEPS * BATCH

    def __getitem__(self, index):
        return torch.from_numpy(distort(self.image, index)), index % 10


def train_step(model, optimizer, images, labels):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()


def train():
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 30 * 30, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for images, labels in DataLoader(Images(), batch_size=BATCH, num_workers=1):
        train_step(model, optimizer, images, labels)


if __name__ == "__main__":
    train()
