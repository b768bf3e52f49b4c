"""Steps and epochs in Apache MXNet: Gluon's trainer and loader, modules, data iterators, and calls of a Gluon model.

:mod:`.loop` defines a step. MXNet computes asynchronously: a step ends when Python has requested it, and the time of
the computation appears where the program waits for a value.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from .. import hooks, process
from ..facts import training
from ..phases import step_parts
from ..phases.step_parts import PARTS
from ..status import guarded
from .loop import Loop, Pass, seen_backward, seen_batch, seen_optimizer, seen_pass

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType
    from typing import Any

LOOP = Loop("mxnet", "mxnet_optimizer", "mxnet_loader", "mxnet_call")
"""The loop of this process."""

MODULES = {
    "mxnet.module.bucketing_module": "BucketingModule",
    "mxnet.module.module": "Module",
    "mxnet.module.python_module": "PythonModule",
    "mxnet.module.sequential_module": "SequentialModule",
}
"""Module -> class whose ``update`` makes a step."""

_optimizer = functools.partial(seen_optimizer, LOOP)


def hook_trainer(module: ModuleType) -> None:
    """Hook the steps of Gluon: a program that changes gradients itself calls ``update`` instead of ``step``."""
    hooks.replace(module.Trainer, "step", _optimizer)
    hooks.replace(module.Trainer, "update", _optimizer)


def hook_module(module: ModuleType) -> None:
    """Hook the steps of modules, whose ``fit`` calls ``update``."""
    hooks.replace(getattr(module, MODULES[module.__name__]), "update", _optimizer)


def hook_iterators(module: ModuleType) -> None:
    """Hook batches of data iterators, which are their own loaders."""
    hooks.replace(module.DataIter, "__iter__", functools.partial(seen_pass, LOOP))
    hooks.replace(module.DataIter, "__next__", functools.partial(seen_batch, LOOP))


def hook_dataloader(module: ModuleType) -> None:
    """Hook each pass over a loader of Gluon, and each batch."""
    hooks.replace(module.DataLoader, "__iter__", _seen_generator)


def _seen_generator(iterate: Any) -> Any:
    """Return an ``__iter__`` that wraps each pass: passes are generators, which accept no attributes."""
    take = seen_batch(LOOP, Pass.__next__)
    opens = seen_pass(LOOP, lambda loader: Pass(iterate(loader), loader))

    @functools.wraps(iterate)
    def counted(self: Any) -> Iterator[Any]:
        batches = opens(self)
        while True:
            try:
                batch = take(batches)
            except StopIteration:
                return
            yield batch

    return counted


def hook_array(module: ModuleType) -> None:
    """Hook every backward pass of Gluon."""
    hooks.replace(module.NDArray, "backward", functools.partial(seen_backward, LOOP))
    training.none_yet()


def hook_block(module: ModuleType) -> None:
    """Hook calls of models: the steps of a program that only infers."""
    hooks.replace(module.Block, "__call__", _seen_call)


def _seen_call(call: Any) -> Any:
    begins, ends = guarded(LOOP.call_begins), guarded(LOOP.call_ends)

    @functools.wraps(call)
    def seen(self: Any, *arguments: Any, **named: Any) -> Any:
        if LOOP.is_calling or LOOP.is_taking or not process.may_train():
            return call(self, *arguments, **named)
        begins(self)
        try:
            with PARTS.part(step_parts.FORWARD):
                return call(self, *arguments, **named)
        finally:
            ends()

    return seen
