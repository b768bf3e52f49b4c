"""An LSTM that continues a time series, trained by a custom loop in TensorFlow, without Keras' ``fit``.

    pip install 'traceviz-toolkit[tensorflow]'
    traceviz collect -o lstm -- python examples/lstm_time_series.py
    traceviz report lstm

Many small operations follow each other: launching them takes longer than computing. ``--unroll`` unrolls the loop in
the graph, ``--xla`` compiles the training step.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf

LENGTH = 20_000


def main() -> None:
    """Train for a while."""
    parser = argparse.ArgumentParser(description="Train an LSTM on a time series.")
    parser.add_argument("--steps", type=int, default=60, help="training steps (default 60)")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--window", type=int, default=32, help="values that the model sees (default 32)")
    parser.add_argument("--units", type=int, default=64)
    parser.add_argument("--unroll", action="store_true", help="no loop in the graph")
    parser.add_argument("--xla", action="store_true", help="compile the step")
    options = parser.parse_args()
    keras.utils.set_random_seed(1)
    step = training_step(options)
    loss = tf.zeros(())
    for windows, following in batches(options).take(options.steps):
        loss = step(windows, following)
    print(f"{options.steps} steps, loss {float(loss):.3f}")


def training_step(options: argparse.Namespace) -> tf.types.experimental.PolymorphicFunction:
    """Return the model with its optimizer, as a function from a batch to its loss."""
    model = keras.Sequential(
        [
            keras.layers.Input((options.window, 1)),
            keras.layers.LSTM(options.units, unroll=options.unroll),
            keras.layers.Dense(1),
        ]
    )
    optimizer = keras.optimizers.Adam(0.001)

    @tf.function(jit_compile=options.xla)
    def step(windows: tf.Tensor, following: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(windows, training=True) - following))
        slopes = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(slopes, model.trainable_variables, strict=True))
        return loss

    return step


def batches(options: argparse.Namespace) -> tf.data.Dataset:
    """Return endless batches of windows, each with the value that follows it."""
    series = noisy_waves()
    windows = keras.utils.timeseries_dataset_from_array(
        series[:-1, None],
        series[options.window :, None],
        options.window,
        batch_size=options.batch_size,
        shuffle=True,
        seed=1,
    )
    return windows.filter(lambda rows, _: len(rows) == options.batch_size).repeat()


def noisy_waves() -> np.ndarray:
    """Return a sum of waves, and noise."""
    times = np.arange(LENGTH, dtype=np.float32)
    waves = sum(np.sin(times / length) for length in (3, 17, 101))
    return waves + np.random.default_rng(1).normal(0, 0.1, LENGTH).astype(np.float32)


if __name__ == "__main__":
    main()
