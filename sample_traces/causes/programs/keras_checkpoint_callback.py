"""ModelCheckpoint saves the whole model after every batch."""

import os
import tempfile

import keras
import numpy as np

STEPS, BATCH = 40, 64


def train(folder):
    features = np.random.default_rng(0).random((STEPS * BATCH, 256), dtype=np.float32)
    labels = np.arange(STEPS * BATCH) % 10
    model = keras.Sequential([keras.layers.Dense(512, "relu"), keras.layers.Dense(512, "relu"), keras.layers.Dense(10)])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    checkpoint = keras.callbacks.ModelCheckpoint(os.path.join(folder, "model.keras"), save_freq=1)
    model.fit(features, labels, batch_size=BATCH, epochs=1, verbose=0, callbacks=[checkpoint])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        train(folder)
