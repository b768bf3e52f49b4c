"""A convolutional network on images of CIFAR-10 size, in Keras: an ordinary program that contains no profiler.

    pip install 'traceviz-toolkit[tensorflow]'
    traceviz collect -o slow -- python examples/cifar10_cnn.py
    traceviz report slow
    traceviz collect -o repaired -- python examples/cifar10_cnn.py --cache --parallel-map 2 --prefetch 2

Without switches it decodes every JPEG file again in every epoch, one at a time, while the model waits. Each switch
repairs or changes one thing. The images are noise, generated on the spot: nothing is downloaded.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf

IMAGES = 256
CLASSES = 10
SIDE = 32
STORED_SIDE = 192
"""Files hold larger images than the model sees, as they do in practice."""

STRATEGIES = {
    "none": tf.distribute.get_strategy,
    "one-device": lambda: tf.distribute.OneDeviceStrategy("GPU:0" if gpus() else "CPU:0"),
    "mirrored": tf.distribute.MirroredStrategy,
}


def main() -> None:
    """Train the small network."""
    run(network, batch_size=32, steps=40)


def run(build: Callable[[], keras.Model], batch_size: int, steps: int) -> None:
    """Train the network of ``build``, with the options of the command line."""
    options = parse(batch_size, steps)
    set_up(options)
    with STRATEGIES[options.strategy]().scope():
        model = build()
        model.compile(
            optimizer=keras.optimizers.SGD(0.01),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            jit_compile=options.xla,
        )
    history = model.fit(dataset(options), steps_per_epoch=options.steps, shuffle=False, verbose=0)
    print(f"{options.steps} steps of {options.batch_size} images, loss {history.history['loss'][-1]:.3f}")


def parse(batch_size: int, steps: int) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description="Train on images of the size of CIFAR-10.")
    some, none, tuned = at_least(1), at_least(0), at_least(tf.data.AUTOTUNE)
    parser.add_argument("--steps", type=some, default=steps, help=f"training steps (default {steps})")
    parser.add_argument("--batch-size", type=some, default=batch_size, help=f"images per step (default {batch_size})")
    data = parser.add_argument_group("input pipeline")
    data.add_argument("--cache", action="store_true", help="keep decoded images in memory")
    data.add_argument("--parallel-map", type=tuned, default=0, metavar="N", help="images decoded at once; -1: tuned")
    data.add_argument("--prefetch", type=tuned, default=0, metavar="N", help="batches made ahead; -1: tuned")
    speed = parser.add_argument_group("how the model is run")
    speed.add_argument("--mixed-precision", action="store_true", help="float16 on a GPU, bfloat16 elsewhere")
    speed.add_argument("--xla", action="store_true", help="compile the step")
    speed.add_argument("--strategy", choices=list(STRATEGIES), default="none", help="tf.distribute strategy")
    threads = parser.add_argument_group("threads")
    threads.add_argument("--gpu-thread-mode", choices=["global", "gpu_private", "gpu_shared"], default="global")
    threads.add_argument("--intra-op", type=none, default=0, metavar="N", help="threads within an operation; 0: cores")
    threads.add_argument("--inter-op", type=none, default=0, metavar="N", help="operations at once; 0: cores")
    return parser.parse_args()


def at_least(least: int) -> Callable[[str], int]:
    """Return a parser of integers from the command line. Without steps, Keras would train without end."""

    def number(text: str) -> int:
        if int(text) < least:
            raise argparse.ArgumentTypeError(f"{text} is less than {least}")
        return int(text)

    return number


def set_up(options: argparse.Namespace) -> None:
    """Apply settings of the whole program: TensorFlow reads them once, when it first runs something."""
    os.environ["TF_GPU_THREAD_MODE"] = options.gpu_thread_mode
    tf.config.threading.set_intra_op_parallelism_threads(options.intra_op)
    tf.config.threading.set_inter_op_parallelism_threads(options.inter_op)
    keras.utils.set_random_seed(1)
    if options.mixed_precision:
        keras.mixed_precision.set_global_policy("mixed_float16" if gpus() else "mixed_bfloat16")


def gpus() -> list[tf.config.PhysicalDevice]:
    """Return the GPUs that TensorFlow can use."""
    return tf.config.list_physical_devices("GPU")


def network() -> keras.Model:
    """Return two convolutions and a dense layer."""
    layers = keras.layers
    return keras.Sequential(
        [
            layers.Input((SIDE, SIDE, 3)),
            layers.Conv2D(32, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(64, 3, activation="relu"),
            layers.GlobalAveragePooling2D(),
            layers.Dense(CLASSES, dtype="float32"),
        ]
    )


def dataset(options: argparse.Namespace) -> tf.data.Dataset:
    """Return endless batches of (images, labels)."""
    data = tf.data.Dataset.from_tensor_slices(files()).map(decode, options.parallel_map or None)
    if options.cache:
        data = data.cache()
    data = data.repeat().map(flip).batch(options.batch_size, drop_remainder=True)
    if options.prefetch:
        data = data.prefetch(options.prefetch)
    return as_written(data)


def as_written(data: tf.data.Dataset) -> tf.data.Dataset:
    """Return ``data`` without TensorFlow's own parallel calls and prefetching: the switches decide."""
    settings = tf.data.Options()
    settings.experimental_optimization.apply_default_optimizations = False
    return data.with_options(settings)


def files() -> tuple[list[bytes], np.ndarray]:
    """Return JPEG files of noise, and a class for each."""
    random = np.random.default_rng(1)
    noise = random.integers(0, 256, (IMAGES, STORED_SIDE, STORED_SIDE, 3), np.uint8)
    return [tf.io.encode_jpeg(image).numpy() for image in noise], random.integers(0, CLASSES, IMAGES)


def decode(file: tf.Tensor, label: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Decode an image: the expensive part of the pipeline, equal in every epoch, so that it can be cached."""
    image = tf.image.resize(tf.io.decode_jpeg(file, channels=3), (SIDE, SIDE), antialias=True)
    return image / 255, label


def flip(image: tf.Tensor, label: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Flip an image: the cheap part, which differs from epoch to epoch."""
    return tf.image.random_flip_left_right(image), label


if __name__ == "__main__":
    main()
