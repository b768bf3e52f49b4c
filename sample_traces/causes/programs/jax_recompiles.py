"""Every batch has another length, so that the jitted step is compiled anew for each."""

import jax
import jax.numpy as jnp
import numpy as np

STEPS, BATCH = 32, 16


def loss_of(weights, features):
    hidden = jax.nn.relu(features @ weights["first"])
    return jnp.mean((hidden @ weights["second"]).mean(axis=1) ** 2)


@jax.jit
def train_step(weights, features):
    loss, gradients = jax.value_and_grad(loss_of)(weights, features)
    return jax.tree.map(lambda weight, gradient: weight - 0.01 * gradient, weights, gradients), loss


def train():
    features = np.random.default_rng(0).random((BATCH, 100 + STEPS, 64), dtype=np.float32)
    weights = {"first": jnp.ones((64, 128)) * 0.01, "second": jnp.ones((128, 10)) * 0.01}
    for step in range(STEPS):
        weights, loss = train_step(weights, features[:, : 100 + step])
        loss.block_until_ready()


if __name__ == "__main__":
    train()
