"""The networks of ``image_models.py`` in Apache MXNet (1.9); run by ``image_training.py``."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

import mxnet as mx
from image_models import Average, Convolution, Dense, Layer, Model, Pooling, Sum
from image_training import LEARNING_RATE, MOMENTUM
from mxnet import autograd, gluon
from mxnet.gluon import nn

if TYPE_CHECKING:
    import argparse

    from images import Images


def train(model: Model, training: Images, held: Images, options: argparse.Namespace) -> float:
    """Train on batches in random order; return the accuracy on the held-out images."""
    mx.random.seed(options.seed)
    device = mx.gpu() if options.device == "gpu" else mx.cpu()
    network = sequence(model)
    network.initialize(mx.init.Xavier(), ctx=device)
    network.hybridize()
    settings = {"learning_rate": LEARNING_RATE, "momentum": MOMENTUM}
    trainer = gluon.Trainer(network.collect_params(), "sgd", settings)
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    loader = gluon.data.DataLoader(gluon.data.ArrayDataset(*arrays(training)), options.batch_size, shuffle=True)
    for _ in range(options.epochs):
        for pixels, labels in loader:
            with autograd.record():
                loss = loss_of(network(pixels.as_in_context(device)), labels.as_in_context(device))
            loss.backward()
            trainer.step(len(pixels))
            mx.nd.waitall()  # else steps and epochs show only how fast work is queued
    pixels, labels = arrays(held)
    scores = network(pixels.as_in_context(device)).argmax(1).as_in_context(labels.context)
    return float((scores == labels).mean().asscalar())


def arrays(images: Images) -> tuple[mx.nd.NDArray, mx.nd.NDArray]:
    """Return pixels with the channels first, and labels."""
    return mx.nd.array(images.as_floats(channels_first=True)), mx.nd.array(images.labels, dtype="float32")


def sequence(layers: Model) -> nn.HybridSequential:
    """Return the layers as a sequence."""
    made = nn.HybridSequential()
    made.add(*(block for layer in layers for block in blocks(layer)))
    return made


def blocks(layer: Layer) -> list[nn.HybridBlock]:
    """Return the blocks of a layer."""
    if isinstance(layer, Convolution):
        sides = (layer.size, layer.stride, layer.size // 2)
        named = {"groups": layer.groups, "use_bias": not layer.normalised, "in_channels": layer.inputs}
        normal = [nn.BatchNorm(in_channels=layer.outputs)] if layer.normalised else []
        return [nn.Conv2D(layer.outputs, *sides, **named), *normal, *activations(layer.activation)]
    if isinstance(layer, Dense):
        return [nn.Dense(layer.outputs, in_units=layer.inputs), *activations(layer.activation)]
    if isinstance(layer, Pooling):
        return [nn.MaxPool2D(2)]
    if isinstance(layer, Average):
        return [nn.GlobalAvgPool2D(), nn.Flatten()]
    return [Added(layer)]


def activations(name: str | None) -> list[nn.HybridBlock]:
    """Return the activation, or none."""
    if name == "relu6":
        return [nn.HybridLambda(lambda operators, values: operators.clip(values, 0, 6))]
    return [nn.Activation(name)] if name else []


class Added(nn.HybridBlock):
    """Two paths with added results."""

    def __init__(self, layer: Sum) -> None:
        super().__init__()
        self.body, self.short_cut = sequence(layer.body), sequence(layer.short_cut)
        self.activation = sequence(())
        self.activation.add(*activations(layer.activation))

    def hybrid_forward(self, operators: ModuleType, values: mx.nd.NDArray) -> mx.nd.NDArray:  # noqa: ARG002 its signature
        """Return the sum of both paths."""
        return self.activation(self.body(values) + self.short_cut(values))
