"""A training loop without a framework or a GPU, annotated with NVTX ranges, to try a profiler on.

    pip install nvtx==0.2.11
    nsys profile -t nvtx,osrt -s none --cpuctxsw=none -o loop python examples/nvtx_training_loop.py
    traceviz report loop.nsys-rep

A reader thread fetches batches from a file and takes longer than the "model" needs, so the loop is
input-bound: the range "data loading" takes more than half of each "step". The work is real (hashing and compressing
bytes), but trains nothing.
"""

from __future__ import annotations

import argparse
import hashlib
import queue
import random
import tempfile
import threading
import time
import zlib
from pathlib import Path

import nvtx

BATCH_BYTES = 512 * 1024


def main() -> None:
    """Write a data file, train on it, and print the result."""
    parser = argparse.ArgumentParser(description="A small annotated training loop.")
    parser.add_argument("--steps", type=int, default=30, help="training steps (default 30)")
    parser.add_argument("--delay", type=float, default=0.012, help="seconds per batch that stand for a slow disk")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder, "data.bin")
        with nvtx.annotate("prepare data"):
            data.write_bytes(random.Random(1).randbytes(4 * BATCH_BYTES))
        print(f"{options.steps} steps, checksum {train(data, options.steps, options.delay)}")


def train(data: Path, steps: int, delay: float) -> str:
    """Run ``steps`` steps over batches that a second thread reads; return a checksum of the result."""
    batches: queue.Queue[bytes] = queue.Queue(maxsize=1)
    reader = threading.Thread(target=read_batches, args=(data, steps, delay, batches), name="reader")
    reader.start()
    weights = b"\0" * 32
    for step in range(steps):
        with nvtx.annotate(f"step {step}"):
            with nvtx.annotate("data loading"):
                batch = batches.get()
            with nvtx.annotate("forward"):
                activations = hashlib.sha256(weights + batch).digest()
            with nvtx.annotate("backward"):
                gradients = zlib.compress(batch[: BATCH_BYTES // 8], level=1)
            with nvtx.annotate("optimizer"):
                weights = hashlib.sha256(activations + gradients).digest()
    reader.join()
    return weights.hex()[:12]


def read_batches(data: Path, steps: int, delay: float, batches: queue.Queue[bytes]) -> None:
    """Read ``steps`` batches from the file, repeatedly, each after a pause of ``delay`` seconds."""
    with data.open("rb", buffering=0) as file:
        for _ in range(steps):
            time.sleep(delay)
            batch = file.read(BATCH_BYTES)
            if len(batch) < BATCH_BYTES:
                file.seek(0)
                batch = file.read(BATCH_BYTES)
            batches.put(batch)


if __name__ == "__main__":
    main()
