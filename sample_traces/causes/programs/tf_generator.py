"""Dataset.from_generator: a Python generator tokenises text, one example at a time."""

import numpy as np
import tensorflow as tf

STEPS, BATCH = 50, 32


def tokenise(text):
    tokens = np.zeros(256, np.float32)
    for word in text.split():
        key = 0
        for letter in word:
            key = (key * 31 + ord(letter)) % 65521
        tokens[key % 256] += 1
    return tokens


def examples():
    text = "never gonna give you up never gonna let you down " * 60
    for number in range(STEPS * BATCH):
        yield tokenise(text), number % 10


def train():
    kinds = (tf.TensorSpec((256,), tf.float32), tf.TensorSpec((), tf.int32))
    data = tf.data.Dataset.from_generator(examples, output_signature=kinds).batch(BATCH)
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
