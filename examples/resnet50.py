"""ResNet-50 on images of CIFAR-10 size, in Keras, with the switches and the input pipeline of ``cifar10_cnn.py``.

    pip install 'traceviz-toolkit[tensorflow]'
    traceviz collect -o resnet -- python examples/resnet50.py

The model computes so much that the slow input pipeline matters less: only a GPU is fast enough to wait for input.
"""

from __future__ import annotations

import keras
from cifar10_cnn import CLASSES, SIDE, run


def main() -> None:
    """Train ResNet-50."""
    run(network, batch_size=8, steps=16)


def network() -> keras.Model:
    """Return ResNet-50 without weights, and its scores before the softmax."""
    body = keras.applications.ResNet50(weights=None, include_top=False, pooling="avg", input_shape=(SIDE, SIDE, 3))
    return keras.Sequential([body, keras.layers.Dense(CLASSES, dtype="float32")])


if __name__ == "__main__":
    main()
