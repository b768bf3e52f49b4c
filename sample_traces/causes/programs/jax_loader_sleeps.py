"""The loader fetches every batch from a slow service: it sleeps, and the step waits."""

import time

import jax
import jax.numpy as jnp
import numpy as np

STEPS, BATCH = 50, 64


def fetch_batch(random):
    time.sleep(0.040)
    return random.random((BATCH, 256), dtype=np.float32), random.integers(0, 10, BATCH)


def loss_of(weights, features, labels):
    hidden = jax.nn.relu(features @ weights["first"])
    scores = jax.nn.log_softmax(hidden @ weights["second"])
    return -jnp.mean(jnp.take_along_axis(scores, labels[:, None], axis=1))


@jax.jit
def train_step(weights, features, labels):
    loss, gradients = jax.value_and_grad(loss_of)(weights, features, labels)
    return jax.tree.map(lambda weight, gradient: weight - 0.01 * gradient, weights, gradients), loss


def train():
    random = np.random.default_rng(0)
    weights = {"first": jnp.ones((256, 512)) * 0.01, "second": jnp.ones((512, 10)) * 0.01}
    for _ in range(STEPS):
        features, labels = fetch_batch(random)
        weights, loss = train_step(weights, features, labels)
        loss.block_until_ready()


if __name__ == "__main__":
    train()
