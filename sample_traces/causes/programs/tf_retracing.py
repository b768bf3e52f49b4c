"""A tf.function is called with a Python number that changes in every step: it is traced anew each time."""

import tensorflow as tf

STEPS, BATCH = 34, 64


def train():
    layers = [tf.Variable(tf.random.normal((64, 64)) * 0.1) for _ in range(3)]
    features, labels = tf.random.normal((BATCH, 64)), tf.zeros((BATCH,), tf.int32)

    @tf.function
    def train_step(features, labels, rate):
        with tf.GradientTape() as tape:
            logits = features
            for layer in layers:
                logits = tf.nn.relu(logits @ layer)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        for layer, gradient in zip(layers, tape.gradient(loss, layers), strict=True):
            layer.assign_sub(rate * gradient)
        return loss

    for step in range(STEPS):
        train_step(features, labels, 0.1 / (step + 1))


if __name__ == "__main__":
    train()
