"""Small programs of Apache MXNet: ``plain``, ``workers``, ``module``, ``infer``, ``profiled``."""

import sys

import mxnet
import numpy as np
from mxnet import autograd, gluon

ROWS, WANTED = np.ones((320, 64), "float32"), np.zeros((320, 1), "float32")


def train(workers):
    """Train three epochs of ten steps with Gluon."""
    network = gluon.nn.HybridSequential()
    network.add(gluon.nn.Dense(256, activation="relu"), gluon.nn.Dense(1))
    network.initialize()
    network.hybridize(active=not workers)  # workers give batches in memory that a compiled network does not take
    loader = gluon.data.DataLoader(gluon.data.ArrayDataset(ROWS, WANTED), batch_size=32, num_workers=workers)
    trainer, loss_of = gluon.Trainer(network.collect_params(), "adam"), gluon.loss.L2Loss()
    for _ in range(3):
        for rows, wanted in loader:
            with autograd.record():
                loss = loss_of(network(rows), wanted)
            loss.backward()
            trainer.step(32)
    mxnet.nd.waitall()
    network.save_parameters("network.params")


def fit_module():
    """Train three epochs of ten steps with the older interface."""
    output = mxnet.sym.FullyConnected(mxnet.sym.Variable("data"), num_hidden=1)
    output = mxnet.sym.LinearRegressionOutput(output, mxnet.sym.Variable("wanted"))
    batches, others = (mxnet.io.NDArrayIter(ROWS, WANTED, batch_size=32, label_name="wanted") for _ in range(2))
    module = mxnet.mod.Module(output, label_names=["wanted"])
    module.fit(batches, num_epoch=3, optimizer="sgd", eval_metric="mse", eval_data=others)


def main(how):
    """Run one of them."""
    if how == "module":
        fit_module()
    elif how == "infer":
        network = gluon.nn.Dense(4)
        network.initialize()
        for _ in range(40):
            network(mxnet.nd.array(ROWS[:4])).asnumpy()
    elif how == "profiled":
        mxnet.profiler.set_config(profile_all=True, filename="profile.json")
        mxnet.profiler.set_state("run")
        train(0)
        mxnet.profiler.set_state("stop")
        mxnet.profiler.dump()
    else:
        train(2 if how == "workers" else 0)
    sys.stdout.write("trained\n")


main(sys.argv[1])
