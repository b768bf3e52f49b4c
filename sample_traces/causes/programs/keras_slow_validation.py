"""Five batches an epoch, and a validation set that is 120 times as large."""

import keras
import numpy as np

EPOCHS, STEPS, BATCH = 6, 5, 64


def train():
    random = np.random.default_rng(0)
    features, labels = random.random((STEPS * BATCH, 256), dtype=np.float32), np.arange(STEPS * BATCH) % 10
    held_out, answers = random.random((600 * BATCH, 256), dtype=np.float32), np.arange(600 * BATCH) % 10
    model = keras.Sequential([keras.layers.Dense(512, "relu"), keras.layers.Dense(512, "relu"), keras.layers.Dense(10)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(
        features, labels, batch_size=BATCH, epochs=EPOCHS, verbose=0,
        validation_data=(held_out, answers), validation_batch_size=BATCH,
    )  # fmt: skip


if __name__ == "__main__":
    train()
