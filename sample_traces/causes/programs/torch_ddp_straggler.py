"""Two ranks on the CPU: rank 1 sleeps 20 ms in every step, and rank 0 waits for it in the all-reduce of DDP."""

import time

import torch
import torch.distributed as dist
from torch import nn

STEPS, BATCH = 60, 32


def report_progress(rank):
    if rank == 1:
        time.sleep(0.020)


def train_step(model, optimizer, features, labels):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(features), labels)
    loss.backward()
    optimizer.step()


def train():
    torch.set_num_threads(1)
    network = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    model = nn.parallel.DistributedDataParallel(network)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    features, labels = torch.randn(BATCH, 64), torch.randint(0, 10, (BATCH,))
    for _ in range(STEPS):
        train_step(model, optimizer, features, labels)
        report_progress(dist.get_rank())


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train()
    dist.destroy_process_group()
