"""A small training run under TensorFlow's profiler with its Python tracer, for a real capture of some size.

    python benchmarks/xplane_program.py LOGDIR SECONDS

Needs TensorFlow and xprof. It asks the profiler through its server, because TensorFlow 2.21 ignores the options of the
programmatic interface. Prints the path of the capture.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def main() -> None:
    """Train until the capture exists."""
    logdir, seconds = Path(sys.argv[1]), float(sys.argv[2])
    import tensorflow as tf

    address = f"localhost:{free_port()}"
    tf.profiler.experimental.server.start(int(address.split(":")[1]))
    recorder = threading.Thread(target=record, args=(address, logdir, seconds), daemon=True)
    train = training_step(tf)
    for _ in range(5):  # compile everything first
        train()
    recorder.start()
    begin, step = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds + 1:
        with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
            train()
        step += 1
    recorder.join()  # the profiler collects with a deadline: leave the machine to it
    print(max(logdir.rglob("*.xplane.pb"), key=lambda path: path.stat().st_mtime))


def record(address: str, logdir: Path, seconds: float) -> None:
    """Request a capture from the profiler of this process."""
    from xprof.convert import _pywrap_profiler_plugin as profiler

    options = {"host_tracer_level": 2, "python_tracer_level": 1, "device_tracer_level": 1}
    profiler.trace(address, str(logdir), "", True, int(seconds * 1000), 3, options)


def training_step(tf: Any) -> Callable[[], float]:
    """Return a step: take a batch, make its labels in Python, train."""
    model = tf.keras.Sequential([tf.keras.layers.Dense(32, "relu"), tf.keras.layers.Dense(10)])
    optimizer = tf.keras.optimizers.SGD(0.01)
    labels = json.dumps({str(number): number % 10 for number in range(64)})
    data = tf.data.Dataset.range(1 << 30).map(lambda n: tf.fill([16], tf.cast(n, tf.float32))).batch(64)
    batches = iter(data.prefetch(2))

    @tf.function
    def fit(features: Any, targets: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.keras.losses.sparse_categorical_crossentropy(targets, model(features), True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    def step() -> float:
        features = next(batches)
        targets = [int(str(label).strip()) for label in json.loads(labels).values()]
        return float(fit(features, tf.constant(targets)))

    return step


def free_port() -> int:
    """Return a free port."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return probe.getsockname()[1]


if __name__ == "__main__":
    begin = time.perf_counter()
    main()
    print(f"{time.perf_counter() - begin:.0f} s", file=sys.stderr)
