"""NumPy distorts every batch on the training thread before the jitted step."""

import jax
import jax.numpy as jnp
import numpy as np

STEPS, BATCH = 50, 256


def augment(images, random):
    for _ in range(4):
        images = np.sort(images + random.normal(0, 0.1, images.shape), axis=1)
    return images[:, ::4].astype(np.float32)


def load_batch(images, random):
    return augment(images, random), random.integers(0, 10, BATCH)


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
    images = random.random((BATCH, 1024))
    weights = {"first": jnp.ones((256, 512)) * 0.01, "second": jnp.ones((512, 10)) * 0.01}
    for _ in range(STEPS):
        features, labels = load_batch(images, random)
        weights, loss = train_step(weights, features, labels)
        loss.block_until_ready()


if __name__ == "__main__":
    train()
