"""The networks of ``image_models.py`` in TensorFlow's Keras; run by ``image_training.py``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import tensorflow as tf
from image_models import Average, Convolution, Dense, Layer, Model, Pooling
from image_training import LEARNING_RATE, MOMENTUM
from images import SIDE

if TYPE_CHECKING:
    import argparse

    from images import Images


def train(model: Model, training: Images, held: Images, options: argparse.Namespace) -> float:
    """Train on batches in random order; return the accuracy on the held-out images."""
    keras.utils.set_random_seed(options.seed)
    if options.device == "cpu":
        tf.config.set_visible_devices([], "GPU")
    elif not tf.config.list_physical_devices("GPU"):
        raise SystemExit("TensorFlow sees no GPU")
    network = built(model)
    network.compile(
        optimizer=keras.optimizers.SGD(LEARNING_RATE, MOMENTUM),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    history = network.fit(
        training.as_floats(),
        training.labels,
        batch_size=options.batch_size,
        epochs=options.epochs,
        validation_data=(held.as_floats(), held.labels),
        validation_freq=options.epochs,
        verbose=0,
    )
    return history.history["val_accuracy"][-1]


def built(model: Model) -> keras.Model:
    """Return the layers as a model, for images of CIFAR-10's size."""
    inputs = keras.Input((SIDE, SIDE, 3))
    return keras.Model(inputs, followed(inputs, model))


def followed(values: keras.KerasTensor, layers: Model) -> keras.KerasTensor:
    """Apply the layers to ``values``."""
    for layer in layers:
        values = applied(values, layer)
    return values


def applied(values: keras.KerasTensor, layer: Layer) -> keras.KerasTensor:
    """Apply a layer to ``values``."""
    if isinstance(layer, Convolution):
        values = convolution(layer)(values)
        if layer.normalised:
            values = keras.layers.BatchNormalization()(values)
        return keras.layers.Activation(layer.activation)(values)
    if isinstance(layer, Dense):
        return keras.layers.Dense(layer.outputs, layer.activation)(values)
    if isinstance(layer, Pooling):
        return keras.layers.MaxPooling2D()(values)
    if isinstance(layer, Average):
        return keras.layers.GlobalAveragePooling2D()(values)
    both = keras.layers.add([followed(values, layer.body), followed(values, layer.short_cut)])
    return keras.layers.Activation(layer.activation)(both)


def convolution(layer: Convolution) -> keras.Layer:
    """Return the layer of a convolution; depthwise ones use their own, because TensorFlow trains no groups on a CPU."""
    sides = {"strides": layer.stride, "padding": "same", "use_bias": not layer.normalised}
    if layer.groups > 1:
        return keras.layers.DepthwiseConv2D(layer.size, **sides)
    return keras.layers.Conv2D(layer.outputs, layer.size, **sides)
