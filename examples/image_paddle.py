"""The networks of ``image_models.py`` in PaddlePaddle; run by ``image_training.py``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import paddle
from image_models import Average, Convolution, Dense, Layer, Model, Pooling, Sum
from image_training import LEARNING_RATE, MOMENTUM
from paddle import nn
from paddle.io import DataLoader, TensorDataset

if TYPE_CHECKING:
    import argparse

    from images import Images

ACTIVATIONS = {"relu": nn.ReLU, "relu6": nn.ReLU6, None: nn.Identity}


def train(model: Model, training: Images, held: Images, options: argparse.Namespace) -> float:
    """Train on batches in random order; return the accuracy on the held-out images."""
    paddle.seed(options.seed)
    paddle.set_device(options.device)
    network = sequence(model)
    optimizer = paddle.optimizer.Momentum(LEARNING_RATE, MOMENTUM, parameters=network.parameters())
    loss_of = nn.CrossEntropyLoss()
    loader = DataLoader(TensorDataset(tensors(training)), batch_size=options.batch_size, shuffle=True)
    for _ in range(options.epochs):
        for pixels, labels in loader():
            loss = loss_of(network(pixels), labels)
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
    network.eval()
    pixels, labels = tensors(held)
    with paddle.no_grad():
        return float((network(pixels).argmax(1) == labels).astype("float32").mean())


def tensors(images: Images) -> list[paddle.Tensor]:
    """Return pixels with the channels first, and labels."""
    return [paddle.to_tensor(images.as_floats(channels_first=True)), paddle.to_tensor(images.labels)]


def sequence(layers: Model) -> nn.Sequential:
    """Return the layers as a sequence."""
    return nn.Sequential(*(made for layer in layers for made in modules(layer)))


def modules(layer: Layer) -> list[nn.Layer]:
    """Return the modules of a layer."""
    if isinstance(layer, Convolution):
        sides = (layer.size, layer.stride, layer.size // 2)
        bias = False if layer.normalised else None
        convolution = nn.Conv2D(layer.inputs, layer.outputs, *sides, groups=layer.groups, bias_attr=bias)
        normal = [nn.BatchNorm2D(layer.outputs)] if layer.normalised else []
        return [convolution, *normal, ACTIVATIONS[layer.activation]()]
    if isinstance(layer, Dense):
        return [nn.Linear(layer.inputs, layer.outputs), ACTIVATIONS[layer.activation]()]
    if isinstance(layer, Pooling):
        return [nn.MaxPool2D(2)]
    if isinstance(layer, Average):
        return [nn.AdaptiveAvgPool2D(1), nn.Flatten()]
    return [Added(layer)]


class Added(nn.Layer):
    """Two paths with added results."""

    def __init__(self, layer: Sum) -> None:
        super().__init__()
        self.body, self.short_cut = sequence(layer.body), sequence(layer.short_cut)
        self.activation = ACTIVATIONS[layer.activation]()

    def forward(self, values: paddle.Tensor) -> paddle.Tensor:
        """Return the sum of both paths."""
        return self.activation(self.body(values) + self.short_cut(values))
