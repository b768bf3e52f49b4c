"""A training loop in JAX, captured with or without step annotations.

    pip install 'traceviz-toolkit[jax]'
    python examples/jax_training.py --annotate --logdir logs
    traceviz report logs

Without ``--annotate`` the capture does not show where a step starts, or which part of it waits for a batch. A report
then has to infer the steps from repetition, and cannot judge the input pipeline.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

EXAMPLES = 4096
BATCH = 256
WIDTHS = (256, 512, 512, 10)
WARM_UP = 3

Layers = list[tuple[jax.Array, jax.Array]]


def main() -> None:
    """Train for a while, and capture the last steps."""
    parser = argparse.ArgumentParser(description="Capture a small JAX training run.")
    parser.add_argument("--annotate", action="store_true", help="mark the steps, and the taking of a batch")
    parser.add_argument("--steps", type=int, default=12, help="steps to capture (default 12)")
    parser.add_argument("--logdir", default="logs", help="where the capture goes (default logs)")
    options = parser.parse_args()
    batches = endless_batches(np.random.default_rng(1))
    layers = initial(np.random.default_rng(2))
    for _ in range(WARM_UP):
        layers, loss = train_step(layers, *next(batches))
    loss.block_until_ready()
    with jax.profiler.trace(options.logdir, profiler_options=quiet()):
        for number in range(options.steps):
            with step_mark(number) if options.annotate else contextlib.nullcontext():
                with input_mark() if options.annotate else contextlib.nullcontext():
                    features, labels = next(batches)
                layers, loss = train_step(layers, features, labels)
                loss.block_until_ready()
    print(f"{options.steps} steps captured in {options.logdir}, loss {float(loss):.3f}")


def quiet() -> jax.profiler.ProfileOptions:
    """Disable the Python tracer, which is on by default: it slows the loop several times, and fills the capture."""
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    return options


def step_mark(number: int) -> contextlib.AbstractContextManager[object]:
    """Return the mark of a step."""
    return jax.profiler.StepTraceAnnotation("train", step_num=number)


def input_mark() -> contextlib.AbstractContextManager[object]:
    """Return the mark for taking a batch."""
    return jax.profiler.TraceAnnotation("data loading")


def endless_batches(random: np.random.Generator) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield batches of noise with labels without end."""
    features = random.standard_normal((EXAMPLES, WIDTHS[0]), np.float32)
    labels = random.integers(0, WIDTHS[-1], EXAMPLES)
    while True:
        for first in range(0, EXAMPLES, BATCH):
            yield features[first:][:BATCH], labels[first:][:BATCH]


def initial(random: np.random.Generator) -> Layers:
    """Return weights and biases of a perceptron."""
    return [
        (jnp.asarray(random.standard_normal((rows, columns), np.float32) / np.sqrt(rows)), jnp.zeros(columns))
        for rows, columns in itertools.pairwise(WIDTHS)
    ]


def loss_of(layers: Layers, features: jax.Array, labels: jax.Array) -> jax.Array:
    """Return the mean cross-entropy of the network's answers."""
    for weights, bias in layers[:-1]:
        features = jax.nn.relu(features @ weights + bias)
    weights, bias = layers[-1]
    chances = jax.nn.log_softmax(features @ weights + bias)
    return -jnp.mean(jnp.take_along_axis(chances, labels[:, None], axis=1))


@jax.jit
def train_step(layers: Layers, features: jax.Array, labels: jax.Array) -> tuple[Layers, jax.Array]:
    """Run one step of gradient descent; return the new layers, and the loss before it."""
    loss, gradients = jax.value_and_grad(loss_of)(layers, features, labels)
    return jax.tree.map(lambda value, slope: value - 0.05 * slope, layers, gradients), loss


if __name__ == "__main__":
    main()
