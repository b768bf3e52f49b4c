"""A training program that knows nothing of profilers, run by the tests under the hooks.

python torch_training.py HOW [STEPS] [CONTEXT,CONTEXT...]
"""

import os
import signal
import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __init__(self, batches, delay=0.003):
        self.batches, self.delay = batches, delay

    def __len__(self):
        return 8 * self.batches

    def __getitem__(self, place):
        time.sleep(self.delay)
        # A model in a worker, as augmentations are: it makes no step.
        return nn.functional.relu(nn.Flatten(0)(torch.randn(8, 8))), place % 10


def train(steps, model, optimizers, **loading):
    for images, labels in DataLoader(Images(steps), 8, **loading):
        for optimizer in optimizers:
            optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        for optimizer in optimizers:
            optimizer.step()


def look(batches, model):
    with torch.no_grad():
        for images, _labels in DataLoader(Images(batches), 8):
            model(images)


def epochs(steps, model, optimizers):
    for _ in range(2):
        train(steps // 2, model, optimizers)
        look(9, model)


def accumulate(steps, model, optimizers):
    for place, (images, labels) in enumerate(DataLoader(Images(2 * steps), 8)):
        nn.functional.cross_entropy(model(images), labels).backward()
        if place % 2:
            optimizers[0].step()
            optimizers[0].zero_grad()


def workers(steps, model, optimizers, contexts):
    for context in contexts:
        train(steps, model, optimizers, num_workers=1, multiprocessing_context=context)


def call(steps, model):
    with torch.no_grad():
        for _ in range(steps):
            model(torch.randn(8, 64)).softmax(-1)


def profiled(steps, model, optimizers, before=0):
    train(before, model, optimizers)
    with torch.profiler.profile() as profile:
        train(steps - before, model, optimizers)
    print(len(profile.key_averages()) > 5)  # noqa: T201


def in_ranks(steps, model, optimizers):
    """Train data-parallel on the CPU; rank 1 sleeps 60 ms before each step."""
    torch.distributed.init_process_group("gloo")
    parallel = nn.parallel.DistributedDataParallel(model)
    for _ in range(steps):
        if torch.distributed.get_rank() == 1:
            time.sleep(0.06)
        optimizers[0].zero_grad()
        parallel(torch.randn(8, 64)).sum().backward()
        optimizers[0].step()
    # PyTorch 2.13 destroys the group while it holds the interpreter's lock. A thread of gloo may still need that lock
    # to release the last all-reduce: both would wait forever.
    time.sleep(0.5)
    torch.distributed.destroy_process_group()


def end(how):
    if how.startswith("exit"):
        sys.exit(int(how.removeprefix("exit")))
    if how == "raise":
        raise RuntimeError("the loss is not a number")
    if how in {"terminated", "killed"}:
        os.kill(os.getpid(), signal.SIGTERM if how == "terminated" else signal.SIGKILL)
    print("trained")  # noqa: T201


def main(how, steps, context):
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.01)]
    loops = {
        "accumulate": lambda: accumulate(steps, model, optimizers),
        "epochs": lambda: epochs(steps, model, optimizers),
        "infer-calls": lambda: call(steps, model),
        "infer-loader": lambda: look(steps, model),
        "in-ranks": lambda: in_ranks(steps, model, optimizers),
        "profiled": lambda: profiled(steps, model, optimizers),
        "profiled-later": lambda: profiled(steps, model, optimizers, steps // 2),
        "two": lambda: train(steps, model, [*optimizers, torch.optim.Adam(model[0].parameters())]),
        "workers": lambda: workers(steps, model, optimizers, context.split(",")),
    }
    loops.get(how, lambda: train(steps, model, optimizers))()
    end(how)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20, sys.argv[3] if len(sys.argv) > 3 else None)
