"""Forecast a time series with an LSTM in Keras, from windows that a Python generator cuts, or cut at once.

    python -m pip install tensorflow-cpu
    traceviz collect -o before -- python examples/series_forecast.py --windows generator --batch-size 16
    traceviz collect -o after -- python examples/series_forecast.py --windows array --batch-size 128

The error of the validation (RMSE) is printed, and recorded by ``traceviz collect``: a faster run may be worse.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np

LENGTH, HELD_OUT = 6000, 1000


class Windows(keras.utils.PyDataset):
    """Batches of windows in random order, each cut on access, as generators of data often do."""

    def __init__(self, series: np.ndarray, window: int, batch_size: int) -> None:
        super().__init__()
        self.series, self.window, self.batch_size = series, window, batch_size
        self.order = np.random.default_rng(1).permutation(len(series) - window)

    def __len__(self) -> int:
        return len(self.order) // self.batch_size

    def __getitem__(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        starts = self.order[number * self.batch_size :][: self.batch_size]
        windows = [[[float(value)] for value in self.series[start : start + self.window]] for start in starts]
        return np.array(windows, np.float32), np.array([self.series[start + self.window] for start in starts])


def main() -> None:
    """Train, and print the error of the forecast."""
    options = parse()
    keras.utils.set_random_seed(options.seed)
    series = noisy_waves()
    before, held = series[:-HELD_OUT], series[-HELD_OUT:]
    network = compiled(options)
    named = {"epochs": options.epochs, "validation_data": cut(held, options.window), "verbose": 0}
    if options.windows == "generator":
        history = network.fit(Windows(before, options.window, options.batch_size), **named).history
    else:
        history = network.fit(*cut(before, options.window), batch_size=options.batch_size, **named).history
    print(f"{options.epochs} epochs, RMSE of the validation {history['val_rmse'][-1]:.3f}")


def parse() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--windows", choices=["generator", "array"], default="generator")
    parser.add_argument("--window", type=int, default=24, help="values that the model sees (default 24)")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--units", type=int, default=32)
    parser.add_argument("--learning-rate", type=float, default=0.001)
    parser.add_argument("--seed", type=int, default=1, help="another one in each repeat shows what chance does")
    parser.add_argument("--xla", action="store_true", help="compile the step")
    return parser.parse_args()


def compiled(options: argparse.Namespace) -> keras.Model:
    """Return the model with its optimizer, loss and metric."""
    layers = keras.layers
    network = keras.Sequential([layers.Input((options.window, 1)), layers.LSTM(options.units), layers.Dense(1)])
    network.compile(
        optimizer=keras.optimizers.Adam(options.learning_rate),
        loss="mse",
        metrics=[keras.metrics.RootMeanSquaredError("rmse")],
        jit_compile=options.xla,
    )
    return network


def cut(series: np.ndarray, window: int) -> tuple[np.ndarray, np.ndarray]:
    """Return all windows with the values that follow them."""
    return np.lib.stride_tricks.sliding_window_view(series[:-1], window)[..., None], series[window:]


def noisy_waves() -> np.ndarray:
    """Return a sum of waves, and noise."""
    times = np.arange(LENGTH, dtype=np.float32)
    waves = sum(np.sin(times / length) for length in (3, 17, 101))
    return waves + np.random.default_rng(1).normal(0, 0.1, LENGTH).astype(np.float32)


if __name__ == "__main__":
    main()
