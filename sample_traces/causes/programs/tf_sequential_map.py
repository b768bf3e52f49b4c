"""A loop of its own over tf.data: a sequential map sorts and filters every example before each step."""

import tensorflow as tf

STEPS, BATCH = 50, 32


def clean(number):
    signal = tf.random.stateless_normal((20_000,), (number, number))
    for _ in range(2):
        signal = tf.sort(tf.sin(signal) + signal)
    return signal[:256], number % 10


def train():
    data = tf.data.Dataset.range(STEPS * BATCH).map(clean).batch(BATCH)
    weights = tf.Variable(tf.random.normal((256, 10)))

    @tf.function
    def train_step(features, labels):
        with tf.GradientTape() as tape:
            logits = features @ weights
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        weights.assign_sub(0.01 * tape.gradient(loss, weights))
        return loss

    for features, labels in data:
        train_step(features, labels)


if __name__ == "__main__":
    train()
