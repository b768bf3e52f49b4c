"""A small image classifier in PyTorch whose DataLoader can be slow in two ways, or repaired.

    pip install 'traceviz-toolkit[torch]'
    python examples/pytorch_input_pipeline.py --loader slow --profile logs
    traceviz report logs

``slow`` distorts images one at a time in the training process (``num_workers=0``). ``workers`` leaves the same work to
one worker process, which is not enough. ``repaired`` distorts a whole batch at once, in a worker that prefetches. The
model and its batches are the same in all three, so the step time of ``repaired`` confirms the best case in the report
of ``slow``. The work is real, the images are noise.

On a machine with a GPU the model is a ResNet-50, and ``--amp``, ``--channels-last``, ``--compile``, ``--graphs`` and
``--read-loss`` change how it runs. Without a GPU, a far smaller model trains on the CPU.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.profiler import ProfilerActivity
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler

CLASSES = 10
IMAGES = 256
WAVES = (2, 3, 5, 7, 11)
"""Lengths of the waves that distort an image, in pixels."""
WAIT, WARM_UP = 1, 2
"""Steps before the captured ones: not profiled, and profiled but discarded."""

Batch = tuple[torch.Tensor, torch.Tensor]
Step = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


@dataclass(frozen=True, slots=True)
class Size:
    """Size of the work."""

    side: int
    batch: int
    width: int
    blocks: tuple[int, ...]
    pooled: bool = False
    """True if a pooling follows the first layer, as in the ResNet of the paper and of Keras."""


ON_CPU = Size(side=32, batch=32, width=64, blocks=(1,))
ON_GPU = Size(side=224, batch=64, width=64, blocks=(3, 4, 6, 3))


def main() -> None:
    """Train for a while, and capture the last steps."""
    options = parse()
    torch.manual_seed(1)
    # One thread for the model leaves a core for the loader's worker.
    torch.set_num_threads(1)
    device = torch.device(options.device)
    size = ON_GPU if device.type == "cuda" else ON_CPU
    step = training_step(size, device, options)
    batches = loader(options.loader, size, WAIT + WARM_UP + options.steps, device)
    loss = train(batches, step, device, options)
    print(f"{options.loader}: {options.steps} steps captured in {options.profile}, loss {loss:.3f}")


def parse() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description="Capture a small PyTorch training run.")
    parser.add_argument("--loader", choices=["slow", "workers", "repaired"], default="slow")
    parser.add_argument("--steps", type=int, default=12, help="steps to capture (default 12)")
    parser.add_argument("--profile", default="logs", metavar="OUT", help="folder for the capture (default logs)")
    parser.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto")
    capture = parser.add_argument_group("what is captured besides operators and kernels")
    capture.add_argument("--shapes", action="store_true", help="shapes of the operators' inputs")
    capture.add_argument("--memory", action="store_true", help="allocations and releases")
    capture.add_argument("--stacks", action="store_true", help="Python functions and modules: slow, and large")
    capture.add_argument("--without-steps", action="store_true", help="do not tell the profiler where a step ends")
    run = parser.add_argument_group("how the model is run")
    run.add_argument("--amp", action="store_true", help="mixed precision with bfloat16")
    run.add_argument("--channels-last", action="store_true", help="images with the channels as innermost dimension")
    run.add_argument("--compile", action="store_true", help="torch.compile; needs a C++ compiler")
    run.add_argument("--graphs", action="store_true", help="CUDA graphs; needs a GPU")
    run.add_argument("--read-loss", action="store_true", help="read the loss in every step, which waits for the device")
    options = parser.parse_args()
    if options.device == "auto":
        options.device = "cuda" if torch.cuda.is_available() else "cpu"
    if options.graphs and options.device != "cuda":
        parser.error("--graphs needs a CUDA device")
    return options


def train(batches: Iterable[Batch], step: Step, device: torch.device, options: argparse.Namespace) -> float:
    """Train on ``batches``, all but the first under the profiler; return the last loss."""
    loss = torch.zeros(())
    with profiler(device, options) as profile:
        for images, labels in batches:
            loss = step(images.to(device, non_blocking=True), labels.to(device, non_blocking=True))
            if options.read_loss:
                loss.item()
            if not options.without_steps:
                profile.step()
    return float(loss)


def profiler(device: torch.device, options: argparse.Namespace) -> torch.profiler.profile:
    """Return the profiler, which writes its capture after the last step."""
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device.type == "cuda" else [])]
    schedule = torch.profiler.schedule(wait=WAIT, warmup=WARM_UP, active=options.steps, repeat=1)
    return torch.profiler.profile(
        activities=activities,
        schedule=None if options.without_steps else schedule,
        on_trace_ready=torch.profiler.tensorboard_trace_handler(options.profile, options.loader, use_gzip=True),
        record_shapes=options.shapes,
        profile_memory=options.memory,
        with_stack=options.stacks,
        with_modules=options.stacks,
    )


def training_step(size: Size, device: torch.device, options: argparse.Namespace) -> Step:
    """Return a residual network with its optimizer, as a function from a batch to its loss."""
    layout = torch.channels_last if options.channels_last else torch.contiguous_format
    network: nn.Module = ResidualNetwork(size).to(device, memory_format=layout)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    loss_of = nn.CrossEntropyLoss()
    # Casts are not cached between calls: a captured graph may not refer to them.
    precision = torch.autocast(device.type, torch.bfloat16, cache_enabled=False)
    if options.graphs:
        sample = torch.zeros(size.batch, 3, size.side, size.side, device=device).to(memory_format=layout)
        with precision if options.amp else contextlib.nullcontext():
            network = torch.cuda.make_graphed_callables(network, (sample,))
    if options.compile:
        network = torch.compile(network)

    def step(images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad(set_to_none=True)
        with precision if options.amp else contextlib.nullcontext():
            loss = loss_of(network(images.to(memory_format=layout)), labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


class ResidualNetwork(nn.Module):
    """Stages of bottleneck blocks, each with half the side and twice the channels of the previous one."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        pooling = [nn.MaxPool2d(3, 2, 1)] if size.pooled else []
        self.stem = nn.Sequential(nn.Conv2d(3, size.width, 7, 2, 3), nn.BatchNorm2d(size.width), nn.ReLU(), *pooling)
        channels, blocks = size.width, []
        for stage, count in enumerate(size.blocks):
            for place in range(count):
                inner, stride = size.width << stage, 2 if stage and not place else 1
                blocks.append(Bottleneck(channels, inner, stride))
                channels = 4 * inner
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(channels, CLASSES)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return scores per class."""
        return self.head(self.blocks(self.stem(images)).mean((2, 3)))


class Bottleneck(nn.Module):
    """Three convolutions in parallel with a short cut."""

    def __init__(self, channels: int, inner: int, stride: int) -> None:
        super().__init__()
        outer = 4 * inner
        self.body = nn.Sequential(
            *(nn.Conv2d(channels, inner, 1), nn.BatchNorm2d(inner), nn.ReLU()),
            *(nn.Conv2d(inner, inner, 3, stride, 1), nn.BatchNorm2d(inner), nn.ReLU()),
            *(nn.Conv2d(inner, outer, 1), nn.BatchNorm2d(outer)),
        )
        same = channels == outer and stride == 1
        self.short_cut = nn.Identity() if same else nn.Conv2d(channels, outer, 1, stride)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Return the sum of both paths."""
        return torch.relu(self.body(values) + self.short_cut(values))


def loader(kind: str, size: Size, steps: int, device: torch.device) -> DataLoader[Batch]:
    """Return as many batches as the run has steps."""
    images = Images(size.side)
    chosen = RandomSampler(images, replacement=True, num_samples=steps * size.batch)
    if kind == "slow":
        return DataLoader(images, size.batch, sampler=chosen, num_workers=0)
    if kind == "workers":
        return DataLoader(images, size.batch, sampler=chosen, num_workers=1)
    return DataLoader(
        WholeBatches(size.side),
        batch_size=None,
        sampler=BatchSampler(chosen, size.batch, drop_last=True),
        num_workers=1 if device.type == "cpu" else 8,
        prefetch_factor=4,
        persistent_workers=True,
        pin_memory=device.type == "cuda",
    )


class Images(Dataset[Batch]):
    """Noise with labels; each image is distorted and cropped on access."""

    def __init__(self, side: int) -> None:
        random = np.random.default_rng(1)
        self.images = random.integers(0, 256, (IMAGES, 2 * side, 2 * side, 3), np.uint8)
        self.labels = torch.from_numpy(random.integers(0, CLASSES, IMAGES))

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, place: int) -> Batch:
        return as_tensor(waves(self.images[place])), self.labels[place]


class WholeBatches(Images):
    """The same, for all places of a batch at once."""

    def __init__(self, side: int) -> None:
        super().__init__(side)
        # Every pixel of a distorted image is one of the original's, at the same source position in all images.
        numbered = np.arange(4 * side * side, dtype=np.int32).reshape(2 * side, 2 * side, 1)
        self.sources = waves(numbered)[..., 0]
        self.pixels = self.images.reshape(IMAGES, -1, 3)

    def __getitem__(self, places: list[int]) -> Batch:
        rows = np.asarray(places)[:, None, None]
        return as_tensor(self.pixels[rows, self.sources]), self.labels[places]


def as_tensor(image: np.ndarray) -> torch.Tensor:
    """Put channels before rows and columns, and scale values to 0 to 1."""
    return torch.from_numpy(np.moveaxis(image, -1, -3).astype(np.float32) / 255)


def waves(image: np.ndarray) -> np.ndarray:
    """Shift the rows of an image by a wave, then its columns, one by one; return the middle of the result."""
    distorted = image.copy()
    side = len(image)
    for length in WAVES:
        shifts = np.rint(length * np.sin(np.arange(side) / length)).astype(int)
        for place, shift in enumerate(shifts):
            distorted[place] = np.roll(distorted[place], shift, axis=0)
        for place, shift in enumerate(shifts):
            distorted[:, place] = np.roll(distorted[:, place], shift, axis=0)
    return distorted[side // 4 : -side // 4, side // 4 : -side // 4]


if __name__ == "__main__":
    main()
