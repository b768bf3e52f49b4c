"""A PyDataset computes the spectrum of every example in Python when the model asks for a batch."""

import os

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
import numpy as np

STEPS, BATCH = 50, 16


def spectrum(wave):
    return np.stack([np.abs(np.fft.rfft(np.hanning(512) * wave[start : start + 512])) for start in range(0, 7680, 32)])


class Waves(keras.utils.PyDataset):
    def __init__(self):
        super().__init__()
        self.wave = np.random.default_rng(0).random(8192)

    def __len__(self):
        return STEPS

    def __getitem__(self, index):
        batch = np.stack([spectrum(np.roll(self.wave, index + row))[::8, ::8] for row in range(BATCH)])
        return batch.astype("float32"), np.zeros(BATCH, "int32")


def train():
    model = keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(64, "relu"), keras.layers.Dense(10)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(Waves(), epochs=1, verbose=0)


if __name__ == "__main__":
    train()
