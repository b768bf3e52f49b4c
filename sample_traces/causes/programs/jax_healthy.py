"""A jitted step of large matrix products on data that is ready: the program computes."""

import jax
import jax.numpy as jnp
import numpy as np

STEPS, BATCH = 40, 256


def loss_of(weights, features, labels):
    hidden = features
    for weight in weights[:-1]:
        hidden = jax.nn.relu(hidden @ weight)
    scores = jax.nn.log_softmax(hidden @ weights[-1])
    return -jnp.mean(jnp.take_along_axis(scores, labels[:, None], axis=1))


@jax.jit
def train_step(weights, features, labels):
    loss, gradients = jax.value_and_grad(loss_of)(weights, features, labels)
    return jax.tree.map(lambda weight, gradient: weight - 0.01 * gradient, weights, gradients), loss


def train():
    random = np.random.default_rng(0)
    features, labels = random.random((BATCH, 1024), dtype=np.float32), random.integers(0, 10, BATCH)
    weights = [jnp.ones((1024, 1024)) * 0.01] * 3 + [jnp.ones((1024, 10)) * 0.01]
    for _ in range(STEPS):
        weights, loss = train_step(weights, features, labels)
        loss.block_until_ready()


if __name__ == "__main__":
    train()
