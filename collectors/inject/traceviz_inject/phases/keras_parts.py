"""Parts of a loop in Keras and tf.data: epochs, a batch's work, and batches that Python takes from a pipeline.

Keras on TensorFlow hands its pipeline to a compiled function, which does everything from taking a batch to the
optimizer. From outside, its parts are indistinguishable. The TensorFlow profiler sees inside. Without it, Keras gets
its batches from an iterator in Python, which it supports as well: the computation stays the same, and the wait for a
batch gets a range.
"""

from __future__ import annotations

import functools
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

from .. import hooks
from ..calls import call_after, call_before
from . import step_parts
from .step_parts import PARTS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType
    from typing import Any

_MARK = "__traceviz_parts__"
_END = object()

_wrap = functools.partial(hooks.replace, mark=_MARK)
"""Replace a method once, with a mark of its own: hooks that count steps may wrap the same method."""


def hook_callbacks(module: ModuleType) -> None:
    """Hook epochs and batches through the list of callbacks that ``fit`` keeps, with any contents."""
    callbacks = module.CallbackList
    batch = ExitStack()

    def begin_work(*_: Any) -> None:
        batch.close()
        batch.enter_context(PARTS.part(step_parts.COMPUTE))

    _wrap(callbacks, "on_epoch_begin", call_after(lambda *_: PARTS.epoch_begins()))
    _wrap(callbacks, "on_epoch_end", call_after(lambda *_: PARTS.epoch_ends()))
    _wrap(callbacks, "on_train_batch_begin", call_after(begin_work))
    _wrap(callbacks, "on_train_batch_end", call_before(lambda *_: batch.close()))


def hook_batches(module: ModuleType) -> None:
    """Hook batches of Keras on the backends that take them in Python."""
    _wrap(module.EpochIterator, "__next__", _mark_taking)


def hook_iterators(module: ModuleType) -> None:
    """Hook batches that Keras on JAX takes after it has announced them."""
    epochs = getattr(module, "JAXEpochIterator", None)
    if epochs is not None and "__next__" in epochs.__dict__:  # else it takes them where the other backends do
        _wrap(epochs, "_get_iterator", _return_marked)


class _MarkedIterator:
    """Iterates as ``batches`` do; the taking of each is a part of the step."""

    def __init__(self, batches: Any) -> None:
        self._batches = iter(batches)

    def __iter__(self) -> _MarkedIterator:
        return self

    def __next__(self) -> Any:
        with PARTS.part(step_parts.INPUT):
            return next(self._batches)


def _return_marked(get_iterator: Any) -> Any:
    @functools.wraps(get_iterator)
    def get_marked(self: Any) -> Any:
        return _MarkedIterator(get_iterator(self))

    return get_marked


def hook_trainer(module: ModuleType) -> None:
    """Hook batches that Keras would take within a compiled function."""
    _wrap(module.TensorFlowTrainer, "make_train_function", _take_in_python)


def hook_iterator(module: ModuleType) -> None:
    """Hook batches that a loop in Python takes from tf.data."""
    _wrap(module.OwnedIterator, "__next__", _mark_taking)


def _take_in_python(make: Any) -> Any:
    @functools.wraps(make)
    def made(self: Any, *arguments: Any, **named: Any) -> Any:
        result = make(self, *arguments, **named)
        function = self.train_function
        if function is not None and not getattr(function, _MARK, False):
            # Return a training function that takes each batch in Python if it would use a plain tf.data iterator.
            @functools.wraps(function)
            def step(iterator: Any) -> Any:
                plain = getattr(sys.modules.get("tensorflow.python.data.ops.iterator_ops"), "OwnedIterator", None)
                if plain is None or type(iterator) is not plain or self.steps_per_execution != 1:
                    return function(iterator)
                return function(_take_one(iterator))

            setattr(step, _MARK, True)
            self.train_function = step
        return result

    return made


def _take_one(iterator: Any) -> Iterator[Any]:
    """Yield the next batch of ``iterator``. It ends with the error of compiled code, which Keras expects."""
    batch = next(iterator, _END)
    if batch is _END:
        raise sys.modules["tensorflow"].errors.OutOfRangeError(None, None, "End of sequence")
    yield batch


def _mark_taking(take: Any) -> Any:
    @functools.wraps(take)
    def take_marked(self: Any) -> Any:
        with PARTS.part(step_parts.INPUT):
            return take(self)

    return take_marked
