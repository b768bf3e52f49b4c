"""Train with Keras and the stock TensorBoard callback, which captures steps 2 to 8: it does no other profiling.

    pip install 'traceviz-toolkit[tensorflow]'
    python examples/keras_tensorboard.py --logdir logs
    traceviz report logs

Keras 3 marks its steps as "Profiled batch", which TensorBoard's own profiler does not recognise as steps.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf

IMAGES = 512
BATCH = 32
CLASSES = 10


def main() -> None:
    """Train for one epoch."""
    parser = argparse.ArgumentParser(description="Train a small Keras model with the TensorBoard callback.")
    parser.add_argument("--logdir", default="logs", help="where the capture goes (default logs)")
    logdir = parser.parse_args().logdir
    tf.keras.utils.set_random_seed(1)
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            layers.Input((32, 32, 3)),
            layers.Conv2D(32, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(64, 3, activation="relu"),
            layers.GlobalAveragePooling2D(),
            layers.Dense(CLASSES),
        ]
    )
    model.compile(
        optimizer="adam",
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    tensorboard = tf.keras.callbacks.TensorBoard(logdir, write_graph=False, profile_batch=(2, 8))
    model.fit(images_and_labels(), epochs=1, verbose=0, callbacks=[tensorboard])
    print(f"steps 2 to 8 captured in {logdir}")


def images_and_labels() -> tf.data.Dataset:
    """Return batches of noise, prefetched."""
    random = np.random.default_rng(1)
    images = random.integers(0, 256, (IMAGES, 32, 32, 3), np.uint8)
    labels = random.integers(0, CLASSES, IMAGES, np.int32)
    data = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(IMAGES, seed=1)
    return data.map(scale, num_parallel_calls=tf.data.AUTOTUNE).batch(BATCH).prefetch(tf.data.AUTOTUNE)


def scale(image: tf.Tensor, label: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Scale pixels to 0 to 1."""
    return tf.cast(image, tf.float32) / 255, label


if __name__ == "__main__":
    main()
