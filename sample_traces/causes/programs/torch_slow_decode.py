"""Every image is decoded from JPEG in the training process, one after the other, before each step."""

import io

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset

STEPS, BATCH, SIDE = 40, 8, 384


def encode_jpeg(pixels):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG")
    return file.getvalue()


def decode_jpeg(raw):
    image = Image.open(io.BytesIO(raw)).convert("RGB").resize((32, 32), Image.Resampling.BICUBIC)
    return torch.from_numpy(np.array(image)).permute(2, 0, 1).float() / 255


class Images(Dataset):
    def __init__(self):
        noise = np.random.default_rng(0)
        self.files = [encode_jpeg(noise.integers(0, 255, (SIDE, SIDE, 3), dtype=np.uint8)) for _ in range(32)]

    def __len__(self):
        return STEPS * BATCH

    def __getitem__(self, index):
        return decode_jpeg(self.files[index % len(self.files)]), index % 10


def train_step(model, optimizer, images, labels):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()


def train():
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 30 * 30, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for images, labels in DataLoader(Images(), batch_size=BATCH):
        train_step(model, optimizer, images, labels)


if __name__ == "__main__":
    train()
