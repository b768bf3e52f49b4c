"""A recurrent network without tf.function: a step runs hundreds of small operators, one call of Python each."""

import tensorflow as tf

STEPS, BATCH, CELLS = 40, 8, 150


def train_step(weights, state, labels):
    with tf.GradientTape() as tape:
        for _ in range(CELLS):
            state = tf.tanh(state @ weights)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, state))
    weights.assign_sub(0.01 * tape.gradient(loss, weights))


def train():
    weights = tf.Variable(tf.random.normal((16, 16)) * 0.1)
    data = tf.data.Dataset.from_tensors((tf.random.normal((BATCH, 16)), tf.zeros((BATCH,), tf.int32))).repeat(STEPS)
    for state, labels in data:
        train_step(weights, state, labels)


if __name__ == "__main__":
    train()
