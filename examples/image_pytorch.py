"""The networks of ``image_models.py`` in PyTorch; run by ``image_training.py``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from image_models import Average, Convolution, Dense, Layer, Model, Pooling, Sum
from image_training import LEARNING_RATE, MOMENTUM
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

if TYPE_CHECKING:
    import argparse

    from images import Images

ACTIVATIONS = {"relu": nn.ReLU, "relu6": nn.ReLU6, None: nn.Identity}


def train(model: Model, training: Images, held: Images, options: argparse.Namespace) -> float:
    """Train on batches in random order; return the accuracy on the held-out images."""
    torch.manual_seed(options.seed)
    device = torch.device("cuda" if options.device == "gpu" else "cpu")
    network = sequence(model).to(device)
    optimizer = torch.optim.SGD(network.parameters(), LEARNING_RATE, MOMENTUM)
    loss_of = nn.CrossEntropyLoss()
    loader = DataLoader(tensors(training), options.batch_size, shuffle=True, pin_memory=device.type == "cuda")
    for _ in range(options.epochs):
        for pixels, labels in loader:
            optimizer.zero_grad()
            loss = loss_of(network(pixels.to(device, non_blocking=True)), labels.to(device, non_blocking=True))
            loss.backward()
            optimizer.step()
    network.eval()
    pixels, labels = tensors(held).tensors
    with torch.no_grad():
        return float((network(pixels.to(device)).argmax(1).cpu() == labels).float().mean())


def tensors(images: Images) -> TensorDataset:
    """Return pixels with the channels first, and labels."""
    return TensorDataset(torch.from_numpy(images.as_floats(channels_first=True)), torch.from_numpy(images.labels))


def sequence(layers: Model) -> nn.Sequential:
    """Return the layers as a sequence."""
    return nn.Sequential(*(made for layer in layers for made in modules(layer)))


def modules(layer: Layer) -> list[nn.Module]:
    """Return the modules of a layer."""
    if isinstance(layer, Convolution):
        sides = (layer.size, layer.stride, layer.size // 2)
        convolution = nn.Conv2d(layer.inputs, layer.outputs, *sides, groups=layer.groups, bias=not layer.normalised)
        normal = [nn.BatchNorm2d(layer.outputs)] if layer.normalised else []
        return [convolution, *normal, ACTIVATIONS[layer.activation]()]
    if isinstance(layer, Dense):
        return [nn.Linear(layer.inputs, layer.outputs), ACTIVATIONS[layer.activation]()]
    if isinstance(layer, Pooling):
        return [nn.MaxPool2d(2)]
    if isinstance(layer, Average):
        return [nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return [Added(layer)]


class Added(nn.Module):
    """Two paths with added results."""

    def __init__(self, layer: Sum) -> None:
        super().__init__()
        self.body, self.short_cut = sequence(layer.body), sequence(layer.short_cut)
        self.activation = ACTIVATIONS[layer.activation]()

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Return the sum of both paths."""
        return self.activation(self.body(values) + self.short_cut(values))
