"""The weights are written with NumPy after every step, and forced to the disk."""

import os
import tempfile

import jax
import jax.numpy as jnp
import numpy as np

STEPS, BATCH = 40, 64


def loss_of(weights, features):
    return jnp.mean((jax.nn.relu(features @ weights["first"]) @ weights["second"]) ** 2)


@jax.jit
def train_step(weights, features):
    loss, gradients = jax.value_and_grad(loss_of)(weights, features)
    return jax.tree.map(lambda weight, gradient: weight - 0.01 * gradient, weights, gradients), loss


def save_checkpoint(weights, folder):
    for name, weight in weights.items():
        with open(os.path.join(folder, f"{name}.npy"), "wb") as file:
            np.save(file, np.asarray(weight))
            file.flush()
            os.fsync(file.fileno())


def train(folder):
    features = np.random.default_rng(0).random((BATCH, 512), dtype=np.float32)
    weights = {"first": jnp.ones((512, 2048)) * 0.01, "second": jnp.ones((2048, 512)) * 0.01}
    for _ in range(STEPS):
        weights, _ = train_step(weights, features)
        save_checkpoint(weights, folder)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        train(folder)
