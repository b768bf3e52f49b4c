"""A small image classifier in TensorFlow whose input pipeline can be slow in three ways, or repaired.

    pip install 'traceviz-toolkit[tensorflow]'
    python examples/tf_input_pipeline.py --pipeline slow-map --logdir logs
    traceviz report logs

``slow-map`` distorts images one at a time while the model waits; ``repaired`` is the same pipeline with the distorted
batches cached and prefetched; ``tfrecord`` reads gzipped TFRecord files one after another; ``generator`` distorts in a
Python generator. The model and its batches are the same in all four, so the step time of ``repaired`` confirms the best
case that the report of ``slow-map`` promises. The work is real, the images are noise.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf

IMAGES = 256
SIDE = 32
CLASSES = 10
BATCH = 32
WARM_UP = IMAGES // BATCH + 2
"""One round over the images, which also fills the cache, and two more steps."""
SHARD_IMAGES = 64
STORED_SIDE = 56
"""Images are distorted in this size, and then cropped for the model."""
ORIGINAL_BYTES = 120_000
"""Bytes that a record holds in addition to the small image, as records often do: they are read and never used."""


def main() -> None:
    """Train for a while, and capture the last steps."""
    parser = argparse.ArgumentParser(description="Capture a small TensorFlow training run.")
    parser.add_argument("--pipeline", choices=["slow-map", "repaired", "tfrecord", "generator"], default="slow-map")
    parser.add_argument("--steps", type=int, default=12, help="steps to capture (default 12)")
    parser.add_argument("--logdir", default="logs", help="where the capture goes (default logs)")
    options = parser.parse_args()
    # One thread for the model leaves a core for the pipeline. It does not slow down the model.
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(2)
    tf.keras.utils.set_random_seed(1)
    with tempfile.TemporaryDirectory() as folder:
        batches = iter(without_rewriting(dataset(options.pipeline, Path(folder))))
        loss = train(batches, options.steps, options.logdir)
    print(f"{options.pipeline}: {options.steps} steps captured in {options.logdir}, loss {loss:.3f}")


def train(batches: Iterator[tuple[tf.Tensor, tf.Tensor]], steps: int, logdir: str) -> float:
    """Train on ``batches``, the last ``steps`` of them under the profiler; return the last loss."""
    step = training_step()
    for _ in range(WARM_UP):
        step(*next(batches))
    tf.profiler.experimental.start(logdir)
    for number in range(steps):
        with tf.profiler.experimental.Trace("train", step_num=number, _r=1):
            images, labels = next(batches)
            loss = step(images, labels)
    tf.profiler.experimental.stop()
    return float(loss)


def training_step() -> tf.types.experimental.PolymorphicFunction:
    """Return a convolutional network with its optimizer, as one compiled step from a batch to a loss."""
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            layers.Input((SIDE, SIDE, 3)),
            layers.Conv2D(64, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(96, 3, activation="relu"),
            layers.GlobalAveragePooling2D(),
            layers.Dense(CLASSES),
        ]
    )
    optimizer = tf.keras.optimizers.SGD(0.01)
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def step(images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = loss_of(labels, model(images, training=True))
        optimizer.apply_gradients(
            zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables, strict=True)
        )
        return loss

    return step


def dataset(pipeline: str, folder: Path) -> tf.data.Dataset:
    """Return endless batches of (images, labels); ``folder`` receives the files that ``tfrecord`` reads."""
    if pipeline == "tfrecord":
        files = write_records(folder)
        records = tf.data.TFRecordDataset(files, compression_type="GZIP").repeat()
        return records.map(parse).batch(BATCH, drop_remainder=True)
    if pipeline == "generator":
        signature = (
            tf.TensorSpec((SIDE, SIDE, 3), tf.float32),
            tf.TensorSpec((), tf.int32),
        )
        return tf.data.Dataset.from_generator(distorted_images, output_signature=signature).batch(BATCH)
    stored = tf.data.Dataset.from_tensor_slices((noise(STORED_SIDE), labels()))
    if pipeline == "slow-map":
        return stored.repeat().map(distort_in_graph).batch(BATCH)
    distorted = stored.map(distort_in_graph, num_parallel_calls=tf.data.AUTOTUNE)
    return distorted.batch(BATCH).cache().repeat().prefetch(tf.data.AUTOTUNE)


def without_rewriting(data: tf.data.Dataset) -> tf.data.Dataset:
    """Run ``data`` as written: by default TensorFlow fuses map and batch, and then prefetches one batch."""
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    return data.with_options(options)


def distort_in_graph(image: tf.Tensor, label: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Apply :func:`distort` as a step of a pipeline, as NumPy code usually is."""
    distorted = tf.numpy_function(distort, [image], tf.float32, stateful=False)
    return tf.ensure_shape(distorted, (SIDE, SIDE, 3)), label


def distort(image: np.ndarray) -> np.ndarray:
    """Rotate the colours of an image, blur it, equalise its histogram, and crop its middle: a millisecond of NumPy."""
    pixels = image.astype(np.float32) / 255
    angle = float(pixels[0, 0, 0])
    turn = np.array([[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1]], np.float32)
    pixels = pixels @ turn
    for axis in (0, 1):
        pixels = sum(np.roll(pixels, shift, axis) * weight for shift, weight in zip(range(-4, 5), BLUR, strict=True))
    ranks = np.argsort(np.argsort(pixels, axis=None)).reshape(pixels.shape)
    margin = (STORED_SIDE - SIDE) // 2
    return (ranks / ranks.size).astype(np.float32)[margin:-margin, margin:-margin]


BLUR = np.exp(-((np.arange(9) - 4.0) ** 2) / 8).astype(np.float32) / 4.5


def distorted_images() -> Iterator[tuple[np.ndarray, np.int32]]:
    """Yield distorted images with labels, without end."""
    images, numbers = noise(STORED_SIDE), labels()
    while True:
        for image, label in zip(images, numbers, strict=True):
            yield distort(image), label


def write_records(folder: Path) -> list[str]:
    """Write the images to gzipped TFRecord files; return their paths."""
    images, numbers = noise(SIDE), labels()
    original = noise(200).tobytes()[:ORIGINAL_BYTES]
    files = []
    for first in range(0, IMAGES, SHARD_IMAGES):
        path = str(folder / f"images-{first // SHARD_IMAGES}.tfrecord.gz")
        with tf.io.TFRecordWriter(path, "GZIP") as writer:
            for image, label in zip(images[first:][:SHARD_IMAGES], numbers[first:][:SHARD_IMAGES], strict=True):
                writer.write(bytes([label]) + image.tobytes() + original)
        files.append(path)
    return files


def parse(record: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Extract the label and the small image from a record."""
    values = tf.io.decode_raw(tf.strings.substr(record, 0, 1 + SIDE * SIDE * 3), tf.uint8)
    image = tf.reshape(values[1:], (SIDE, SIDE, 3))
    return tf.cast(image, tf.float32) / 255, tf.cast(values[0], tf.int32)


def noise(side: int) -> np.ndarray:
    """Return images of random pixels with few colours, so that they compress a little."""
    return np.random.default_rng(1).integers(0, 16, (IMAGES, side, side, 3), np.uint8) * 16


def labels() -> np.ndarray:
    """Return a class for every image."""
    return np.random.default_rng(2).integers(0, CLASSES, IMAGES, np.int32)


if __name__ == "__main__":
    main()
