"""A convolutional network on arrays in memory: the program computes."""

import keras
import numpy as np

STEPS, BATCH = 40, 32


def train():
    images = np.random.default_rng(0).random((STEPS * BATCH, 32, 32, 3), dtype=np.float32)
    labels = np.arange(STEPS * BATCH) % 10
    model = keras.Sequential(
        [
            keras.layers.Conv2D(32, 3, activation="relu"),
            keras.layers.Conv2D(32, 3, activation="relu"),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(10),
        ]
    )
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(images, labels, batch_size=BATCH, epochs=1, verbose=0)


if __name__ == "__main__":
    train()
