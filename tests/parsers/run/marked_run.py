"""A training loop that marks the same moments for every profiler and for the wall clock: ``python marked_run.py OUT``.

Run by :mod:`tests.parsers.run.test_live` under ``traceviz collect``; a program of its own, as its user writes one.
"""

import json
import sys
import time
from pathlib import Path

import torch

import traceviz

STEPS = 12


class Squares(torch.utils.data.Dataset):  # a slow input: 3 ms a sample
    def __len__(self):
        return 4 * STEPS

    def __getitem__(self, index):
        time.sleep(0.003)
        return torch.full((16,), float(index))


def main(out: Path) -> None:
    model = torch.nn.Linear(16, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    moments = []
    for batch in torch.utils.data.DataLoader(Squares(), batch_size=4):
        optimizer.zero_grad()
        model(batch).sum().backward()
        before = time.time_ns()
        with traceviz.record("moment"):
            time.sleep(0.001)
        moments.append((before, time.time_ns()))
        with traceviz.record("load data"):
            time.sleep(0.002)
        optimizer.step()
    out.write_text(json.dumps(moments))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
