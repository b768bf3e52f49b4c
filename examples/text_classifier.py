"""Tell from a piece of text which package it comes from: slow Python makes the features, a small Keras model learns.

    python -m pip install tensorflow-cpu
    traceviz collect -o before -- python examples/text_classifier.py
    traceviz collect -o after -- python examples/text_classifier.py --processes 2 --keep

The text is the source of Python's own library. Words are cut, shortened and hashed one by one, as much text processing
does it: in this process and in every epoch, or once, in several processes.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import sysconfig
import zlib
from collections.abc import Iterable
from multiprocessing import get_context
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

PACKAGES = ("asyncio", "concurrent", "email", "encodings", "http", "importlib", "unittest", "xml")
PIECE, PIECES = 600, 1600
"""Characters of a piece, and total number of pieces."""
NUMBERS, VOCABULARY, LONGEST = 96, 20_000, 12
ENDINGS = re.compile(r"(ization|ations?|ing|ings|ed|es|s|er|ly)$")


def main() -> None:
    """Make features, train, and print how well the model distinguishes packages."""
    options = parse()
    pieces, labels = texts()
    pool = get_context("fork").Pool(options.processes) if options.processes else None  # before TensorFlow has threads
    import keras  # noqa: PLC0415 a forked process should not carry it
    import numpy as np  # noqa: PLC0415

    keras.utils.set_random_seed(options.seed)
    held = len(pieces) // 5
    network = compiled(keras)
    numbers = np.array(labels)
    features = None
    for _ in range(options.epochs):
        if features is None or not options.keep:
            features = np.array(list(pool.map(hashed, pieces, 50) if pool else map(hashed, pieces)))
        training = (features[held:], numbers[held:])
        validation = (features[:held], numbers[:held])
        history = network.fit(*training, batch_size=options.batch_size, validation_data=validation, verbose=0)
    if pool:
        pool.close()
        pool.join()
    print(f"{len(pieces)} pieces, {options.epochs} epochs, accuracy {history.history['val_accuracy'][-1]:.1%}")


def parse() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--processes", type=int, default=0, help="that make features; 0: this one")
    parser.add_argument("--keep", action="store_true", help="make features once, not in every epoch")
    parser.add_argument("--seed", type=int, default=1, help="another one in each repeat shows what chance does")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=4)
    options = parser.parse_args()
    if options.epochs < 1:
        parser.error("there is at least one epoch")
    return options


def texts() -> tuple[list[str], list[int]]:
    """Return pieces of source text, and the numbers of their packages, in random order."""
    library = Path(sysconfig.get_path("stdlib"))
    found = []
    for number, package in enumerate(PACKAGES):
        text = "".join(path.read_text("utf-8") for path in sorted((library / package).rglob("*.py")))
        found += [(text[start : start + PIECE], number) for start in range(0, len(text), PIECE)]
    random.Random(1).shuffle(found)
    pieces, labels = zip(*found[:PIECES], strict=True)
    return list(pieces), list(labels)


def hashed(piece: str) -> list[int]:
    """Return the words of a piece as numbers, with the parts of each word."""
    numbers: list[int] = []
    for word in re.findall(r"[a-z]+", piece.lower()):
        short = ENDINGS.sub("", word)[:LONGEST]
        numbers += [zlib.crc32(part.encode()) % VOCABULARY for part in (short, *parts(short))]
    return (numbers + [0] * NUMBERS)[:NUMBERS]


def parts(word: str) -> Iterable[str]:
    """Return all sequences of three to five letters."""
    return (word[start : start + size] for size in (3, 4, 5) for start in range(len(word) - size + 1))


def compiled(keras):  # noqa: ANN001, ANN201 types would import Keras
    """Return a model: words as vectors, their mean, and a dense layer."""
    layers = keras.layers
    network = keras.Sequential(
        [
            layers.Input((NUMBERS,), dtype="int32"),
            layers.Embedding(VOCABULARY, 32),
            layers.GlobalAveragePooling1D(),
            layers.Dense(32, "relu"),
            layers.Dense(len(PACKAGES)),
        ]
    )
    network.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    return network


if __name__ == "__main__":
    main()
