"""ResNet-50 on images of CIFAR-10 size, in PyTorch, with the switches of ``pytorch_cifar10_cnn.py``.

    pip install 'traceviz-toolkit[torch]'
    traceviz collect -o resnet -- python examples/pytorch_resnet50.py

Like the small network, it starts no process for its input by default.
"""

from __future__ import annotations

from pytorch_cifar10_cnn import run

BLOCKS = (3, 4, 6, 3)
"""Blocks in the four stages, three layers each; with the first and the last layer there are 50."""

if __name__ == "__main__":
    run(blocks=BLOCKS, batch_size=8, steps=16, pooled=True)
