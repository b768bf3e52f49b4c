"""A perceptron in JAX: an ordinary training loop that contains no profiler and no annotation.

    pip install 'traceviz-toolkit[jax]'
    traceviz collect -o perceptron -- python examples/jax_mlp.py
    traceviz report perceptron

NumPy standardises each batch while the device waits; ``--ready`` does that once, before the loop.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import jax
import numpy as np
from jax_training import BATCH, WIDTHS, initial, train_step

EXAMPLES = 8 * BATCH


def main() -> None:
    """Train for a while."""
    parser = argparse.ArgumentParser(description="Train a perceptron on noise.")
    parser.add_argument("--steps", type=int, default=60, help="training steps (default 60)")
    parser.add_argument("--batch-size", type=int, default=BATCH)
    parser.add_argument("--ready", action="store_true", help="prepare the data once, before the loop")
    options = parser.parse_args()
    layers, loss = initial(np.random.default_rng(2)), jax.numpy.zeros(())
    for features, labels in batches(options):
        layers, loss = train_step(layers, features, labels)
        # As in a loop that prints its loss, the next batch is prepared after the step.
        loss.block_until_ready()
    print(f"{options.steps} steps, loss {float(loss):.3f}")


def batches(options: argparse.Namespace) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield as many batches as there are steps."""
    random = np.random.default_rng(1)
    features = random.lognormal(size=(EXAMPLES, WIDTHS[0])).astype(np.float32)
    labels = random.integers(0, WIDTHS[-1], EXAMPLES)
    if options.ready:
        features = standardised(features)
    for _ in range(options.steps):
        chosen = random.integers(0, EXAMPLES, options.batch_size)
        rows = features[chosen]
        yield rows if options.ready else standardised(rows), labels[chosen]


def standardised(rows: np.ndarray) -> np.ndarray:
    """Replace values by their ranks within the row, between -1 and 1, so that any distribution becomes flat."""
    ranks = np.argsort(np.argsort(rows, axis=1), axis=1)
    return (2 * ranks / rows.shape[1] - 1).astype(np.float32)


if __name__ == "__main__":
    main()
