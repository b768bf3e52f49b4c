"""A Keras program that knows nothing of profilers: 3 epochs of 11 batches, the last of them smaller."""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(1)
numbers = np.random.default_rng(1).random((330, 16), np.float32)
data = tf.data.Dataset.from_tensor_slices((numbers, (numbers.sum(1) > 8).astype(np.int32))).batch(32)
model = keras.Sequential([keras.layers.Dense(32, "relu"), keras.layers.Dropout(0.2), keras.layers.Dense(2)])
model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
history = model.fit(data, epochs=3, verbose=0, validation_data=data)
print(history.history["loss"], history.history["val_loss"])  # noqa: T201
