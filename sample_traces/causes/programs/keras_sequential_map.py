"""Keras reads a tf.data pipeline whose map distorts one image after the other, without a prefetch."""

import keras
import tensorflow as tf

STEPS, BATCH = 50, 32


def distort(number):
    image = tf.random.stateless_uniform((96, 96, 3), (number, number))
    for _ in range(10):
        image = tf.image.resize(tf.image.resize(image, (120, 120), "bicubic"), (96, 96), "bicubic")
    return tf.image.resize(image, (16, 16)), tf.cast(number % 10, tf.int32)


def train():
    data = tf.data.Dataset.range(STEPS * BATCH).map(distort).batch(BATCH)
    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False
    model = keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(64, "relu"), keras.layers.Dense(10)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(data.with_options(options), epochs=1, verbose=0)


if __name__ == "__main__":
    train()
