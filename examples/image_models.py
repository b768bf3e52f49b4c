"""AlexNet, MobileNet v2, ResNet-50 and VGG-16 as lists of layers, which four frameworks build alike.

Comparing frameworks asks for the same network in each of them, and their collections of models differ: in where a
block halves its sides, in what is normalised, in the size of dense layers. Here a model is written down once, for
images of 32 by 32 pixels, and ``image_tensorflow.py``, ``image_pytorch.py``, ``image_paddle.py`` and
``image_mxnet.py`` make layers of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Convolution:
    """Square, with as much padding as keeps sides at a stride of 1; normalised or not, then activated or not."""

    inputs: int
    outputs: int
    size: int = 3
    stride: int = 1
    groups: int = 1
    normalised: bool = True
    activation: str | None = "relu"


@dataclass(frozen=True)
class Pooling:
    """The largest of 2 by 2 pixels."""


@dataclass(frozen=True)
class Average:
    """One value per channel."""


@dataclass(frozen=True)
class Dense:
    """With or without an activation."""

    inputs: int
    outputs: int
    activation: str | None = "relu"


@dataclass(frozen=True)
class Sum:
    """What ``body`` gives, and what ``short_cut`` gives (the input itself where that is empty); then activated."""

    body: tuple[Layer, ...]
    short_cut: tuple[Layer, ...] = ()
    activation: str | None = "relu"


Layer = Convolution | Pooling | Average | Dense | Sum
Model = tuple[Layer, ...]


def alexnet(classes: int) -> Model:
    """Five convolutions and three dense layers (Krizhevsky, 2012), the first cut to small images."""
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
    """Thirteen convolutions and three dense layers (Simonyan and Zisserman, 2014)."""
    layers: list[Layer] = []
    inputs = 3
    for outputs, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(count):
            layers.append(Convolution(inputs, outputs, normalised=False))
            inputs = outputs
        layers.append(Pooling())
    return (*layers, Average(), Dense(512, 4096), Dense(4096, 4096), Dense(4096, classes, None))


def resnet50(classes: int) -> Model:
    """Sixteen bottleneck blocks (He and others, 2015)."""
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
    """Seventeen inverted residual blocks with convolutions of single channels (Sandler and others, 2018)."""
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
    """Numbers that training changes: weights, biases, and two per normalised channel."""
    return sum(_parameters(layer) for layer in model)


def _parameters(layer: Layer) -> int:
    if isinstance(layer, Convolution):
        weights = layer.outputs * layer.inputs // layer.groups * layer.size**2
        return weights + layer.outputs * (2 if layer.normalised else 1)
    if isinstance(layer, Dense):
        return layer.outputs * (layer.inputs + 1)
    return parameters(layer.body) + parameters(layer.short_cut) if isinstance(layer, Sum) else 0
