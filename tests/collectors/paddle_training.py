"""Small programs of PaddlePaddle: ``plain``, ``fit``, ``workers``, ``static``, ``profiled``."""

import sys

import numpy as np
import paddle
from paddle.io import DataLoader, Dataset


class Rows(Dataset):
    """320 rows of 64 numbers."""

    def __getitem__(self, index):
        """Return one row, and what is wanted of it."""
        return np.full(64, index, "float32") / 100, np.zeros(1, "float32")

    def __len__(self):
        """Return the number of images."""
        return 320


def train(network, optimizer, workers, after_step):
    """Train three epochs of ten steps."""
    loader = DataLoader(Rows(), batch_size=32, num_workers=workers)
    for _ in range(3):
        for rows, wanted in loader:
            ((network(rows) - wanted) ** 2).mean().backward()
            optimizer.step()
            optimizer.clear_grad()
            after_step()
    paddle.save(network.state_dict(), "network.pdparams")


def main(how):
    """Run one of them."""
    network = paddle.nn.Sequential(paddle.nn.Linear(64, 256), paddle.nn.ReLU(), paddle.nn.Linear(256, 1))
    optimizer = paddle.optimizer.Adam(parameters=network.parameters())
    if how == "static":
        # Run a program of a static graph forty times, after the one that sets its parameters.
        paddle.enable_static()
        rows = paddle.static.data("rows", [None, 64])
        loss = paddle.static.nn.fc(rows, 1).mean()
        paddle.optimizer.SGD(0.01).minimize(loss)
        executor = paddle.static.Executor()
        executor.run(paddle.static.default_startup_program())
        for _ in range(40):
            executor.run(feed={"rows": np.ones((8, 64), "float32")}, fetch_list=[loss])
    elif how == "fit":
        model = paddle.Model(network)
        model.prepare(optimizer, paddle.nn.MSELoss())
        model.fit(Rows(), Rows(), batch_size=32, epochs=3, verbose=0)
    elif how == "profiled":
        export = paddle.profiler.export_chrome_tracing(".")
        with paddle.profiler.Profiler(scheduler=(5, 15), on_trace_ready=export) as profiler:
            train(network, optimizer, 0, profiler.step)
    else:
        train(network, optimizer, 2 if how == "workers" else 0, lambda: None)
    sys.stdout.write("trained\n")


main(sys.argv[1])
