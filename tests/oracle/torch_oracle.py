"""Trains a little under PyTorch's profiler: writes the capture, and prints the profiler's own results.

    python torch_oracle.py OUT.pt.trace.json.gz [--compile]

Runs in the oracle's own Python, never in the one that tests traceviz. JSON goes to standard output: per operator its
calls, its time in total and without the operators inside, in microseconds, and the bytes that it took and gave back by
itself; and the most bytes that the tensors of the program held at once, as counted from the profiler's own events.
"""

from __future__ import annotations

import argparse
import json
import sys
from itertools import accumulate
from typing import Any

import torch
from torch import nn
from torch.profiler import ProfilerActivity

BATCH, WIDTH = 32, 256


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--compile", action="store_true")
    options = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(1)
    profile = profiled(compiled=options.compile)
    profile.export_chrome_trace(options.out)
    json.dump({"operators": operators(profile), "memory": memory(profile)}, sys.stdout)


def profiled(*, compiled: bool) -> torch.profiler.profile:
    """Return three steps of a perceptron, the first two of them unseen."""
    network = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 10))
    optimizer = torch.optim.Adam(network.parameters())
    forward = torch.compile(network) if compiled else network

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(forward(torch.randn(BATCH, WIDTH)), torch.randint(10, (BATCH,))).backward()
        optimizer.step()

    if not compiled:
        step()
        step()
    activities = [ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, record_shapes=True, profile_memory=True) as profile:
        step()
    return profile


def operators(profile: torch.profiler.profile) -> list[dict[str, Any]]:
    """Return the result of ``key_averages()``."""
    return [
        {
            "name": row.key,
            "calls": row.count,
            "total_us": row.cpu_time_total,
            "self_us": row.self_cpu_time_total,
            "self_bytes": row.self_cpu_memory_usage,
        }
        for row in profile.key_averages()
    ]


def memory(profile: torch.profiler.profile) -> dict[str, int]:
    """Return the number of allocations and releases, their balance, and the maximum that was held."""
    roots = profile.profiler.kineto_results.experimental_event_tree()
    held = list(accumulate(size for _, size in sorted(pair for root in roots for pair in allocations(root))))
    return {"events": len(held), "balance": held[-1], "peak": max(held)}


def allocations(event: Any) -> list[tuple[int, int]]:
    """Return times and sizes of allocations in ``event`` and its children; releases are negative."""
    inside = [pair for child in event.children for pair in allocations(child)]
    if event.tag == torch._C._profiler._EventType.Allocation:
        return [(event.start_time_ns, event.extra_fields.alloc_size), *inside]
    return inside


if __name__ == "__main__":
    main()
