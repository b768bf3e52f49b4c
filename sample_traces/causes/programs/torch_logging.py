"""Every weight's statistics are formatted and written to a log file, hundreds of lines in each step."""

import logging
import os
import tempfile

import torch
from torch import nn

STEPS, BATCH = 45, 32
log = logging.getLogger("training")


def log_weights(model, step):
    for name, weight in model.named_parameters():
        for row, value in enumerate(weight.detach().flatten()[:800].tolist()):
            log.info("step %d: %s[%d] = %.6f", step, name, row, value)


def train_step(model, optimizer, features, labels):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(features), labels)
    loss.backward()
    optimizer.step()


def train():
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    features, labels = torch.randn(BATCH, 256), torch.randint(0, 10, (BATCH,))
    for step in range(STEPS):
        train_step(model, optimizer, features, labels)
        log_weights(model, step)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        logging.basicConfig(
            filename=os.path.join(folder, "training.log"),
            level=logging.INFO,
            format="%(asctime)s %(levelname)s %(name)s %(filename)s:%(lineno)d %(message)s",
        )
        train()
        logging.shutdown()
