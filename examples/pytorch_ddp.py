"""Data-parallel training in PyTorch, one capture per rank.

    pip install 'traceviz-toolkit[torch]'
    torchrun --nproc-per-node 2 examples/pytorch_ddp.py --profile logs
    traceviz report logs

Ranks on the CPU communicate over gloo, ranks with a GPU each over NCCL. ``--straggler 1`` gives rank 1 sequences three
times as long as those of the other ranks, which then wait for it in every all-reduce.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

BATCH, LENGTH, WIDTH, CLASSES = 16, 64, 128, 10
WAIT, WARM_UP = 1, 2
"""Steps before the captured ones: not profiled, and profiled but discarded."""

Batch = tuple[torch.Tensor, torch.Tensor]
Step = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def main() -> None:
    """Train for a while on every rank, and capture the last steps."""
    parser = argparse.ArgumentParser(description="Capture a small data-parallel training run (start it with torchrun).")
    parser.add_argument("--steps", type=int, default=8, help="steps to capture (default 8)")
    parser.add_argument("--profile", default="logs", metavar="OUT", help="folder for the captures (default logs)")
    parser.add_argument("--straggler", type=int, metavar="RANK", help="rank that has more to do than the others")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    on_gpu = torch.cuda.is_available()
    dist.init_process_group("nccl" if on_gpu else "gloo")
    rank = dist.get_rank()
    device = torch.device("cuda", rank % torch.cuda.device_count()) if on_gpu else torch.device("cpu")
    batches = loader(3 * LENGTH if rank == options.straggler else LENGTH, WAIT + WARM_UP + options.steps)
    loss = train(batches, training_step(device), device, options)
    if rank == 0:
        print(f"{dist.get_world_size()} ranks, {options.steps} steps captured in {options.profile}, loss {loss:.3f}")
    dist.destroy_process_group()


def train(batches: Iterable[Batch], step: Step, device: torch.device, options: argparse.Namespace) -> float:
    """Train on ``batches``; the profiler writes the capture of this rank after the last step."""
    loss = torch.zeros(())
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device.type == "cuda" else [])]
    write = torch.profiler.tensorboard_trace_handler(options.profile, f"rank{dist.get_rank()}", use_gzip=True)
    schedule = torch.profiler.schedule(wait=WAIT, warmup=WARM_UP, active=options.steps, repeat=1)
    with torch.profiler.profile(activities=activities, schedule=schedule, on_trace_ready=write) as profile:
        for texts, labels in batches:
            loss = step(texts.to(device), labels.to(device))
            profile.step()
    return float(loss)


def loader(length: int, steps: int) -> DataLoader[Batch]:
    """Return as many batches of noise with labels as this rank needs for ``steps``; every rank takes its own part."""
    rows = BATCH * steps * dist.get_world_size()
    data = TensorDataset(torch.randn(rows, length, WIDTH), torch.randint(CLASSES, (rows,)))
    return DataLoader(data, BATCH, sampler=DistributedSampler(data))


def training_step(device: torch.device) -> Step:
    """Return a transformer layer with its optimizer, as a function from a batch to its loss; gradients are shared."""
    layer = nn.TransformerEncoderLayer(WIDTH, nhead=4, dim_feedforward=4 * WIDTH, dropout=0.0, batch_first=True)
    network = nn.Sequential(layer, nn.Linear(WIDTH, CLASSES)).to(device)
    parallel = DistributedDataParallel(network, device_ids=[device] if device.type == "cuda" else None)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.01)
    loss_of = nn.CrossEntropyLoss()

    def step(texts: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(parallel(texts).mean(1), labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


if __name__ == "__main__":
    main()
