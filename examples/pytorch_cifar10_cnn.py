"""A small residual network on images of CIFAR-10 size, in PyTorch: the program contains no profiler.

    pip install 'traceviz-toolkit[torch]'
    traceviz collect -o slow -- python examples/pytorch_cifar10_cnn.py
    traceviz report slow
    traceviz collect -o repaired -- python examples/pytorch_cifar10_cnn.py --loader repaired

Model, data set and loaders are those of ``pytorch_input_pipeline.py``, which profiles itself.
"""

from __future__ import annotations

import argparse

import torch
from pytorch_input_pipeline import Size, loader, training_step


def main() -> None:
    """Train the small network."""
    run(blocks=(1,), batch_size=32, steps=40)


def run(blocks: tuple[int, ...], batch_size: int, steps: int, *, pooled: bool = False) -> None:
    """Train a network with these numbers of blocks per stage."""
    options = parse(batch_size, steps)
    torch.manual_seed(1)
    if options.intra_op:
        torch.set_num_threads(options.intra_op)
    if options.inter_op:
        torch.set_num_interop_threads(options.inter_op)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    size = Size(side=32, batch=options.batch_size, width=64, blocks=blocks, pooled=pooled)
    step = training_step(size, device, options)
    loss = torch.zeros(())
    for images, labels in loader(options.loader, size, options.steps, device):
        loss = step(images.to(device, non_blocking=True), labels.to(device, non_blocking=True))
    print(f"{options.steps} steps of {size.batch} images, loss {float(loss):.3f}")


def parse(batch_size: int, steps: int) -> argparse.Namespace:
    """Return the options of the command line, with the names that ``training_step`` reads."""
    parser = argparse.ArgumentParser(description="Train on images of the size of CIFAR-10.")
    parser.add_argument("--loader", choices=["slow", "workers", "repaired"], default="slow")
    parser.add_argument("--steps", type=int, default=steps, help=f"training steps (default {steps})")
    parser.add_argument("--batch-size", type=int, default=batch_size, help=f"images per step (default {batch_size})")
    parser.add_argument("--mixed-precision", dest="amp", action="store_true", help="bfloat16 where it serves")
    parser.add_argument("--compile", action="store_true", help="torch.compile; needs a C++ compiler")
    parser.add_argument("--channels-last", action="store_true", help="channels as innermost dimension")
    # One thread for the model leaves a core for the loader's worker.
    parser.add_argument("--intra-op", type=int, default=1, metavar="N", help="threads within an operation; 0: cores")
    parser.add_argument("--inter-op", type=int, default=0, metavar="N", help="operations at once; 0: cores")
    parser.set_defaults(graphs=False)
    return parser.parse_args()


if __name__ == "__main__":
    main()
