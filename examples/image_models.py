"""AlexNet, MobileNet v2, ResNet-50 and VGG-16 as lists of layers, from which four frameworks build the same networks.

A comparison of frameworks needs the same network in each. Their collections of models differ in the layer of a
block that halves the sides, in normalisation, and in the size of dense layers. Here a model is defined once, for
images of 32 by 32 pixels, and ``image_tensorflow.py``, ``image_pytorch.py``, ``image_paddle.py`` and
``image_mxnet.py`` make layers of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Convolution:
    """Square convolution that keeps the sides at a stride of 1, optionally normalised and activated."""

    inputs: int
    outputs: int
    size: int = 3
    stride: int = 1
    groups: int = 1
    normalised: bool = True
    activation: str | None = "relu"


@dataclass(frozen=True)
class Pooling:
    """Pooling to the largest of 2 by 2 pixels."""


@dataclass(frozen=True)
class Average:
    """Average to one value per channel."""


@dataclass(frozen=True)
class Dense:
    """Dense layer, with or without an activation."""

    inputs: int
    outputs: int
    activation: str | None = "relu"


@dataclass(frozen=True)
class Sum:
    """Sum of ``body`` and ``short_cut`` (the input itself if that is empty), then activated."""

    body: tuple[Layer, ...]
    short_cut: tuple[Layer, ...] = ()
    activation: str | None = "relu"


Layer = Convolution | Pooling | Average | Dense | Sum
Model = tuple[Layer, ...]


def alexnet(classes: int) -> Model:
    """Return five convolutions and three dense layers (Krizhevsky, 2012), the first adapted to small images."""
    plain = Convolution(3, 64, normalised=False)
    return (
        replace(plain, stride=2),
        Pooling(),
        replace(plain, inputs=64, outputs=192),
        Pooling(),
        replace(plain, inputs=192, outputs=384),
        replace(plain, inputs=384, outputs=256),
        replace(plain, inputs=256, outputs=256),
        Pooling(),
        Average(),
        Dense(256, 4096),
        Dense(4096, 4096),
        Dense(4096, classes, None),
    )


def vgg16(classes: int) -> Model:
    """Return thirteen convolutions and three dense layers (Simonyan and Zisserman, 2014)."""
    layers: list[Layer] = []
    inputs = 3
    for outputs, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(count):
            layers.append(Convolution(inputs, outputs, normalised=False))
            inputs = outputs
        layers.append(Pooling())
    return (*layers, Average(), Dense(512, 4096), Dense(4096, 4096), Dense(4096, classes, None))


def resnet50(classes: int) -> Model:
    """Return sixteen bottleneck blocks (He and others, 2015)."""
    layers: list[Layer] = [Convolution(3, 64, 7, 2), Pooling()]
    inputs = 64
    for stage, count in enumerate((3, 4, 6, 3)):
        for place in range(count):
            inner, stride = 64 << stage, 2 if stage and not place else 1
            layers.append(_bottleneck(inputs, inner, 4 * inner, stride))
            inputs = 4 * inner
    return (*layers, Average(), Dense(inputs, classes, None))


def _bottleneck(inputs: int, inner: int, outputs: int, stride: int) -> Sum:
    body = (
        Convolution(inputs, inner, 1),
        Convolution(inner, inner, 3, stride),
        Convolution(inner, outputs, 1, activation=None),
    )
    same = inputs == outputs and stride == 1
    return Sum(body, () if same else (Convolution(inputs, outputs, 1, stride, activation=None),))


def mobilenet(classes: int) -> Model:
    """Return seventeen inverted residual blocks with depthwise convolutions (Sandler and others, 2018)."""
    layers: list[Layer] = [Convolution(3, 32, stride=2, activation="relu6")]
    inputs = 32
    stages = ((1, 16, 1, 1), (6, 24, 2, 1), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
    for wider, outputs, count, first_stride in stages:
        for place in range(count):
            layers += _inverted(inputs, wider * inputs, outputs, 1 if place else first_stride)
            inputs = outputs
    return (*layers, Convolution(inputs, 1280, 1, activation="relu6"), Average(), Dense(1280, classes, None))


def _inverted(inputs: int, inner: int, outputs: int, stride: int) -> tuple[Layer, ...]:
    body: tuple[Layer, ...] = (
        Convolution(inner, inner, 3, stride, groups=inner, activation="relu6"),
        Convolution(inner, outputs, 1, activation=None),
    )
    if inner != inputs:
        body = (Convolution(inputs, inner, 1, activation="relu6"), *body)
    return (Sum(body, activation=None),) if inputs == outputs and stride == 1 else body


MODELS: dict[str, Callable[[int], Model]] = {
    "alexnet": alexnet,
    "mobilenet": mobilenet,
    "resnet50": resnet50,
    "vgg16": vgg16,
}


def parameters(model: Model) -> int:
    """Count the trained numbers: weights, biases, and two per normalised channel."""
    return sum(_parameters(layer) for layer in model)


def _parameters(layer: Layer) -> int:
    if isinstance(layer, Convolution):
        weights = layer.outputs * layer.inputs // layer.groups * layer.size**2
        return weights + layer.outputs * (2 if layer.normalised else 1)
    if isinstance(layer, Dense):
        return layer.outputs * (layer.inputs + 1)
    return parameters(layer.body) + parameters(layer.short_cut) if isinstance(layer, Sum) else 0
